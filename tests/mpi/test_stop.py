"""A signal to one rank stops all of them, and nothing else does."""

import os
import signal
import time

import pytest

from mpiring.errors import Stopped, TimeIsUp
from mpiring.sampling import Sampler, Sampling
from mpiring.signals import ENDS, SIGNALS, WARNINGS, Hearing
from mpiring.stop import Stop

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_to_the_last_rank(comm, number):
    before = signal.getsignal(number)
    with Hearing() as hearing:
        stop = Stop(comm, hearing)
        stop()
        if comm.rank == comm.size - 1:
            os.kill(os.getpid(), number)
        with pytest.raises(Stopped, match=f"^stopped by {number.name}$") as raised:
            stop()
    assert isinstance(raised.value, TimeIsUp) == (number in WARNINGS)
    assert signal.getsignal(number) is before


def test_the_time_of_one_rank_is_up(comm):
    stop = Stop(comm, Hearing(), 1000, "job 17")
    stop()
    if comm.rank == 0:
        stop.deadline = time.monotonic() - 1
    with pytest.raises(TimeIsUp, match=r"^the time of job 17 is up$"):
        stop()


def test_a_signal_counts_more_than_the_time_of_another_rank(comm):
    with Hearing() as hearing:
        stop = Stop(comm, hearing)
        stop.deadline = time.monotonic() - 1
        if comm.rank == comm.size - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Stopped, match="stopped by SIGTERM"):
            stop()


@pytest.mark.parametrize("end", ENDS, ids=lambda number: number.name)
@pytest.mark.parametrize("warning", WARNINGS, ids=lambda number: number.name)
def test_an_end_counts_more_than_a_warning(comm, end, warning):
    """On one rank, in any order, and on two."""
    last = comm.size - 1
    told = [[(last, end), (last, warning)], [(last, warning), (last, end)]]
    told += [[(0, warning), (last, end)], [(0, end), (last, warning)]]
    for signals in told:
        with Hearing() as hearing:
            for rank, number in signals:
                if comm.rank == rank:
                    os.kill(os.getpid(), number)
            with pytest.raises(Stopped, match=f"^stopped by {end.name}$") as raised:
                Stop(comm, hearing)()
        assert not isinstance(raised.value, TimeIsUp)


def test_a_second_interrupt_is_one(comm):
    with Hearing():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("slow", [False, True])
def test_all_ranks_leave_sampling_after_the_same_sample(comm, monkeypatch, slow):
    """Where samples are slow, before the very next one; otherwise at the end of their block."""
    # A block is made for the pace of the warm-up, and ranks without a core of their own slow down.
    monkeypatch.setattr("mpiring.sampling.LONGEST_BLOCK_S", 1e-9 if slow else 0.02)
    calls = 0

    def call():
        nonlocal calls
        calls += 1
        if comm.rank == 0 and calls == 20:
            os.kill(os.getpid(), signal.SIGTERM)

    with Hearing() as hearing:
        stop = Stop(comm, hearing)
        sampling = Sampling(fewest=10**6, most=10**6, warmup=9, batch=1)
        sampler = Sampler(comm, sampling, seed=0, tick_s=1e-9, stop=stop)
        with pytest.raises(Stopped):
            sampler.sample({"call": call})
    assert len(set(comm.allgather(calls))) == 1
    assert calls == 20 if slow else 20 <= calls < 10**6
