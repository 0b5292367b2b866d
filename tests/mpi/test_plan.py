"""Plans: started and waited for again and again, bounded in memory, leaving nothing behind."""

import ctypes
import gc
import sys
import tracemalloc
import weakref

import numpy as np
import pytest
from mpi4py import MPI

import mpiring
from mpiring.chunks import Split
from mpiring.cost import PAGE, total, traffic
from mpiring.options import DEFAULTS
from mpiring.plan import _ABANDONED

pytestmark = pytest.mark.mpi


def test_a_plan_reads_what_is_then_in_the_buffer(comm, algorithm):
    sendbuf, recvbuf = np.empty(11), np.empty(11)
    with mpiring.allreduce_init(sendbuf, recvbuf, algorithm=algorithm) as plan:
        for run in range(5):
            sendbuf[:] = np.arange(11) * (comm.rank + 1) + run
            plan.start()
            plan.wait()
            expected = np.arange(11) * sum(range(1, comm.size + 1)) + run * comm.size
            np.testing.assert_array_equal(recvbuf, expected)


def test_two_plans_under_way_at_once_do_not_mix_up_their_messages(comm, scheduled):
    a, b = np.full(7, 1.0 + comm.rank), np.full(7, 1000.0 + comm.rank)
    sum_a, sum_b = np.empty(7), np.empty(7)
    first = mpiring.allreduce_init(a, sum_a, algorithm=scheduled)
    second = mpiring.allreduce_init(b, sum_b, algorithm=scheduled)
    for _ in range(3):
        first.start()
        second.start()
        second.wait()
        first.wait()
        np.testing.assert_array_equal(sum_a, comm.allreduce(1.0 + comm.rank))
        np.testing.assert_array_equal(sum_b, comm.allreduce(1000.0 + comm.rank))


def test_a_plan_out_of_turn_is_refused(comm, algorithm):
    plan = mpiring.allreduce_init(np.zeros(3), np.zeros(3), algorithm=algorithm)
    with pytest.raises(RuntimeError, match="wait"):
        plan.wait()
    plan.start()
    for again in (plan.start, plan):
        with pytest.raises(RuntimeError, match="started"):
            again()
    with pytest.raises(RuntimeError, match="started"):
        plan.free()
    plan.wait()
    plan()
    plan.free()
    plan.free()
    for again in (plan.start, plan):
        with pytest.raises(RuntimeError, match="freed"):
            again()


def test_a_plan_dropped_while_started_keeps_its_buffers(comm, scheduled):
    """MPI may still write to them; what arrives has to find its place."""
    recvbuf = np.zeros(50000)
    plan = mpiring.allreduce_init(np.ones(50000), recvbuf, algorithm=scheduled)
    held = len(_ABANDONED)
    plan.start()
    del plan
    gc.collect()
    assert len(_ABANDONED) == held + 1
    comm.Barrier()
    mpiring.allreduce(np.ones(50000), recvbuf, algorithm=scheduled)
    np.testing.assert_array_equal(recvbuf, comm.size)


@pytest.mark.parametrize("in_place", [False, True])
def test_scratch_is_at_most_one_buffer(comm, scheduled, in_place, two_nodes):
    for count in (0, 1, 97, 4099, 100000):
        recvbuf = np.zeros(count)
        sendbuf = MPI.IN_PLACE if in_place else np.zeros(count)
        plan = mpiring.allreduce_init(sendbuf, recvbuf, algorithm=scheduled, topology=two_nodes)
        # A piece of a buffer is rounded up to whole elements, for each of the peers.
        rounding = comm.size * recvbuf.itemsize
        assert plan.scratch_nbytes <= max(recvbuf.nbytes, PAGE) + rounding
        plan.free()


def test_a_strided_buffer_costs_one_copy_more(comm):
    whole = np.zeros(2000)
    plan = mpiring.allreduce_init(whole[::2], np.zeros(1000), algorithm="ring")
    plain = mpiring.allreduce_init(np.zeros(1000), np.zeros(1000), algorithm="ring")
    assert plan.scratch_nbytes == plain.scratch_nbytes + 8000


OF_EACH_COLLECTIVE = {
    "allreduce": lambda whole, part: mpiring.allreduce_init(whole, np.empty(whole.shape)),
    "reduce_scatter": lambda whole, part: mpiring.reduce_scatter_init(whole, part),
    "allgather": lambda whole, part: mpiring.allgather_init(part, whole),
    "bcast": lambda whole, part: mpiring.bcast_init(whole),
}
"""Plans of an array of as many parts as there are ranks, and of one such part."""


@pytest.mark.parametrize("collective", OF_EACH_COLLECTIVE)
@pytest.mark.parametrize("step", [1, 2], ids=["contiguous", "strided"])
def test_scratch_is_what_a_plan_allocates(comm, collective, step):
    whole, part = np.ones(50000 * comm.size * step)[::step], np.ones(50000 * step)[::step]
    make = OF_EACH_COLLECTIVE[collective]
    make(whole, part).free()  # what is made once for a communicator is there
    tracemalloc.start()
    plan = make(whole, part)
    beside = 8 * whole.size if collective == "allreduce" else 0  # its receive buffer
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert allocated - beside == pytest.approx(plan.scratch_nbytes, abs=40000)
    plan.free()


@pytest.mark.parametrize("step", [1, 2], ids=["contiguous", "strided"])
def test_a_freed_plan_holds_no_buffer(comm, algorithm, step):
    """Also while its name is bound, as after a `with` block."""
    sendbuf, recvbuf = np.ones(30000), np.zeros(30000)
    mpiring.allreduce(sendbuf[::step], recvbuf[::step], algorithm=algorithm)
    tracemalloc.start()
    with mpiring.allreduce_init(sendbuf[::step], recvbuf[::step], algorithm=algorithm) as plan:
        plan()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 50000
    arrays = [weakref.ref(sendbuf), weakref.ref(recvbuf)]
    del sendbuf, recvbuf
    gc.collect()
    assert all(array() is None for array in arrays)
    assert plan.algorithm


def test_nothing_large_is_allocated_while_a_plan_runs(comm, scheduled):
    recvbuf = np.zeros(100000)
    plan = mpiring.allreduce_init(np.ones(100000), recvbuf, algorithm=scheduled)
    plan()
    tracemalloc.start()
    plan()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20000
    assert recvbuf[-1] == comm.size


def test_traffic_is_what_is_sent(comm, scheduled, two_nodes):
    for count in (0, 1, 97, 50001):
        plan = mpiring.allreduce_init(
            np.zeros(count), np.zeros(count), algorithm=scheduled, topology=two_nodes
        )
        split = Split(count, plan.schedule.chunks)
        assert plan.traffic == traffic(plan.schedule.rounds(comm.rank), split)
        schedule = mpiring.ALGORITHMS[scheduled].scheduled(two_nodes, DEFAULTS, count, 8)
        assert plan.traffic == total(schedule, two_nodes, count, 8).ranks[comm.rank]


def allocated():
    """Return the bytes that malloc has handed out: to us, to numpy and to the MPI library.

    How large the process is would be no measure: what is free already may or may not be enough.
    """

    class Mallinfo2(ctypes.Structure):
        _fields_ = [("numbers", ctypes.c_size_t * 10)]

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo2
    numbers = mallinfo2().numbers
    return numbers[4] + numbers[7]  # hblkhd, in maps of their own, and uordblks, in the heap


@pytest.mark.mpi(min_size=2, max_size=2)
def test_thousands_of_calls_leak_nothing(comm, algorithm):
    sendbuf, recvbuf = np.ones(100), np.zeros(100)

    def ours():
        mpiring.allreduce(sendbuf, recvbuf, algorithm=algorithm)

    def of_the_library():
        comm.Allreduce_init(sendbuf, recvbuf).Free()

    def grows(call):
        """Return how many bytes and how many of Python's small blocks each of many calls leaves."""
        for number in (500, 3000):
            before = np.array([allocated(), sys.getallocatedblocks()])
            for _ in range(number):
                call()
            gc.collect()
        return (np.array([allocated(), sys.getallocatedblocks()]) - before) / number

    # Open MPI 5.0 keeps a kilobyte of each persistent request that is freed.
    leaked = grows(of_the_library)[0] if algorithm == "native_persistent" else 0
    nbytes, blocks = grows(ours)
    assert nbytes < leaked + 50  # the least that a plan holds is kilobytes
    assert blocks < 0.5  # some hundred tuples that Python keeps at hand come and go


@pytest.mark.mpi(min_size=2, max_size=3)
def test_the_private_communicator_is_freed_with_the_users(comm):
    """Libraries have some thousand communicators; a leaked duplicate for each would run out."""
    recvbuf = np.zeros(3)
    for _ in range(3000):
        mine = comm.Dup()
        mpiring.allreduce(np.ones(3), recvbuf, comm=mine)
        mine.Free()
    np.testing.assert_array_equal(recvbuf, comm.size)


def test_a_plan_may_outlive_its_communicator(comm):
    mine = comm.Dup()
    plan = mpiring.allreduce_init(np.ones(3), np.zeros(3), comm=mine)
    plan()
    mine.Free()
    plan.free()


def test_only_the_group_that_calls_is_needed(comm):
    group = comm.Split(comm.rank % 2, key=-comm.rank)
    if comm.rank % 2 == 0:
        recvbuf = np.zeros(5)
        mpiring.allreduce(np.full(5, comm.rank + 1.0), recvbuf, comm=group)
        np.testing.assert_array_equal(recvbuf, sum(range(1, comm.size + 1, 2)))
    group.Free()


def test_what_is_no_communicator_of_ours(comm):
    for wrong, error, message in [
        (MPI.COMM_NULL, ValueError, "COMM_NULL"),
        ("world", TypeError, "comm is a str"),
        (None, TypeError, "comm is a NoneType"),
    ]:
        with pytest.raises(error, match=message):
            mpiring.allreduce(np.zeros(1), np.zeros(1), comm=wrong)


@pytest.mark.mpi(min_size=2)
def test_an_intercommunicator_is_refused(comm):
    half = comm.Split(comm.rank % 2)
    between = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
    with pytest.raises(TypeError, match="intercommunicator"):
        mpiring.allreduce(np.zeros(1), np.zeros(1), comm=between)
    between.Free()
    half.Free()


@pytest.mark.mpi(min_size=2)
def test_messages_of_the_program_are_left_alone(comm, algorithm):
    """A receive for anything from anyone is open while the allreduce runs."""
    mailbox, recvbuf = np.zeros(1), np.zeros(50)
    request = comm.Irecv(mailbox, MPI.ANY_SOURCE, MPI.ANY_TAG)
    mpiring.allreduce(np.ones(50), recvbuf, algorithm=algorithm)
    comm.Send(np.full(1, 5.0), (comm.rank + 1) % comm.size)
    request.Wait()
    assert mailbox[0] == 5
    np.testing.assert_array_equal(recvbuf, comm.size)
