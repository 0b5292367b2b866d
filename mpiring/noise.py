"""What the harness itself takes: below it, a time says nothing."""

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
    last; `call_s` a call of mpi4py that has nothing to do; `tick_s` the step of the clock, or the
    time to read it.
    """

    tick_s: float
    call_s: float
    barrier_skew_s: float

    def floor_s(self, sync: str) -> float:
        """Return the time under which a sample is made up of the harness for a good part."""
        return self.tick_s + self.call_s + (self.barrier_skew_s if sync == "barrier" else 0.0)


def measure_noise(comm: MPI.Intracomm) -> Noise:
    """Measure it; the largest of any rank counts. Collective."""
    alone = MPI.COMM_SELF
    own = np.array([tick(), median(_seconds(alone.Barrier) for _ in range(READS))])
    comm.Allreduce(MPI.IN_PLACE, own, MPI.MAX)
    return Noise(float(own[0]), float(own[1]), _barrier_skew(comm))


def tick(clock: Callable[[], float] = perf_counter) -> float:
    """Return the least difference of two readings; raise UsageError if the clock stands still."""
    least = float("inf")
    for _ in range(READS):
        begin = clock()
        for _ in range(READS):
            elapsed = clock() - begin
            if elapsed > 0:
                break
        else:
            raise UsageError("the clock of this machine does not advance: nothing can be timed")
        least = min(least, elapsed)
    return least


def _seconds(call: Callable[[], object]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin


def _barrier_skew(comm: MPI.Intracomm) -> float:
    clock, left = GlobalClock(comm), np.empty(BARRIERS)
    for index in range(BARRIERS):
        comm.Barrier()
        left[index] = clock.now()
    first, last = np.empty_like(left), np.empty_like(left)
    comm.Allreduce(left, first, MPI.MIN)
    comm.Allreduce(left, last, MPI.MAX)
    return float(np.median(last - first))
