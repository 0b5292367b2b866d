"""Rabenseifner: recursive halving, then recursive doubling; every round moves half as much.

In round k a rank meets the one whose number differs in bit k, so the largest messages go to the
nearest neighbour. With K = floor(lg N), 2^K ranks take part and the others are folded in.

Rounds: 2K, and 2 to fold. Bytes sent per rank: 2(1 - 1/2^K) n, the lower bound; n more to fold.
Cost: 2K alpha + 2(1 - 1/2^K) n beta + (1 - 1/2^K) n gamma.
Source: Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004; Thakur,
Rabenseifner and Gropp (see `binomial_tree`).

A count below 2^K leaves some chunks empty, and their messages are not sent. Contributions meet in
rank order, but each rank has only its chunk of them: the operation has to work element by element.
"""

from collections.abc import Iterator

from mpiring.algorithms.halving import halving_and_doubling
from mpiring.schedule import Schedule


def rabenseifner(size: int) -> Schedule:
    """Return the schedule of `size` ranks, over as many chunks as the power of two below it."""
    return halving_and_doubling(size, _pairs)


def _pairs(rank: int, size: int) -> Iterator[tuple[int, bool]]:
    for bit in range(size.bit_length() - 1):
        distance = 1 << bit
        yield rank ^ distance, not rank & distance
