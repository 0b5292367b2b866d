"""Which pairs of ranks are measured, and which of them at the same time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import comb
from typing import TypeAlias

from mpiring.errors import UsageError
from mpiring.topology import Groups
from mpiring.units import counted

Pair: TypeAlias = tuple[int, int]
"""Two ranks, the lower first."""

ENOUGH = 500
"""Pairs that are measured where nothing is asked for, unless there are more nodes."""
LOOK_BACK = 64
"""A pair joins one of so many latest rounds, or begins another."""


def tournament(size: int) -> Iterator[Pair]:
    """Yield each pair once, round by round, as in a tournament where each rank meets each other.

    One rank keeps its seat and the others move on by one seat a round (the circle method). Of an
    odd number, whoever would meet the missing one rests.
    """
    turns = size - 1 + size % 2
    for turn in range(turns):
        if turns < size:
            yield turn, turns
        for step in range(1, (turns + 1) // 2):
            one, other = (turn + step) % turns, (turn - step) % turns
            yield min(one, other), max(one, other)


def choose(size: int, most: int | None, groups: Groups) -> list[Pair]:
    """Return all pairs, or where there are more than `most`, so many that stand for the others.

    Each two groups, and each group with itself, are taken in turn, and of them the two ranks that
    are in the fewest pairs so far. None for `most` is 500, or more where those need more. Raises
    UsageError where `most` does not suffice for one pair of each two groups.
    """
    needed = comb(len(groups), 2) + sum(len(group) > 1 for group in groups)
    if most is None:
        most = max(ENOUGH, needed)
    if comb(size, 2) <= most:
        return list(tournament(size))
    if needed > most:
        raise UsageError(
            f"--max-pairs {most} is too few: {counted(len(groups), 'node')} make {needed}"
            " combinations, and each needs a pair"
        )
    sides = [
        (one, other)
        for one, other in combinations_with_replacement(groups, 2)
        if one is not other or len(one) > 1
    ]
    met: Counter[int] = Counter()
    pairs: dict[Pair, None] = {}
    while sides:
        for side in tuple(sides):
            pair = _next_pair(*side, met, pairs)
            if pair is None:
                sides.remove(side)  # all of its pairs are taken
                continue
            met.update(pair)
            pairs[pair] = None
            if len(pairs) == most:
                return list(pairs)
    return list(pairs)


def _next_pair(
    one: Sequence[int], other: Sequence[int], met: Counter[int], taken: dict[Pair, None]
) -> Pair | None:
    """Return the pair across two groups whose ranks are in the fewest pairs, if one is left."""
    for a in sorted(one, key=lambda rank: (met[rank], rank)):
        for b in sorted(other, key=lambda rank: (met[rank], rank)):
            pair = (min(a, b), max(a, b))
            if a != b and pair not in taken:
                return pair
    return None


def rounds_of(pairs: Sequence[Pair], nodes: Groups, at_once: Sequence[int]) -> list[list[Pair]]:
    """Divide the pairs into rounds of pairs that are measured at the same time.

    In a round each rank is in one pair at most, and each node in no more pairs than its entry of
    `at_once` says. Each pair joins the first round that has room for it.
    """
    node_of = {rank: index for index, node in enumerate(nodes) for rank in node}
    rounds: list[list[Pair]] = []
    busy: list[tuple[set[int], Counter[int]]] = []
    for pair in pairs:
        touched = {node_of[rank] for rank in pair}
        for index in range(max(0, len(rounds) - LOOK_BACK), len(rounds)):
            ranks, load = busy[index]
            if ranks.isdisjoint(pair) and all(load[node] < at_once[node] for node in touched):
                break
        else:
            index = len(rounds)
            rounds.append([])
            busy.append((set(), Counter()))
        rounds[index].append(pair)
        busy[index][0].update(pair)
        busy[index][1].update(touched)
    return rounds
