"""How the tests run: in one process, or, with --only-mpi, on every rank of an mpirun.

Under mpirun rank 0 reports for all: a test passes when it passed on every rank, and fails with the
words of the rank where it failed. Tests that need more ranks than there are do not run at that
number of ranks; scripts/test runs them at others, and counts.
"""

import os
import sys
import traceback
from pathlib import Path
from shutil import which

import pytest

HERE = Path(__file__).parent
# Intel's launcher shows no map of ranks, so there is nothing to hold ours against.
collect_ignore = ["test_hostfile_launchers.py"] * (os.environ.get("MPIRING_MPI") == "impi")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    if session.config.getoption("--only-mpi") and comm_world().rank > 0:
        session.config.get_terminal_writer()._file = open(os.devnull, "w")  # noqa: SIM115


def is_for_mpi(path):
    return (HERE / "mpi") in (path, *path.parents)


def pytest_ignore_collect(collection_path, config):
    wrong = is_for_mpi(collection_path) != config.getoption("--only-mpi")
    return True if wrong and (collection_path.is_file() or is_for_mpi(collection_path)) else None


def pytest_collection_modifyitems(config, items):
    under_mpi = config.getoption("--only-mpi")
    size = comm_world().size if under_mpi else 1

    def runs_here(item):
        if is_for_mpi(item.path) != under_mpi:  # a file that was named, so it was not ignored
            return False
        if not under_mpi:
            return True
        marks = list(item.iter_markers("mpi"))  # the module's, and perhaps the test's own
        assert marks, f"{item.nodeid} lies in tests/mpi and is not marked mpi"
        bounds = {key: value for mark in reversed(marks) for key, value in mark.kwargs.items()}
        return bounds.get("min_size", 1) <= size <= bounds.get("max_size", size)

    config.hook.pytest_deselected(items=[item for item in items if not runs_here(item)])
    items[:] = [item for item in items if runs_here(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if not item.config.getoption("--only-mpi"):
        return (yield)
    comm = comm_world()
    failure = ""
    try:
        return (yield)
    except (Exception, pytest.fail.Exception):  # the latter, of pytest.raises too, is none
        failure = traceback.format_exc()
        # Said at once: if the others wait for this rank, only the time limit will end them.
        print(f"rank {comm.rank} of {comm.size} failed in {item.nodeid}", file=sys.stderr)
        raise
    finally:
        failures = comm.allgather(failure)
        if any(failures) and not failure:
            rank = next(rank for rank, text in enumerate(failures) if text)
            pytest.fail(f"on rank {rank} of {comm.size}:\n{failures[rank]}", pytrace=False)


def pytest_runtest_logreport(report):
    # In CI nothing is missing, so a skip is a test that did not run.
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"


def pytest_terminal_summary(terminalreporter, config):
    counts = os.environ.get("MPIRING_TEST_COUNTS")
    passed = len(terminalreporter.stats.get("passed", ()))
    under_mpi = config.getoption("--only-mpi")
    speaks_for_all = not (hasattr(config, "workerinput") or (under_mpi and comm_world().rank > 0))
    if counts and passed and speaks_for_all:
        where = f"{comm_world().size} rank(s)" if under_mpi else "one process"
        if workers := config.getoption("numprocesses", None):
            where = f"{workers} processes"
        with open(counts, "a") as file:
            file.write(f"{passed:6} on {where}\n")


def comm_world():
    from mpi4py import MPI

    return MPI.COMM_WORLD


@pytest.fixture(scope="session", name="browser")
def fixture_browser():
    """Chromium, without a window."""
    if not (which("chromium") and which("chromedriver")):
        pytest.skip("needs chromium and chromedriver (Debian: chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(which("chromedriver")))
    yield driver
    driver.quit()
