import pytest

from mpiring.errors import UsageError
from mpiring.launcher import check_world, launched, speaks

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
    ("size", "environ"),
    [
        (1, {}),
        (4, SLURM),
        (2, SLURM),  # mpirun -n 2 inside a larger allocation
        (1, SLURM | {"PMI_RANK": "0", "PMI_SIZE": "1"}),  # mpirun -n 1 inside an allocation
    ],
)
def test_worlds_that_are_as_they_should_be(size, environ):
    check_world(size, "MPICH 5", environ)
