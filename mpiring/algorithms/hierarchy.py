"""Hierarchy: what `tree`, `hierarchical_ring` and `multi_leader` have in common.

1. Reduce-scatter inside each node: some of its ranks, the owners, each get a share of its sum.
2. Ranks that own the same share in different nodes, a column, reduce it among themselves: by the
   same three phases where there are further levels above the node, by another algorithm on top.
3. Allgather inside each node.

What a link between nodes carries for one rank is its share alone. The smallest node sets the number
of shares; further ranks of a larger node contribute to them and take the result, and do not talk to
other nodes. All ranks keep in step, with empty rounds, so that while segments follow each other one
is inside the nodes and the next one between them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from mpiring.schedule import Round, Rounds, Schedule, padded, relabel
from mpiring.topology import Topology


class Inside(NamedTuple):
    """The two phases inside a group, for a place in it, its size, and the number of owners.

    In between, the first places own the chunk of their number, of `owners` chunks. The ranks of a
    group are in step.
    """

    reduce_scatter: Callable[[int, int, int], Rounds]
    allgather: Callable[[int, int, int], Rounds]


def hierarchy(
    topology: Topology,
    inside: Sequence[Inside],
    top: Callable[[int], Schedule],
    most_owners: int | None = None,
) -> Schedule:
    """Return the schedule of the ranks of `topology`, with `top(size)` above its last level.

    `inside` has what the groups of each level do, the innermost first. At most `most_owners` ranks
    of a group own a share; by default as many as the smallest has.
    """
    groups = topology.innermost
    across = (
        hierarchy(topology.above(), inside[1:], top, most_owners)
        if len(topology.levels) > 1
        else top(len(groups))
    )
    sizes = {len(group) for group in groups}
    owners = min(*sizes, most_owners or min(sizes))
    where = {rank: (i, j) for i, group in enumerate(groups) for j, rank in enumerate(group)}

    @cache
    def longest(phase: Callable[[int, int, int], Rounds]) -> int:
        return max(_length(phase(0, size, owners)) for size in sizes)

    @cache
    def length_across(index: int) -> int:
        return _length(across.rounds(index))

    def rounds(rank: int) -> Iterator[Round]:
        index, place = where[rank]
        group = groups[index]

        def within(phase: Callable[[int, int, int], Rounds]) -> Iterator[Round]:
            there = relabel(phase(place, len(group), owners), group, width=across.chunks)
            return padded(there, longest(phase))

        yield from within(inside[0].reduce_scatter)
        if place < owners:
            column = [other[place] for other in groups]
            yield from relabel(across.rounds(index), column, first=place * across.chunks)
        else:
            yield from padded((), length_across(index))
        yield from within(inside[0].allgather)

    return Schedule(topology.size, owners * across.chunks, rounds)


def _length(rounds: Rounds) -> int:
    return sum(1 for _ in rounds)
