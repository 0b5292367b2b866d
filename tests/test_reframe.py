"""scripts/reframe/mpiring_check.py, as ReFrame runs it with the mpirun on PATH."""

import json
import sys
from pathlib import Path

import pytest
from command import HERE, run

pytestmark = pytest.mark.pure  # what is tested is the check: with any MPI that mpirun starts

CHECK = HERE.parent / "scripts" / "reframe" / "mpiring_check.py"


@pytest.fixture(name="reframe")
def fixture_reframe(tmp_path):
    """Return a function that runs a check file at one algorithm and size, and returns its case."""

    def reframe(check=CHECK, ranks=2, **environ):
        report = tmp_path / "report.json"
        command = [Path(sys.executable).with_name("reframe"), "-C", HERE / "reframe_settings.py"]
        command += ["-c", check, "-r", "-n", "mpiring_check.*=ring.*=64KiB"]
        command += ["--prefix", tmp_path / "runs", "--report-file", report]
        command += ["-S", f"num_tasks={ranks}", "-S", "options=--repetitions 6"]
        finished = run(command, timeout=100, **environ)
        (case,) = json.loads(report.read_text())["runs"][0]["testcases"]
        assert finished.status == (case["result"] != "pass"), finished.stdout
        return case

    return reframe


def test_the_check_passes_with_its_figures(reframe, tmp_path):
    case = reframe()
    assert case["result"] == "pass", case
    figures = {name.split(":")[-1]: each for name, each in case["perfvalues"].items()}
    units = {name: unit for name, (*_, unit, _) in figures.items()}
    assert units == {"time": "us", "busbw": "GB/s", "speedup_vs_native": "x"}
    (file,) = tmp_path.glob("runs/output/**/result.json")
    ring = json.loads(file.read_text())["points"][0]
    assert ring["algorithm"] == "ring"
    assert figures["time"][0] == ring["time_s"]["median"] * 1e6
    assert figures["busbw"][0] == ring["busbw_GBps"]
    assert figures["speedup_vs_native"][0] == ring["speedup_vs_native"]


def edited(tmp_path, before, after):
    text = CHECK.read_text()
    assert text.count(before) == 1
    path = tmp_path / "mpiring_check.py"
    path.write_text(text.replace(before, after))
    return path


def test_a_system_that_does_not_reach_its_reference_fails(reframe, tmp_path):
    references = '{"here:local": {("ring", "64KiB"): {"busbw": (1e6, -0.1, None, "GB/s")}}}'
    check = edited(tmp_path, "str, tuple]]] = {}", f"str, tuple]]] = {references}")
    case = reframe(check)
    assert (case["result"], case["fail_phase"]) == ("fail", "performance")


FORGETS = """
    @run_before("sanity")
    def forget(self):
        self.job._exitcode = None

    @sanity_function
"""


def test_a_batch_system_that_tells_no_status(reframe, tmp_path):
    """As those of PBS, LSF and others may: the result alone counts then."""
    case = reframe(edited(tmp_path, "\n    @sanity_function\n", FORGETS))
    assert case["result"] == "pass", case


def test_wrong_data_fail(reframe, tmp_path):
    faulty = f'executable = "{sys.executable} {HERE / "faulty.py"} skip_the_last_chunk"'
    case = reframe(edited(tmp_path, 'executable = "mpiring"', faulty))
    assert (case["result"], case["fail_phase"]) == ("fail", "sanity")


def test_a_run_that_is_refused_says_why(reframe, tmp_path):
    case = reframe(edited(tmp_path, "self.options.split()]", '["--seed", "x"]]'))
    assert (case["result"], case["fail_phase"]) == ("fail", "sanity")
    assert "mpiring left with 2: " in case["fail_reason"]
    assert "'x' is not a valid integer" in case["fail_reason"]


def test_ranks_that_are_not_there_fail(reframe):
    """As by a launcher that is not the library's: one rank, where two were asked for."""
    case = reframe(LAUNCHER="local")
    assert (case["result"], case["fail_phase"]) == ("fail", "sanity")
    assert "1 ranks, not 2" in case["fail_reason"]
