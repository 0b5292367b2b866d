"""How ranks begin a sample together: let go by a barrier, or each by a clock that all share."""

from collections.abc import Callable, Mapping
from time import perf_counter, sleep
from typing import Protocol

import numpy as np
from mpi4py import MPI

from mpiring.clock import GlobalClock
from mpiring.errors import UsageError


class Start(Protocol):
    """What makes ranks begin together."""

    def __call__(self) -> bool:
        """Return at the common start; False where this rank came too late for it. Collective."""

    def settle(self, missed: float) -> None:
        """Adapt, now that a share of `missed` repetitions came too late somewhere. Collective."""


class BarrierStart:
    """Begin when a barrier lets the ranks go, some sooner than others."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm

    def __call__(self) -> bool:
        """Wait for all ranks."""
        self.comm.Barrier()
        return True

    def settle(self, missed: float) -> None:
        """Nothing to adapt: no rank can come too late."""


class WindowStart:
    """Begin at an instant that rank 0 names, on a clock that all ranks share."""

    FIRST_S, LONGEST_S = 50e-6, 0.5
    LOOKS_APART_S = 0.05

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.clock = GlobalClock(comm)
        sleep(self.LOOKS_APART_S)
        self.clock.renew()  # a drift takes two looks
        self.window_s = self.FIRST_S
        self.instant = np.empty(1)

    def __call__(self) -> bool:
        """Wait for the instant; False where it had passed already."""
        if self.comm.rank == 0:
            self.instant[0] = self.clock.now() + self.window_s
        self.comm.Bcast(self.instant)
        instant = float(self.instant[0])
        in_time = self.clock.now() < instant
        while self.clock.now() < instant:
            pass
        return in_time

    def settle(self, missed: float) -> None:
        """Name later instants if many were missed; look at the clocks again now and then.

        Where none was missed, instants come slowly closer again: one hiccup is not for ever.
        """
        if missed > 0.2:
            self.window_s *= 2
        elif not missed:
            self.window_s = max(self.FIRST_S, 0.9 * self.window_s)
        if self.window_s > self.LONGEST_S:
            raise UsageError(
                f"the ranks miss a common start even {self.LONGEST_S * 1e3:.0f} ms ahead"
                " (are there more of them than cores?): use --sync barrier"
            )
        if self.clock.stale():
            self.clock.renew()


LEAST_SLEEP_S, MOST_SLEEP_S = 1e-4, 0.02


def quiet_barrier(comm: MPI.Intracomm) -> None:
    """Wait for all ranks, asleep: what others measure meanwhile has the cores to itself.

    The longer it lasts, the more seldom this rank looks, so that it comes back late by a tenth.
    """
    begin = perf_counter()
    request = comm.Ibarrier()
    while not request.Test():
        sleep(min(MOST_SLEEP_S, max(LEAST_SLEEP_S, 0.1 * (perf_counter() - begin))))


STARTS: Mapping[str, Callable[[MPI.Intracomm], Start]] = {
    "barrier": BarrierStart,
    "window": WindowStart,
}
