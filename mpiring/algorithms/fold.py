"""Fold: let an algorithm for a convenient number of ranks run on any larger one.

The ranks are divided into as many groups of neighbours as the algorithm takes. The first of each
group adds up what the others have, takes part, and hands them the result. Neighbours, so that
contributions still meet in rank order.

Adds 2 rounds, and n bytes for each further rank of a group, both ways. The other ranks of a group
keep in step with empty rounds.
Source: Thakur, Rabenseifner and Gropp (see `binomial_tree`), for powers of two.
"""

from collections.abc import Iterator

from mpiring.schedule import Recv, Round, Schedule, Send, back, relabel


def folded(size: int, core: Schedule) -> Schedule:
    """Return the schedule of `size` ranks in which `core.size` of them run `core`."""
    if core.size == size:
        return core
    leaders = [size * group // core.size for group in range(core.size + 1)]

    def rounds(rank: int) -> Iterator[Round]:
        group = ((rank + 1) * core.size - 1) // size
        leader, followers = leaders[group], range(leaders[group] + 1, leaders[group + 1])
        if rank != leader:
            first: Round = (Send(leader, 0, core.chunks),)
        else:
            first = tuple(Recv(follower, 0, core.chunks, reduce=True) for follower in followers)
        yield first
        if rank == leader:
            yield from relabel(core.rounds(group), leaders)
        else:
            yield from (() for _ in core.rounds(group))
        yield from back([first])

    return Schedule(size, core.chunks, rounds)
