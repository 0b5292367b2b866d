"""Memory that ranks share: arrays in it, `shared` on those and on ordinary arrays, and its end."""

import gc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from shapes import divided

import mpiring
from mpiring import Disagreement, node_memory
from mpiring.communicator import private
from mpiring.options import Options
from mpiring.topology import Level, Topology

from .conftest import same_on_all_ranks

pytestmark = [pytest.mark.mpi]

BLOCK = node_memory.BLOCK // 8
COUNTS = [0, 1, 3, 17, BLOCK - 1, BLOCK, 2 * BLOCK + 1, 5 * BLOCK + 3]
CALLS = {1: 10_000, 2: 1_000_000, 3: 10_000, 4: 10_000}
"""By the number of ranks: with more than there are cores they wait for each other's turn."""
MAKE = {
    "ordinary": lambda comm, count, dtype: np.empty(count, dtype),
    "node-shared": lambda comm, count, dtype: mpiring.empty(count, dtype, comm=comm),
}


@pytest.fixture(params=MAKE)
def make(comm, request):
    return lambda count, dtype="f8": MAKE[request.param](comm, count, dtype)


def in_shared_memory(comm, array):
    return min(node_memory.place_of(array, private(comm).windows)) >= 0


@pytest.mark.parametrize("count", COUNTS)
def test_right_again_and_again_and_in_place(comm, make, count):
    contribution, total = make(count), make(count)
    everyone = sum(range(comm.size))
    with (
        mpiring.allreduce_init(contribution, total, algorithm="shared") as plan,
        mpiring.allreduce_init(MPI.IN_PLACE, contribution, algorithm="shared") as in_place,
    ):
        staged = comm.size > 1 and not in_shared_memory(comm, contribution)
        assert bool(plan.remark) == bool(in_place.remark) == staged
        for run in range(5):  # odd and even numbers of blocks take turns on the stage
            contribution[:] = np.arange(count) * (run + 1) + 1000 * comm.rank
            before, total[:] = contribution.copy(), -1
            expected = np.arange(count) * (run + 1) * comm.size + 1000 * everyone
            plan()
            np.testing.assert_array_equal(total, expected)
            np.testing.assert_array_equal(contribution, before)
            in_place()
            np.testing.assert_array_equal(contribution, expected)


@pytest.mark.parametrize("count", [3, BLOCK + 1])
def test_a_users_operation_changes_nothing_but_the_result(comm, make, count):
    """Its operands are other ranks' memory, where MPI_Reduce_local wants to leave the result."""

    def larger_magnitude(left, right, datatype):
        a, b = np.frombuffer(left, "f8"), np.frombuffer(right, "f8")
        b[:] = np.where(np.abs(a) > np.abs(b), a, b)

    op = MPI.Op.Create(larger_magnitude, commute=True)
    contribution, total = make(count), make(count)
    parts = [np.sin(np.arange(count) + 10.0 * rank) for rank in range(comm.size)]
    expected = np.max(np.abs(parts), axis=0)
    contribution[:] = parts[comm.rank]
    mpiring.allreduce(contribution, total, op, algorithm="shared")
    np.testing.assert_array_equal(contribution, parts[comm.rank])
    np.testing.assert_array_equal(np.abs(total), expected)
    mpiring.allreduce(MPI.IN_PLACE, contribution, op, algorithm="shared")
    np.testing.assert_array_equal(np.abs(contribution), expected)
    op.Free()


def test_what_rounds_has_the_same_bits_everywhere(comm, make):
    random = np.random.default_rng(comm.rank)
    contribution, total = make(10_001, "f4"), make(10_001, "f4")
    contribution[:] = random.standard_normal(10_001)
    mpiring.allreduce(contribution, total, algorithm="shared")
    assert same_on_all_ranks(comm, total)
    ring = np.empty_like(total)
    mpiring.allreduce(contribution, ring, algorithm="reduce_scatter")
    np.testing.assert_array_equal(total, ring)  # both combine in rank order


@pytest.mark.parametrize("dtype", ["i1", "u2", "f4", "c16", "?", "bfloat16"])
def test_any_dtype(comm, make, dtype):
    dtype = mpiring.arrays.dtype_named(dtype) if dtype == "bfloat16" else np.dtype(dtype)
    contribution, total = make(999, dtype), make(999, dtype)
    contribution[:] = ((np.arange(999) + comm.rank) % 3).astype(dtype)
    mpiring.allreduce(contribution, total, MPI.MAX if dtype.kind != "c" else MPI.SUM,
                      algorithm="shared")  # fmt: skip
    rows = [((np.arange(999) + rank) % 3).astype(dtype) for rank in range(comm.size)]
    expected = np.sum(rows, axis=0) if dtype.kind == "c" else np.max(rows, axis=0)
    np.testing.assert_array_equal(total, expected.astype(dtype))


@pytest.mark.parametrize("leaders", [None, 1])
@pytest.mark.parametrize("segment", [None, 4096])
def test_leaders_segments_and_messages_between_nodes(comm, make, leaders, segment):
    """The ranks of this machine as those of one node and of two, in blocks and dealt out."""
    if comm.size == 1:
        return
    for groups, deal in ((1, False), (2, False), (2, True)):
        topology = divided(comm.size, groups, deal)
        contribution, total = make(30_000), make(30_000)
        options = Options(leaders=leaders, segment=segment)
        how = {"algorithm": "shared", "topology": topology, "options": options}
        with mpiring.allreduce_init(contribution, total, **how) as plan:
            for run in range(3):
                contribution[:] = np.arange(30_000) * (run + 1) + comm.rank
                plan()
                expected = np.arange(30_000) * (run + 1) * comm.size + sum(range(comm.size))
                np.testing.assert_array_equal(total, expected)


def test_ranks_meet_in_rank_order_whatever_the_order_of_their_group(comm, make):
    size = comm.size
    backwards = Topology(size, (Level("node", (tuple(range(size))[::-1],)),))
    contribution, total, expected = (make(999, "f4") for _ in range(3))
    contribution[:] = np.random.default_rng(comm.rank).standard_normal(999)
    mpiring.allreduce(contribution, total, algorithm="shared", topology=backwards)
    mpiring.allreduce(contribution, expected, algorithm="tree", topology=backwards)
    np.testing.assert_array_equal(total, expected)


def test_a_plan_keeps_its_arrays(comm):
    def plan():
        contribution, total = mpiring.empty(1000), mpiring.empty(1000)
        contribution[:] = comm.rank
        return mpiring.allreduce_init(contribution, total, algorithm="shared")

    with plan() as kept:
        gc.collect()
        for _ in range(3):  # would free the windows of arrays that nobody has
            mpiring.empty(1000)
        kept()


@pytest.mark.parametrize("kind", MAKE)
def test_a_plan_that_outlives_its_communicator_says_so(comm, kind):
    other = comm.Dup()
    arrays = [MAKE[kind](other, 9, "f8") for _ in range(2)]
    plan = mpiring.allreduce_init(*arrays, comm=other, algorithm="shared")
    other.Free()
    if comm.size > 1:
        with pytest.raises(RuntimeError, match="the communicator of this plan was freed"):
            plan()


def test_communicators_give_their_memory_back(comm):
    def maps():
        lines = Path("/proc/self/maps").read_text().splitlines()
        return sum("shm" in line or "osc" in line for line in lines)

    counts, held = [], []
    gc.collect()  # what earlier tests left goes at some time or other
    for _ in range(4):
        before = maps()
        other = comm.Dup()
        array = mpiring.empty(100_000, comm=other)
        mpiring.allreduce(np.ones(9), np.ones(9), comm=other, algorithm="shared")
        held.append(maps() - before)
        del array
        other.Free()
        counts.append(maps())
    assert comm.size == 1 or min(held) > 0, held  # one rank has nobody to share it with
    assert counts[3] <= counts[1], counts


def test_slices_of_shared_arrays_are_shared_arrays(comm):
    whole = mpiring.empty((4, 1000), "f4")
    assert whole.shape == (4, 1000)
    assert (whole == 0).all()
    whole[:] = np.arange(4000).reshape(4, 1000) + comm.rank
    with mpiring.allreduce_init(whole[1], whole[3], algorithm="shared") as plan:
        assert plan.scratch_nbytes <= (65536 if comm.size > 2 else 0)
        plan()
    np.testing.assert_array_equal(
        whole[3], (np.arange(1000, 2000) * comm.size + sum(range(comm.size))).astype("f4")
    )
    assert (whole[2] == np.arange(2000, 3000) + comm.rank).all()


def test_one_rank_with_an_ordinary_array_makes_all_use_the_stage(comm):
    mine = mpiring.empty(1000)
    contribution = np.empty(1000) if comm.rank == comm.size - 1 else mine
    contribution[:] = np.arange(1000) + comm.rank
    total = mpiring.empty(1000)
    mpiring.allreduce(contribution, total, algorithm="shared")
    np.testing.assert_array_equal(total, np.arange(1000) * comm.size + sum(range(comm.size)))


def test_plans_that_overlap_in_time(comm, make):
    first, second = (make(3000), make(3000)), (make(50), make(50))
    with (
        mpiring.allreduce_init(*first, algorithm="shared") as one,
        mpiring.allreduce_init(*second, algorithm="shared") as other,
    ):
        for run in range(4):
            first[0][:], second[0][:] = run + comm.rank, 2 * run - comm.rank
            one.start()
            other.start()
            one.wait()
            other.wait()
            everyone = sum(range(comm.size))
            assert (first[1] == run * comm.size + everyone).all()
            assert (second[1] == 2 * run * comm.size - everyone).all()


def test_a_message_that_is_still_under_way_does_not_stop_the_others(comm):
    """The peer waits for it before it comes: a rank that waits in memory has to let MPI go on."""
    if comm.size == 1:
        return
    big, total = np.full(4 << 20, comm.rank, "u1"), mpiring.empty(10)
    contribution = mpiring.empty(10)
    contribution[:] = 1
    with mpiring.allreduce_init(contribution, total, algorithm="shared") as plan:
        if comm.rank == 0:
            request = comm.Isend(big, 1)
            plan()
            request.Wait()
        else:
            if comm.rank == 1:
                comm.Recv(big, 0)
            plan()
    assert (total == comm.size).all()


def test_memory_is_given_back_when_all_have_dropped_it(comm):
    comm = comm.Dup()
    kept = private(comm).make_windows().kept
    first, second, third = (mpiring.empty(1000, comm=comm) for _ in range(3))
    part = second[10:20]
    del second, third
    if comm.rank == 0:
        del first
    gc.collect()
    fourth = mpiring.empty(10, comm=comm)
    # The second is still looked at everywhere; the first is gone on rank 0 alone.
    assert [window.number for window in kept] == ([1, 3] if comm.size == 1 else [0, 1, 3])
    part[:], fourth[:] = comm.rank, comm.rank
    if comm.rank > 0:
        del first
    del fourth
    gc.collect()
    fifth = mpiring.empty(10, comm=comm)
    assert [window.number for window in kept] == [1, 4]
    assert (part == comm.rank).all()
    assert (fifth == 0).all()
    comm.Free()


def test_arrays_of_another_communicator_are_refused(comm):
    other = comm.Dup()
    foreign = mpiring.empty(10, comm=other)
    mine = mpiring.empty(10)
    with pytest.raises(mpiring.UsageError, match="shared memory of another communicator"):
        mpiring.allreduce(foreign, mine, algorithm="shared")
    foreign[:] = comm.rank  # elsewhere it is an array as any other
    mpiring.allreduce(foreign, mine, algorithm="ring")
    assert (mine == sum(range(comm.size))).all()
    other.Free()
    assert (foreign == comm.rank).all(), "an array outlives its communicator"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "no array of shape -1"),
        (("many",), "no array of shape 'many'"),
        ((10, "f3"), "dtype 'f3'"),
        ((10, "O"), "its elements are not numbers"),
        ((1 << 50,), r"of shared memory, /dev/shm has"),
    ],
)
def test_arrays_that_cannot_be(comm, arguments, message):
    with pytest.raises(mpiring.MpiringError, match=message):
        mpiring.empty(*arguments)
    assert mpiring.empty(3).size == 3


def test_ranks_of_which_some_make_an_array_learn_it(comm):
    if comm.rank == 0:
        call = partial(mpiring.empty, 9, comm=comm)
    else:
        call = partial(mpiring.allreduce, np.ones(9), np.ones(9), comm=comm)
    if comm.size > 1:
        with pytest.raises(Disagreement, match="collective is empty on rank 0, allreduce on rank"):
            call()


@pytest.mark.parametrize("in_place", [False, True])
def test_what_is_unfinished_is_told_as_scratch(comm, make, in_place):
    """Whatever is reduced lands in an array of the caller's or of the stage, or is scratch."""
    recvbuf = make(3000)
    sendbuf = MPI.IN_PLACE if in_place else make(3000)
    options = Options(segment=2048)
    plan = mpiring.allreduce_init(sendbuf, recvbuf, algorithm="shared", options=options)
    calls = plan._finish if in_shared_memory(comm, recvbuf) else []
    written = [call.args[-1] for call in calls if getattr(call, "func", None) is np.add]
    elsewhere = [out.base for out in written if not np.shares_memory(out, recvbuf)]
    assert sum({id(base): base.nbytes for base in elsewhere}.values()) == plan.scratch_nbytes
    if not in_place or comm.size < 3:
        assert plan.scratch_nbytes == 0
    plan.free()


def test_what_one_rank_cannot_have_no_rank_gets(comm):
    with pytest.raises(mpiring.MpiringError):
        mpiring.empty(10, "f3" if comm.rank == comm.size - 1 else "f4")


def test_ranks_that_the_topology_alone_puts_on_one_node(comm, monkeypatch):
    if comm.size == 1:
        return
    ours = private(comm)
    monkeypatch.setattr(ours, "topology", divided(comm.size, comm.size))
    with pytest.raises(mpiring.UsageError, match="on one node by the topology, and share no mem"):
        mpiring.allreduce(
            np.zeros(3), np.zeros(3), algorithm="shared", topology=divided(comm.size, 1)
        )


def test_an_operation_that_does_not_commute_is_refused(comm):
    op = MPI.Op.Create(lambda *arguments: None, commute=False)
    with pytest.raises(mpiring.UsageError, match="shared needs an operation that commutes"):
        mpiring.allreduce(np.zeros(3), np.zeros(3), op, algorithm="shared")
    op.Free()


def test_data_that_change_in_every_call(comm, make):
    """Each has to be seen by all before it is gone."""
    calls = CALLS.get(comm.size, 1000)
    contribution, total = make(64), make(64)
    with mpiring.allreduce_init(contribution, total, algorithm="shared") as plan:
        steps = np.arange(64)
        for call in range(calls):
            np.multiply(steps, call + comm.rank, out=contribution)
            plan()
            if total[call % 64] != (call % 64) * (call * comm.size + sum(range(comm.size))):
                raise AssertionError(f"call {call}: {total}")
