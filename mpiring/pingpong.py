"""Latency and rate of the links between ranks, by messages that go and come back.

Of a pair, the one that leads sends messages and has each of them answered, and takes the time from
one to the other by its own clock. A short message with an answer as short gives the latency, half
of that time. A long one with the shortest answer gives the rate, in one direction at a time: where
a link lets a burst pass after a rest, the first messages, which are not counted, use it up.

Pairs are measured at the same time as far as they do not disturb each other, and ranks that have
nothing to do sleep.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from mpi4py import MPI

from mpiring.arrays import Array
from mpiring.errors import UsageError
from mpiring.links import Figure, Link
from mpiring.machine import Machine
from mpiring.pairs import Pair, choose, rounds_of
from mpiring.starts import quiet_barrier
from mpiring.stats import median_interval
from mpiring.units import format_size

SHORT = 8
"""Bytes of a message that tells the latency."""
FEWEST, MOST = 6, 1000
"""Messages that count: as few as a median needs to have an interval."""
WARMUP_SHORT, WARMUP_LONG = 20, 2
TAG = 0


@dataclass(frozen=True)
class Probing:
    """How links are measured."""

    nbytes: int = 4 << 20
    """Of a message that tells the rate."""
    time_limit_s: float = 0.1
    """For each figure, once there are FEWEST messages."""
    max_pairs: int | None = None
    """None: 500, or more where that is not one of each two nodes."""
    one_by_one: bool = False
    """Whether there is one pair at a time in the whole job."""

    def __post_init__(self) -> None:
        """Raise UsageError where a message has no room for a mark."""
        if self.nbytes < 1:
            raise UsageError("messages of 0 bytes tell no rate")


class Rounds(NamedTuple):
    """The pairs that are measured at the same time, for the latencies and for the rates."""

    latency: list[list[Pair]]
    rate: list[list[Pair]]


def arrange(machine: Machine, probing: Probing) -> Rounds:
    """Return the rounds, the same on all ranks.

    Latencies are measured by as many pairs of a node at once as it has cores for, rates by one:
    two would share its link, or its memory.
    """
    size = len(machine.hosts)
    pairs = choose(size, probing.max_pairs, machine.nodes)
    if probing.one_by_one:
        return Rounds([[pair] for pair in pairs], [[pair] for pair in pairs])
    at_once = [max(1, cores // 2) for cores in machine.cores]
    one = [1] * len(machine.nodes)
    return Rounds(rounds_of(pairs, machine.nodes, at_once), rounds_of(pairs, machine.nodes, one))


def measure(
    comm: MPI.Intracomm,
    rounds: Rounds,
    probing: Probing,
    doing: Callable[[str], None] = lambda text: None,
    done: Callable[[], None] = lambda: None,
) -> tuple[Link, ...]:
    """Return what was measured of each pair, on rank 0; nothing on the others. Collective.

    `doing` is told what goes on, `done` after each round.
    """
    buffer = np.ones(max(probing.nbytes, SHORT), np.uint8)  # touches its pages
    short, long = buffer[:SHORT], buffer[: probing.nbytes]
    size, limit_s = probing.nbytes, probing.time_limit_s
    latencies: dict[Pair, Figure] = {}
    rates: dict[Pair, Figure] = {}

    def latency(a: int, b: int) -> None:
        seconds = _exchange(comm, (a, b), short, short, WARMUP_SHORT, limit_s)
        if seconds:
            latencies[a, b] = _figure([time / 2 * 1e6 for time in seconds], min)

    def rate(a: int, b: int) -> None:
        for pair in ((a, b), (b, a)):
            seconds = _exchange(comm, pair, long, buffer[:1], WARMUP_LONG, limit_s)
            if seconds:
                rates[pair] = _figure([size / time / 1e9 for time in seconds], max)

    for what, divided, call in (
        (f"latency, {format_size(SHORT)}", rounds.latency, latency),
        (f"rate, {format_size(size)}", rounds.rate, rate),
    ):
        for number, pairs in enumerate(divided, 1):
            doing(f"{what}: round {number} of {len(divided)}, {_written(pairs)}")
            for pair in pairs:
                if comm.rank in pair:
                    call(*pair)
            quiet_barrier(comm)
            done()
    everyone = comm.gather((latencies, rates))
    if everyone is None:
        return ()
    for others in everyone:
        latencies.update(others[0])
        rates.update(others[1])
    return tuple(
        Link((a, b), latencies[a, b], (rates[a, b], rates[b, a])) for a, b in sorted(latencies)
    )


def _exchange(
    comm: MPI.Intracomm,
    pair: tuple[int, int],
    message: Array,
    answer: Array,
    warmup: int,
    limit_s: float,
) -> list[float]:
    """Return the seconds from each message to its answer, on the first of the pair, which leads.

    The first byte of a message says whether another one follows.
    """
    leads = comm.rank == pair[0]
    peer = pair[leads]
    to, back = [message, MPI.BYTE], [answer, MPI.BYTE]
    seconds: list[float] = []
    begin = 0.0
    follows = True
    while follows:
        if not leads:
            comm.Recv(to, peer, TAG)
            follows = bool(message[0])
            comm.Send(back, peer, TAG)
            continue
        sent = perf_counter()
        if len(seconds) <= warmup:
            begin = sent
        counted = len(seconds) + 1 - warmup
        follows = counted < FEWEST or (counted < MOST and sent - begin < limit_s)
        message[0] = follows
        comm.Send(to, peer, TAG)
        comm.Recv(back, peer, TAG)
        seconds.append(perf_counter() - sent)
    return seconds[warmup:]


def _figure(samples: Sequence[float], best: Callable[[Sequence[float]], float]) -> Figure:
    return Figure(median(samples), median_interval(samples), best(samples))


def _written(pairs: Sequence[Pair]) -> str:
    shown = ", ".join(f"{a}-{b}" for a, b in pairs[:4])
    return f"ranks {shown}{', ...' if len(pairs) > 4 else ''}"
