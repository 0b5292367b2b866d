"""The whole family on 1 to 9 real ranks, in one launch, and the collectives that its phases are."""

from dataclasses import replace

import numpy as np
import pytest
from mpi4py import MPI
from shapes import ON_NODES, divided, options_of

import mpiring
from mpiring.options import Options

from .conftest import same_on_all_ranks

pytestmark = [pytest.mark.mpi(min_size=9, max_size=9)]


@pytest.fixture(name="group", params=range(1, 10))
def fixture_group(comm, request):
    """The first so many ranks; None on the others, which have nothing to do."""
    group = comm.Split(0 if comm.rank < request.param else MPI.UNDEFINED, comm.rank)
    yield None if group == MPI.COMM_NULL else group
    if group != MPI.COMM_NULL:
        group.Free()
    comm.Barrier()


def variants(name, size):
    """As it is; and its choices, with sends that complete only when received, also in segments."""
    yield Options()
    choices = list(options_of(mpiring.ALGORITHMS[name], size))
    for chosen in dict.fromkeys((choices[0], choices[len(choices) // 2], choices[-1])):
        yield replace(chosen, rendezvous=True)
        yield replace(chosen, segment=64, rendezvous=True)


def test_right_equal_on_all_ranks_and_the_same_each_time(group, scheduled):
    if group is None:
        return
    size, rank = group.size, group.rank
    random = np.random.default_rng([size, rank])
    topology = divided(size, 2) if size > 1 and scheduled in ON_NODES else None
    for count in sorted({0, 1, size - 1, size + 1, 7 * size + 3}):
        exact = np.arange(count) * 1.0 + 1000 * rank
        rounding = random.standard_normal(count).astype("f4")
        for options in variants(scheduled, size):
            how = {"comm": group, "algorithm": scheduled, "topology": topology, "options": options}
            total = np.full(count, -999.0)
            mpiring.allreduce(exact, total, **how)
            expected = size * np.arange(count) + 1000 * sum(range(size))
            np.testing.assert_array_equal(total, expected, err_msg=str(options))
            once, again = np.empty_like(rounding), rounding.copy()
            mpiring.allreduce(rounding, once, **how)
            mpiring.allreduce(MPI.IN_PLACE, again, **how)
            assert once.tobytes() == again.tobytes()
            assert same_on_all_ranks(group, once)


@pytest.mark.parametrize("algorithm", ["ring", "direct"])
def test_reduce_scatter_and_allgather(group, algorithm):
    if group is None:
        return
    size, rank = group.size, group.rank
    for count in (0, 1, 3, 1000):
        whole = np.arange(size * count).reshape(size, count)
        mine, everything = np.full(count, -999), np.full((size, count), -999)
        brought = whole * (rank + 1)
        mpiring.reduce_scatter(brought, mine, comm=group, algorithm=algorithm)
        np.testing.assert_array_equal(mine, whole[rank] * sum(range(1, size + 1)))
        np.testing.assert_array_equal(brought, whole * (rank + 1))
        mpiring.allgather(mine, everything, comm=group, algorithm=algorithm)
        np.testing.assert_array_equal(everything, whole * sum(range(1, size + 1)))
        in_place = np.full((size, count), -999)
        in_place[rank] = mine
        mpiring.allgather(MPI.IN_PLACE, in_place, comm=group, algorithm=algorithm)
        np.testing.assert_array_equal(in_place, everything)
        strided = np.full((size, 2 * count), 7)
        mpiring.allgather(whole[rank], strided[:, ::2], comm=group, algorithm=algorithm)
        np.testing.assert_array_equal(strided[:, ::2], whole)
        assert (strided[:, 1::2] == 7).all()


@pytest.mark.parametrize("algorithm", ["binomial_tree", "flat"])
def test_bcast_from_any_root(group, algorithm):
    if group is None:
        return
    for root in range(group.size):
        buffer = np.full((2, 50), -1.0)
        expected = np.arange(100.0).reshape(2, 50) + root
        if group.rank == root:
            buffer[:] = expected
        mpiring.bcast(buffer, np.int64(root), comm=group, algorithm=algorithm)
        np.testing.assert_array_equal(buffer, expected)
        mpiring.bcast(buffer[:, ::2], root, comm=group, algorithm=algorithm)
        np.testing.assert_array_equal(buffer, expected)


def test_a_plan_of_each_collective_runs_again_and_again(comm):
    size = comm.size
    whole, mine = np.zeros(2 * size), np.zeros(2)
    with (
        mpiring.reduce_scatter_init(whole, mine) as scatter,
        mpiring.allgather_init(mine, whole) as gather,
        mpiring.bcast_init(mine, root=size - 1) as bcast,
    ):
        for run in range(3):
            whole[:] = np.arange(2 * size) + run
            scatter()
            gather()
            np.testing.assert_array_equal(whole, size * (np.arange(2 * size) + run))
            bcast()
            np.testing.assert_array_equal(mine, size * (np.arange(2 * size) + run)[-2:])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mpiring.reduce_scatter(np.zeros(10), np.zeros(2)), "10 elements, recvbuf has 2"),
        (lambda: mpiring.reduce_scatter(np.zeros(9), np.zeros(1, "f4")), "float64, recvbuf is"),
        (lambda: mpiring.allgather(np.zeros(2), np.zeros(10)), "2 elements, recvbuf has 10"),
        (lambda: mpiring.allgather(MPI.IN_PLACE, np.zeros(10)), "no multiple of 9 ranks"),
        (lambda: mpiring.bcast(np.zeros(2), root=9), "root is 9, the job has ranks 0 to 8"),
        (lambda: mpiring.bcast(np.zeros(2), root=0.0), "root is of type float"),
        (lambda: mpiring.bcast([1, 2]), "buffer is of type list"),
        (lambda: mpiring.bcast(np.zeros(2), algorithm="binomial"), "did you mean binomial_tree"),
        (
            lambda: mpiring.allreduce(
                np.zeros(2), np.zeros(2), algorithm="torus_ring", options=Options(torus=(2, 4))
            ),
            "a torus of 2 x 4 has 8 ranks, the job has 9",
        ),
        (
            lambda: mpiring.allreduce(np.zeros(2), np.zeros(2), options=Options(radix=3)),
            "ring has no radix to choose",
        ),
        (
            lambda: mpiring.allreduce(np.zeros(2), np.zeros(2), options=Options(segment=2)),
            "a segment of 2 B is smaller than an element of 8 B",
        ),
        (lambda: mpiring.allreduce(np.zeros(2), np.zeros(2), options=3), "options is of type int"),
    ],
)
def test_what_cannot_be_done_is_refused(comm, call, message):
    with pytest.raises(mpiring.MpiringError, match=message):
        call()


def test_ranks_that_call_different_collectives_hear_of_it(comm):
    buffer = np.zeros(9)
    arguments = (buffer,) if comm.rank == 4 else (MPI.IN_PLACE, buffer)
    call = mpiring.bcast if comm.rank == 4 else mpiring.allreduce
    with pytest.raises(mpiring.Disagreement, match="collective is"):
        call(*arguments)


def test_options_that_differ_between_ranks(comm):
    with pytest.raises(mpiring.Disagreement, match="options is"):
        mpiring.allreduce(
            np.zeros(9),
            np.zeros(9),
            algorithm="recursive_multiplying",
            options=Options(radix=2 + comm.rank % 2),
        )
