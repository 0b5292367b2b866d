"""Samples: several calls timed in turn on all ranks, until their medians are known well enough.

A sample begins at a common start, on each rank by its own clock, and counts as its slowest rank.
Each repetition runs all calls once, in an order that is shuffled anew, so that a drift of the
machine hits all alike. Whatever is decided on the way is decided from times that all ranks share,
between samples.
"""

import gc
import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI

from mpiring.arrays import Array
from mpiring.errors import UsageError
from mpiring.starts import STARTS
from mpiring.stats import summarise
from mpiring.units import counted

Timed: TypeAlias = Callable[[], object]

PRECISION = 0.03
"""The interval of a median may be this much to either side."""
TICKS = 100
"""A sample lasts at least so many times as long as it takes to read the clock."""
MOST_IN_A_BATCH = 1000
LAST_RUNS = 5
"""Of the warm-up: how long a call takes once it is warm."""
WARM_AT_ONCE = 1000
"""Of a long warm-up only so many times are kept."""
LONGEST_BLOCK_S = 1.0
"""Repetitions between two occasions to look at the clocks take about so long at most."""
NOTHING: Mapping[str, Timed] = {}


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

    def __post_init__(self) -> None:
        """Raise UsageError where only the first call of a batch would be cold."""
        if self.cold and (self.batch or 1) > 1:
            raise UsageError("--batch and --cold exclude each other")


@dataclass(frozen=True)
class Samples:
    """Seconds of each repetition of one call."""

    slowest: Array
    """On the rank that took longest."""
    rank_means: Array
    """Mean over the repetitions, for each rank."""
    batch: int
    """Calls in a row that one sample is the mean of."""


class _Turn(NamedTuple):
    """What a repetition is made of: each call once, or so many times in a row."""

    calls: Mapping[str, Timed]
    batches: Mapping[str, int]
    reset: Timed | None
    stop: Timed | None = None
    """Where samples are slow, what may end the run before each."""


class _Block(NamedTuple):
    """Seconds of repetitions, a row each, and of calls, a column each."""

    slowest: Array
    mine: Array
    pace_s: float
    """What a repetition took lately, with all that is not timed; the same on all ranks."""

    def followed_by(self, more: "_Block") -> "_Block":
        return _Block(
            np.concatenate([self.slowest, more.slowest]),
            np.concatenate([self.mine, more.mine]),
            more.pace_s,
        )


class Sampler:
    """Takes samples on one communicator. Making one, and sampling, are collective."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        sampling: Sampling,
        seed: int,
        tick_s: float,
        stop: Timed = lambda: None,
    ) -> None:
        """`tick_s` is the same on all ranks. `stop` may raise, on all ranks together."""
        self.comm = comm
        self.sampling = sampling
        self.tick_s = tick_s
        self.stop = stop
        self.start = STARTS[sampling.sync](comm)
        self.shuffled = random.Random(seed)  # the same on all ranks
        self.evict = np.zeros(2 * last_level_cache() if sampling.cold else 0, np.uint8)

    def sample(
        self,
        calls: Mapping[str, Timed],
        beside: Mapping[str, Timed] = NOTHING,
        reset: Timed | None = None,
        report: Callable[[str], None] = lambda text: None,
    ) -> dict[str, Samples]:
        """Return the samples of each call, and of each that runs `beside` them.

        How many repetitions there are is up to `calls` alone. `reset` runs before each sample,
        untimed, so that there can be one call in a sample only.
        """
        if not calls:
            return {}
        together = {**calls, **beside}
        turn = _Turn(together, dict.fromkeys(together, 1), reset)
        block = self._block(turn, 1, LONGEST_BLOCK_S)
        warmup, fitting = self._expected(float(block.slowest.sum()))
        report(f"{counted(warmup, 'repetition')} to warm up, then up to {fitting}")
        while warmup:  # the rest first, so that the last piece tells of many runs
            piece = warmup % WARM_AT_ONCE or WARM_AT_ONCE
            block = self._block(turn, piece, block.pace_s)
            warmup -= piece
        turn = turn._replace(batches=self._batches(turn, block))

        begin = perf_counter()
        pace_s = block.pace_s * max(turn.batches.values())
        block = self._block(turn, self.sampling.fewest, pace_s)
        while further := self._further(block, len(calls), begin):
            block = block.followed_by(self._block(turn, further, block.pace_s))
        return {
            name: Samples(slowest, self._gather_mean(mine), turn.batches[name])
            for name, slowest, mine in zip(together, block.slowest.T, block.mine.T, strict=True)
        }

    def _expected(self, once_s: float) -> tuple[int, int]:
        """Return how many repetitions warm up, and how many may follow, if one takes `once_s`."""
        fitting = self.sampling.time_limit_s / max(once_s, 1e-9)
        number = int(max(self.sampling.fewest, min(self.sampling.most, fitting)))
        if self.sampling.warmup is not None:
            return self.sampling.warmup, number
        return max(1, int(min(max(10, number // 10), fitting / 5))), number

    def _batches(self, turn: _Turn, warm: _Block) -> dict[str, int]:
        """Return how many calls in a row one sample takes, by the last of the runs so far."""
        least_s = TICKS * self.tick_s
        if self.sampling.batch or turn.reset or self.sampling.cold:
            return dict.fromkeys(turn.calls, self.sampling.batch or 1)
        each_s = np.median(warm.slowest[-LAST_RUNS:], axis=0)
        return {
            name: min(MOST_IN_A_BATCH, math.ceil(least_s / max(float(call_s), 1e-9)))
            for name, call_s in zip(turn.calls, each_s, strict=True)
        }

    def _further(self, block: _Block, deciding: int, begin: float) -> int:
        """Return how many repetitions to add: as many again, within the bounds of number and time.

        0 where the medians of the first `deciding` calls are known well enough, or where a bound is
        reached.
        """
        elapsed_s = self.comm.allreduce(perf_counter() - begin, MPI.MAX)
        number = len(block.slowest)
        decisive = block.slowest.T[:deciding]
        if all(summarise(times.tolist()).precision <= PRECISION for times in decisive):
            return 0
        affordable = (self.sampling.time_limit_s - elapsed_s) / elapsed_s * number
        return max(0, int(min(number, self.sampling.most - number, affordable)))

    def _gather_mean(self, times: Array) -> Array:
        means = np.empty(self.comm.size)
        self.comm.Allgather(np.array([times.mean()]), means)
        return means

    def _block(self, turn: _Turn, repetitions: int, pace_s: float) -> _Block:
        """Run `repetitions`, of about `pace_s` each.

        Those in which some rank missed the start of a sample are left out, and made again. Between
        two occasions to stop lies a second at most, or one sample.
        """
        most = max(1, int(LONGEST_BLOCK_S / pace_s))
        turn = turn._replace(stop=self.stop if pace_s >= LONGEST_BLOCK_S else None)
        kept: list[tuple[Array, Array]] = []
        with _collector_at_rest():
            begin = perf_counter()
            while (missing := repetitions - sum(len(slowest) for slowest, _ in kept)) > 0:
                mine, in_time = self._repeat(turn, min(missing, most))
                slowest, all_in_time = np.empty_like(mine), np.empty_like(in_time)
                self.comm.Allreduce(mine, slowest, MPI.MAX)
                self.comm.Allreduce(in_time, all_in_time, MPI.LAND)
                self.stop()
                self.start.settle(float(np.mean(~all_in_time)))
                kept.append((slowest[all_in_time], mine[all_in_time]))
            taken_s = self.comm.allreduce(perf_counter() - begin, MPI.MAX)
        slowest, mine = (np.concatenate(times) for times in zip(*kept, strict=True))
        return _Block(slowest, mine, taken_s / repetitions)

    def _repeat(self, turn: _Turn, repetitions: int) -> tuple[Array, Array]:
        """Return the seconds of each repetition and call, and which repetitions began in time."""
        times = np.empty((repetitions, len(turn.calls)))
        in_time = np.ones(repetitions, bool)
        order = [
            (column, call, range(turn.batches[name]))
            for column, (name, call) in enumerate(turn.calls.items())
        ]
        for repetition in range(repetitions):
            self.shuffled.shuffle(order)
            for column, call, batch in order:
                if turn.stop:
                    turn.stop()
                if turn.reset:
                    turn.reset()
                if self.evict.size:
                    self.evict += 1
                in_time[repetition] &= self.start()
                begin = perf_counter()
                for _ in batch:
                    call()
                times[repetition, column] = perf_counter() - begin
        return times / list(turn.batches.values()), in_time


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Let the garbage collector run now, and not before the end of a `with` block."""
    ran = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if ran:
            gc.enable()


def last_level_cache() -> int:
    """Return the bytes of the largest cache, as Linux tells it; 64 MiB where it does not."""
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    known = [int(path.read_text().strip().removesuffix("K")) << 10 for path in sizes]
    return max(known, default=64 << 20)
