"""Run commands as users do: `mpirun` from PATH, no terminal, and an end to everything."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
MPIRING = [sys.executable, "-m", "mpiring"]
LAUNCHER_VARIABLES = ("PMI_", "PMIX_", "OMPI_COMM_WORLD_", "SLURM_", "PALS_", "MPI_LOCAL")


class Finished(NamedTuple):
    status: int
    stdout: str
    stderr: str


def clean_environment(**changes):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_VARIABLES)}
    return kept | changes


def run(command, timeout=120, **changes):
    """Run to the end; a command that hangs is killed with all it started, and fails the test."""
    with start(command, **changes) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            raise AssertionError(f"no end after {timeout} s: {command}\n{stdout}{stderr}") from None
    return Finished(process.returncode, stdout, stderr)


def start(command, cwd=None, **changes):
    return subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=clean_environment(**changes),
        start_new_session=True,
    )


def mpirun(ranks, *command):
    return ["mpirun", "-n", str(ranks), *command]


def mpiring(ranks, *arguments, **options):
    """Run mpiring on `ranks` ranks, or without a launcher for 0."""
    command = [*MPIRING, *arguments]
    return run(mpirun(ranks, *command) if ranks else command, **options)


def faulty(ranks, fault, *arguments, **options):
    return run(mpirun(ranks, sys.executable, HERE / "faulty.py", fault, *arguments), **options)


def assert_refused(finished, message):
    """Assert that a command said so once and did nothing else."""
    assert finished.status == 2, finished.stderr
    assert finished.stderr.count(message) == 1, finished.stderr
    assert "Traceback" not in finished.stderr
    assert finished.stdout == ""
