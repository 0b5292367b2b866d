"""What the harness itself takes: below it, a time says nothing."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
from mpi4py import MPI

from mpiring.clock import GlobalClock
from mpiring.errors import UsageError

READS = 1000
BARRIERS = 30


@dataclass(frozen=True)
class Noise:
    """Seconds. `barrier_skew_s` is the time between the first rank that a barrier lets go and the
    last; `clock_error_s` how wrong a rank can be about the clock that all share; `call_s` a call of
    mpi4py that has nothing to do; `tick_s` the step of the clock, or the time to read it.
    """

    tick_s: float
    call_s: float
    barrier_skew_s: float
    clock_error_s: float

    def floor_s(self, sync: str, batch: int = 1) -> float:
        """Return the time of a call under which the harness makes up a good part of it.

        A sample has one start and one reading of the clock, however many calls it is the mean of.
        """
        skew_s = self.barrier_skew_s if sync == "barrier" else self.clock_error_s
        return self.call_s + (self.tick_s + skew_s) / batch


def measure_noise(comm: MPI.Intracomm) -> Noise:
    """Measure it; the largest of any rank counts. Collective."""
    clock, alone = GlobalClock(comm), MPI.COMM_SELF
    call_s = median(_seconds(alone.Barrier) for _ in range(READS))
    own = np.array([tick(), call_s, clock.error_s])
    comm.Allreduce(MPI.IN_PLACE, own, MPI.MAX)
    tick_s, call_s, error_s = map(float, own)
    if tick_s == math.inf:  # on some rank, and all leave together
        raise UsageError("the clock of this machine does not advance: nothing can be timed")
    return Noise(tick_s, call_s, _barrier_skew(comm, clock), error_s)


def tick(clock: Callable[[], float] = perf_counter) -> float:
    """Return the least difference of two readings; infinity if the clock stands still."""
    least = math.inf
    for _ in range(READS):
        begin = clock()
        for _ in range(READS):
            elapsed = clock() - begin
            if elapsed > 0:
                break
        else:
            return math.inf
        least = min(least, elapsed)
    return least


def _seconds(call: Callable[[], object]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin


def _barrier_skew(comm: MPI.Intracomm, clock: GlobalClock) -> float:
    left = np.empty(BARRIERS)
    for index in range(BARRIERS):
        comm.Barrier()
        left[index] = clock.now()
    first, last = np.empty_like(left), np.empty_like(left)
    comm.Allreduce(left, first, MPI.MIN)
    comm.Allreduce(left, last, MPI.MAX)
    return float(np.median(last - first))
