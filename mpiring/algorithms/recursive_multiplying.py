"""Recursive multiplying: groups of k ranks exchange everything, then k groups of those, and so on.

After round i each rank holds the sum of the k^i ranks around it. The last round takes what is left:
2 to k-1 groups, or none; ranks beyond that are folded in. Radix 2 is recursive doubling; radix N is
naive, one round of everybody with everybody.

Rounds: about log_k(N), and 2 to fold, for each of k-1 pieces of a long buffer, which bound the
scratch. Bytes sent per rank: about (k-1) log_k(N) n.
Cost: log_k(N) ((k-1) alpha + (k-1) n beta + (k-1) n gamma).
Source: Ruefenacht, Bull and Booth, Generalisation of recursive doubling for AllReduce, Parallel
Comput. 69 (2017).

Groups are neighbours, so contributions meet in rank order, and nothing is cut.
"""

from collections.abc import Iterator
from functools import partial
from math import prod

from mpiring.algorithms.fold import folded
from mpiring.formula import factors_of
from mpiring.schedule import Recv, Round, Schedule, Send


def recursive_multiplying(size: int, radix: int) -> Schedule:
    """Return the schedule of `size` ranks, over 1 chunk."""
    factors = factors_of(size, radix)
    return folded(size, Schedule(prod(factors), 1, partial(exchange, factors=factors)))


def exchange(rank: int, factors: list[int]) -> Iterator[Round]:
    """Yield the rounds of `rank` among as many ranks as the product of the `factors`."""
    distance = 1
    for factor in factors:
        place = rank // distance % factor
        others = [rank + ((place + step) % factor - place) * distance for step in range(1, factor)]
        yield (
            *(Send(peer, 0) for peer in others),
            *(Recv(peer, 0, reduce=True) for peer in others),
        )
        distance *= factor
