"""Recursive halving and doubling: what Rabenseifner's algorithm and Swing have in common.

Halving, a reduce-scatter: in each round a rank meets another one that holds the same range of
chunks. Each gives away one half of the range, and adds up the other. In the end each owns a chunk.
Doubling, an allgather, is the same way back: pairs swap what they own, which doubles it. An
algorithm says who meets whom, and who keeps which half.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from mpiring.algorithms.fold import folded
from mpiring.formula import power_of_two
from mpiring.schedule import Recv, Round, Schedule, Send, back

Pairs: TypeAlias = Iterable[tuple[int, bool]]
"""Whom a rank meets in each round, and whether it keeps the lower half."""


def halving_and_doubling(size: int, pairs: Callable[[int, int], Pairs]) -> Schedule:
    """Return the schedule of `size` ranks, over as many chunks as the power of two below it.

    `pairs(rank, size)` is for powers of two; other ranks are folded in.
    """
    core = power_of_two(size)

    def rounds(rank: int) -> Iterator[Round]:
        halves = list(_halving(pairs(rank, core), core))
        yield from halves
        yield from back(halves)

    return folded(size, Schedule(core, core, rounds))


def _halving(pairs: Pairs, chunks: int) -> Iterator[Round]:
    first = 0
    for peer, keeps_lower in pairs:
        chunks //= 2
        lower, upper = first, first + chunks
        first, given = (lower, upper) if keeps_lower else (upper, lower)
        yield (Send(peer, given, chunks), Recv(peer, first, chunks, reduce=True))
