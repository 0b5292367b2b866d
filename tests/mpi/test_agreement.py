"""Ranks that ask for different things get an error, all of them, and can go on."""

import errno
from dataclasses import replace

import numpy as np
import pytest
from mpi4py import MPI

import mpiring
from mpiring import Disagreement, Level, Options, Topology, UsageError
from mpiring.agreement import on_rank_zero

pytestmark = pytest.mark.mpi


def request(count=8, dtype="f4", op=MPI.SUM, algorithm="ring", **others):
    sendbuf = np.ones(count, dtype)
    mpiring.allreduce(sendbuf, np.empty_like(sendbuf), op, algorithm=algorithm, **others)


DIFFERENT = {
    "count": {"count": 10},
    "dtype": {"count": 4, "dtype": "f8"},  # as many bytes
    "op": {"op": MPI.MAX},
    "algorithm": {"algorithm": "naive"},
    "native": {"algorithm": "native"},
}


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.parametrize("culprit", [0, 1])
def test_another_request_on_one_rank(comm, name, culprit):
    with pytest.raises(Disagreement, match=f"on rank {culprit}"):
        request(**(DIFFERENT[name] if comm.rank == culprit else {}))
    request()  # and the communicator is as good as before


@pytest.mark.mpi(min_size=2)
def test_another_topology_on_one_rank(comm):
    ranks = tuple(range(comm.size))
    groups = (ranks[:1], ranks[1:]) if comm.rank == 1 else (ranks,)
    topology = Topology(comm.size, (Level("node", groups),))
    with pytest.raises(Disagreement, match="topology is"):
        request(algorithm="tree", topology=topology)


@pytest.mark.mpi(min_size=3)
def test_another_tour_on_one_rank(comm):
    """Rings in two orders would wait for each other for ever."""
    first, *others = range(comm.size)
    tour = (first, *(others if comm.rank == 0 else reversed(others)))
    levels = (Level("node", (tuple(range(comm.size)),)),)
    measured = Topology(comm.size, levels, source=f"measured on rank {comm.rank}", tour=tour)
    with pytest.raises(Disagreement, match=r"tour is \(0, 1, 2.* on rank 0, \(0, .* on ranks 1, 2"):
        request(topology=measured, options=Options(ring_order="measured"))
    alike = replace(measured, tour=(first, *others))  # where it was found may differ
    request(topology=alike, options=Options(ring_order="measured"))


@pytest.mark.mpi(min_size=2)
def test_the_error_says_who_differs_in_what(comm):
    with pytest.raises(Disagreement, match=r"count is 10 on rank 0, 8 on ranks? 1"):
        request(count=10 if comm.rank == 0 else 8)


def test_an_unknown_algorithm(comm):
    with pytest.raises(UsageError, match="did you mean ring"):
        request(algorithm="rings")


def test_a_topology_of_another_size(comm):
    ranks = tuple(range(comm.size + 1))
    topology = Topology(comm.size + 1, (Level("node", (ranks,)),))
    with pytest.raises(UsageError, match="the topology has"):
        request(algorithm="tree", topology=topology)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"topology": "nodes.toml"}, "topology is of type str"),
        ({"algorithm": ["ring"]}, r"unknown algorithm \['ring'\]"),
        ({"op": "sum"}, "op is of type str"),
    ],
    ids=str,
)
def test_an_argument_of_the_wrong_type_on_one_rank(comm, wrong, message):
    with pytest.raises(mpiring.MpiringError, match=message):
        request(**(wrong if comm.rank == 1 else {}))


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("step", ["arrays.buffers", "executor.pieces", "executor.empty"])
def test_any_exception_on_one_rank_is_heard_on_all(comm, monkeypatch, step):
    """Out of memory for the rounds or the scratch, say: the others must not wait for it."""

    def no_memory(*arguments, **others):
        raise MemoryError("planted")

    if comm.rank == 1:
        monkeypatch.setattr(f"mpiring.{step}", no_memory)
        with pytest.raises(MemoryError, match="planted"):
            request()
    else:
        with pytest.raises(mpiring.MpiringError, match="rank 1: MemoryError: planted"):
            request()
    monkeypatch.undo()
    request()


@pytest.mark.mpi(min_size=2)
def test_native_is_not_mixed_in_place_and_not(comm):
    buffer = np.ones(3)
    sendbuf = MPI.IN_PLACE if comm.rank == 0 else np.ones(3)
    with pytest.raises(Disagreement, match="in place is True on rank 0"):
        mpiring.allreduce(sendbuf, buffer, algorithm="native")


def test_ours_may_be_mixed_in_place_and_not(comm, scheduled):
    recvbuf = np.full(9, comm.rank + 1.0)
    sendbuf = MPI.IN_PLACE if comm.rank == 0 else recvbuf.copy()
    mpiring.allreduce(sendbuf, recvbuf, algorithm=scheduled)
    np.testing.assert_array_equal(recvbuf, sum(range(1, comm.size + 1)))


def test_what_rank_zero_finds_holds_for_all(comm):
    assert on_rank_zero(comm, lambda: comm.rank + 5) == 5

    def missing():
        with open("/there/is/no/such/file"):
            pass

    with pytest.raises(UsageError, match="/there/is/no/such/file: No such file"):
        on_rank_zero(comm, missing)

    def full():  # a stream, which has no name
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError if comm.rank == 0 else mpiring.MpiringError, match="full"):
        on_rank_zero(comm, full)
    with pytest.raises(ZeroDivisionError if comm.rank == 0 else mpiring.MpiringError):
        on_rank_zero(comm, lambda: 1 / 0)
