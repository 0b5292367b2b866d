import os
import subprocess

import pytest
from command import MPIRING, assert_refused, clean_environment, mpiring

from mpiring.errors import UsageError
from mpiring.launcher import check_world, is_spoken_for, launched, speaks

SLURM = {"SLURM_NTASKS": "4", "SLURM_PROCID": "2"}
HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "4"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"}


def test_who_started_this():
    assert launched({}) is None
    assert launched(SLURM)[1:] == (2, 4)
    assert launched({"SLURM_NTASKS": "4"})[1:] == (0, 4)  # in the shell of an allocation
    assert launched(SLURM | HYDRA)[1:] == (0, 4)
    assert launched(HYDRA | OPEN_MPI)[1:] == (1, 3)
    assert launched({"PMI_RANK": "x", "PMI_SIZE": "4"}) is None


def test_rank_zero_speaks():
    assert speaks({})
    assert speaks(HYDRA)
    assert not speaks(SLURM)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (SLURM, "Slurm started 4 ranks, MPICH 5 sees 1: start it with srun --mpi"),
        (HYDRA, "started 4 ranks, MPICH 5 sees 1: start it with the mpirun that belongs"),
        (OPEN_MPI, "Open MPI's mpirun started 3 ranks"),
    ],
)
def test_a_world_of_one_where_several_were_started(environ, message):
    with pytest.raises(UsageError, match=message):
        check_world(1, "MPICH 5", environ)


@pytest.mark.parametrize(
    ("size", "environ", "silent"),
    [
        (1, {}, False),
        (1, HYDRA, False),  # rank 0 of those that were started
        (1, OPEN_MPI, True),
        (1, SLURM, True),
        (2, SLURM | {"SLURM_STEP_NUM_TASKS": "4"}, False),  # this world has a rank 0 of its own
        (3, OPEN_MPI, False),
        (1, SLURM | {"PMI_RANK": "0", "PMI_SIZE": "1"}, False),  # mpirun -n 1 in an allocation
    ],
)
def test_of_worlds_of_one_the_launchers_rank_0_speaks(size, environ, silent):
    assert is_spoken_for(size, environ) == silent


def test_at_a_terminal_everyone_is_told():
    """As in a shell that a launcher started, which still has its variables."""
    ours, theirs = os.openpty()
    environ = clean_environment(OMPI_COMM_WORLD_RANK="2", OMPI_COMM_WORLD_SIZE="3")
    command = [*MPIRING, "bench", "-s", "8"]
    finished = subprocess.run(command, stderr=theirs, env=environ, timeout=60, check=False)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert finished.returncode == 2
    assert "Open MPI's mpirun started 3 ranks" in said


SRUN = SLURM | {"SLURM_STEP_NUM_TASKS": "4"}


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (SRUN, "Slurm started 4 ranks, MPICH 5 sees 2: start it with srun --mpi"),
        (SRUN | HYDRA, "Slurm started 4 ranks, MPICH 5 sees 2: start it with srun --mpi"),
        (HYDRA, "started 4 ranks, MPICH 5 sees 2: .* unset PMI_SIZE if it is another job's"),
        (OPEN_MPI, "Open MPI's mpirun started 3 ranks, MPICH 5 sees 2: .* unset OMPI_COMM_WORLD"),
    ],
)
def test_a_world_of_fewer_than_were_started(environ, message):
    with pytest.raises(UsageError, match=message):
        check_world(2, "MPICH 5", environ)


@pytest.mark.parametrize(
    ("size", "environ"),
    [
        (1, {}),
        (3, HYDRA | OPEN_MPI),  # what one of them has left in the shell does not count
        (4, HYDRA | OPEN_MPI),
        (2, SLURM | {"SLURM_STEP_NUM_TASKS": "2"}),  # mpirun's agents, which srun started
        (4, SLURM),
        (2, SLURM),  # mpirun -n 2 inside a larger allocation
        (1, SLURM | {"PMI_RANK": "0", "PMI_SIZE": "1"}),  # mpirun -n 1 inside an allocation
    ],
)
def test_worlds_that_are_as_they_should_be(size, environ):
    check_world(size, "MPICH 5", environ)


STALE = (
    {"PMI_RANK": "1", "PMI_SIZE": "4"}
    if os.environ.get("MPIRING_MPI") == "openmpi"
    else {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}
)
"""Variables of another launcher, as in a shell that an earlier job has left."""


def test_rank_zero_of_mpi_speaks_whatever_a_stale_variable_says():
    finished = mpiring(2, "bench", "-q", "-a", "ring", "-s", "8", "--repetitions", "6", **STALE)
    assert finished.status == 0, finished.stderr
    assert finished.stdout.count("8 B  ring") == 1


@pytest.mark.parametrize("ranks", [0, 2])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "none.json", "none.json"], "mpiring: error: none.json: No such file"),
        (["bench", "-s", "x"], "'x' is not a size"),
    ],
    ids=str,
)
def test_errors_are_seen_whatever_a_stale_variable_says(ranks, arguments, said):
    finished = mpiring(ranks, *arguments, **STALE)
    assert_refused(finished, said)
