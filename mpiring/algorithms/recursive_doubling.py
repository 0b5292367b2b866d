"""Recursive doubling: in each round, exchange all you have with a rank twice as far as before.

After round i each rank holds the sum of the 2^i ranks around it: recursive multiplying by two.
Ranks beyond a power of two are folded in.

Rounds: floor(lg N), and 2 to fold. Bytes sent per rank: floor(lg N) n; n more to fold.
Cost: lg N (alpha + n beta + n gamma).
Source: Thakur, Rabenseifner and Gropp (see `binomial_tree`).

Contributions meet in rank order, and nothing is cut. No algorithm of one message a round has fewer
rounds, so it is a choice for short messages.
"""

from mpiring.algorithms.recursive_multiplying import recursive_multiplying
from mpiring.schedule import Schedule


def recursive_doubling(size: int) -> Schedule:
    """Return the schedule of `size` ranks, over 1 chunk."""
    return recursive_multiplying(size, radix=2)
