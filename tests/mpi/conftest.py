"""What the tests on real ranks share. Every test runs on all ranks; loops over cases are inside."""

import numpy as np
import pytest

from mpiring import ALGORITHMS, Level, Topology


@pytest.fixture(name="comm")
def fixture_comm():
    from mpi4py import MPI

    return MPI.COMM_WORLD


@pytest.fixture(name="algorithm", params=list(ALGORITHMS))
def fixture_algorithm(request):
    return request.param


@pytest.fixture(name="scheduled", params=[a.name for a in ALGORITHMS.values() if a.schedule])
def fixture_scheduled(request):
    return request.param


@pytest.fixture(name="typical", params=["naive", "ring", "double_binary_tree"])
def fixture_typical(request):
    """For what does not depend on the algorithm: one without chunks, with chunks, in segments."""
    return request.param


@pytest.fixture(name="two_nodes")
def fixture_two_nodes(comm):
    """The ranks in two nodes, of sizes that differ where the number of ranks is odd."""
    half = max(1, comm.size // 2)
    nodes = [tuple(range(half)), tuple(range(half, comm.size))]
    return Topology(comm.size, (Level("node", tuple(node for node in nodes if node)),))


def counts(size):
    return sorted({0, 1, 2, 3, size - 1, size, size + 1, 2 * size - 1, 97, 4099})


def fold(ufunc, arrays):
    """Reduce in rank order in the dtype itself: what every exact result has to equal."""
    total = arrays[0].copy()
    with np.errstate(all="ignore"):
        for array in arrays[1:]:
            ufunc(total, array, out=total)
    return total


def same_on_all_ranks(comm, array):
    everyone = comm.allgather(np.ascontiguousarray(array).tobytes())
    return all(held == everyone[0] for held in everyone)
