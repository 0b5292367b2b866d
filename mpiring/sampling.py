"""Samples: several calls timed in turn on all ranks, until their medians are known well enough.

A sample begins at a common start, on each rank by its own clock, and counts as its slowest rank.
Each repetition runs all calls once, in an order that is shuffled anew, so that a drift of the
machine hits all alike. Whatever is decided on the way is decided from times that all ranks share,
between samples.
"""

import gc
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Protocol, TypeAlias

import numpy as np
from mpi4py import MPI

from mpiring.arrays import Array
from mpiring.clock import GlobalClock
from mpiring.errors import UsageError
from mpiring.stats import summarise

Call: TypeAlias = Callable[[], object]

PRECISION = 0.03
"""The interval of a median may be this much to either side."""
TICKS = 100
"""A sample lasts at least so many times as long as it takes to read the clock."""
MOST_IN_A_BATCH = 1000


@dataclass(frozen=True)
class Sampling:
    """How samples are taken."""

    fewest: int = 6
    most: int = 1000
    warmup: int | None = None
    """None: max(10, 10 %) of the repetitions, within a fifth of the time."""
    time_limit_s: float = 0.3
    """For all calls together; the fewest repetitions are made in any case."""
    sync: str = "barrier"
    cold: bool = False
    """Whether caches are emptied before each sample."""
    batch: int | None = None
    """Calls in a row in one sample; None: as many as the clock needs, which is mostly one."""


@dataclass(frozen=True)
class Samples:
    """Seconds of each repetition of one call."""

    slowest: Array
    """On the rank that took longest."""
    rank_means: Array
    """Mean over the repetitions, for each rank."""
    batch: int
    """Calls in a row that one sample is the mean of."""


class Start(Protocol):
    """What makes ranks begin together."""

    def __call__(self) -> bool:
        """Return at the common start; False where this rank came too late for it. Collective."""

    def settle(self, missed: float) -> None:
        """Adapt, now that a share of `missed` samples came too late somewhere. Collective."""


class Barrier:
    """Begin when a barrier lets the ranks go, some sooner than others."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm

    def __call__(self) -> bool:
        """Wait for all ranks."""
        self.comm.Barrier()
        return True

    def settle(self, missed: float) -> None:
        """Nothing to adapt: no rank can come too late."""


class Window:
    """Begin at an instant that rank 0 names, on a clock that all ranks share."""

    FIRST_S, LONGEST_S = 50e-6, 0.5

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.clock = GlobalClock(comm)
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
        """Name later instants if many were missed; look at the clocks again now and then."""
        if missed > 0.2:
            self.window_s *= 2
        if self.window_s > self.LONGEST_S:
            raise UsageError(
                f"the ranks miss a common start even {self.LONGEST_S * 1e3:.0f} ms ahead"
                " (are there more of them than cores?): use --sync barrier"
            )
        if self.clock.stale:
            self.clock.renew()


STARTS: Mapping[str, Callable[[MPI.Intracomm], Start]] = {"barrier": Barrier, "window": Window}


class Sampler:
    """Takes samples on one communicator. Making one, and sampling, are collective."""

    def __init__(self, comm: MPI.Intracomm, sampling: Sampling, seed: int, tick_s: float) -> None:
        self.comm = comm
        self.sampling = sampling
        self.tick_s = tick_s
        self.start = STARTS[sampling.sync](comm)
        self.shuffled = random.Random(seed)  # the same on all ranks
        self.reset: Call | None = None
        self.batch = 1
        self.evict = np.zeros(2 * last_level_cache() if sampling.cold else 0, np.uint8)

    def sample(
        self,
        calls: Mapping[str, Call],
        reset: Call | None = None,
        report: Callable[[str], None] = lambda text: None,
    ) -> dict[str, Samples]:
        """Return the samples of each call.

        `reset` runs before each sample, untimed, so that there can be one call in a sample only.
        """
        if not calls:
            return {}
        self.reset = reset
        self.batch = 1
        slowest, _ = self._block(calls, 1)
        each_s = {name: float(times[0]) for name, times in slowest.items()}
        shortest = min(each_s.values())
        if self.sampling.batch is not None:
            self.batch = self.sampling.batch
        elif reset is None and shortest < TICKS * self.tick_s:
            self.batch = min(MOST_IN_A_BATCH, math.ceil(TICKS * self.tick_s / max(shortest, 1e-9)))
        once_s = self.batch * sum(each_s.values())
        fitting = self._bounded(self.sampling.time_limit_s / max(once_s, 1e-9))
        warmup = self.sampling.warmup
        if warmup is None:
            affordable = self.sampling.time_limit_s / 5 / max(once_s, 1e-9)
            warmup = max(1, min(max(10, fitting // 10), int(affordable)))
        report(f"{warmup} repetitions to warm up, then up to {fitting}")
        if warmup:
            self._block(calls, warmup)

        begin = perf_counter()
        slowest, mine = self._block(calls, self.sampling.fewest)
        while further := self._further(slowest, begin):
            more, my_more = self._block(calls, further)
            slowest = {name: np.append(slowest[name], more[name]) for name in calls}
            mine = {name: np.append(mine[name], my_more[name]) for name in calls}
        return {
            name: Samples(slowest[name], self._gather_mean(mine[name]), self.batch)
            for name in calls
        }

    def _bounded(self, number: float) -> int:
        return int(max(self.sampling.fewest, min(self.sampling.most, number)))

    def _further(self, slowest: Mapping[str, Array], begin: float) -> int:
        """Return how many repetitions to add: as many again, within the bounds of number and time.

        0 where every median is known well enough, or where a bound is reached.
        """
        elapsed_s = self.comm.allreduce(perf_counter() - begin, MPI.MAX)
        number = len(next(iter(slowest.values())))
        if all(summarise(times.tolist()).precision <= PRECISION for times in slowest.values()):
            return 0
        affordable = (self.sampling.time_limit_s - elapsed_s) / elapsed_s * number
        return max(0, min(number, self.sampling.most - number, int(affordable)))

    def _gather_mean(self, times: Array) -> Array:
        means = np.empty(self.comm.size)
        self.comm.Allgather(np.array([times.mean()]), means)
        return means

    def _block(
        self, calls: Mapping[str, Call], repetitions: int
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Run `repetitions` of all calls; return the times of the slowest rank, and of this one.

        Repetitions in which some rank missed the start of a sample are left out, and made again.
        """
        kept: list[tuple[Array, Array]] = []
        while (missing := repetitions - sum(len(slowest) for slowest, _ in kept)) > 0:
            mine, in_time = self._repeat(calls, missing)
            slowest, all_in_time = np.empty_like(mine), np.empty_like(in_time)
            self.comm.Allreduce(mine, slowest, MPI.MAX)
            self.comm.Allreduce(in_time, all_in_time, MPI.LAND)
            self.start.settle(float(np.mean(~all_in_time)))
            kept.append((slowest[all_in_time], mine[all_in_time]))
        columns = [np.concatenate(times).T / self.batch for times in zip(*kept, strict=True)]
        return (
            dict(zip(calls, columns[0], strict=True)),
            dict(zip(calls, columns[1], strict=True)),
        )

    def _repeat(self, calls: Mapping[str, Call], repetitions: int) -> tuple[Array, Array]:
        """Return the seconds of each repetition and call, and which repetitions began in time."""
        times = np.empty((repetitions, len(calls)))
        in_time = np.ones(repetitions, bool)
        order = list(enumerate(calls.values()))
        again = range(self.batch)
        gc.collect()
        gc.disable()
        try:
            for repetition in range(repetitions):
                self.shuffled.shuffle(order)
                for column, call in order:
                    if self.reset:
                        self.reset()
                    if self.evict.size:
                        self.evict += 1
                    in_time[repetition] &= self.start()
                    begin = perf_counter()
                    for _ in again:
                        call()
                    times[repetition, column] = perf_counter() - begin
        finally:
            gc.enable()
        return times, in_time


def last_level_cache() -> int:
    """Return the bytes of the largest cache, as Linux tells it; 64 MiB where it does not."""
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    known = [int(path.read_text().strip().removesuffix("K")) << 10 for path in sizes]
    return max(known, default=64 << 20)
