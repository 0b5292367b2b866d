"""Swing: halving and doubling as Rabenseifner's, with peers that are near each other on a ring.

In round s rank r meets the rank at distance (1 - (-2)^(s+1))/3 = 1, -1, 3, -5, 11, ...: to the
right if r is even, to the left if it is odd. On a ring or torus of links the messages go both ways
round, and not as far as Rabenseifner's, whose distances are 1, 2, 4, 8, 16, ....

Rounds: 2K with K = floor(lg N), and 2 to fold. Bytes sent per rank: 2(1 - 1/2^K) n, the lower
bound; n more to fold. Cost: as `rabenseifner`.
Source: De Sensi, Bonato, Saam and Hoefler, Swing: Short-cutting Rings for Higher Bandwidth
Allreduce, NSDI 2024; here the bandwidth-optimal form.

Contributions that meet are not neighbours: the operation has to commute.
"""

from collections.abc import Iterator

from mpiring.algorithms.halving import halving_and_doubling
from mpiring.schedule import Schedule


def swing(size: int) -> Schedule:
    """Return the schedule of `size` ranks, over as many chunks as the power of two below it."""
    return halving_and_doubling(size, _pairs)


def _pairs(rank: int, size: int) -> Iterator[tuple[int, bool]]:
    """Whom `rank` meets in each round; of the two, the one that reaches the lowest rank keeps the
    lower half."""
    for step in range(size.bit_length() - 1):
        other = peer(rank, step, size)
        yield other, _lowest(rank, step + 1, size) < _lowest(other, step + 1, size)


def peer(rank: int, step: int, size: int) -> int:
    """Return whom `rank` meets in round `step`."""
    distance: int = (1 - (-2) ** (step + 1)) // 3
    return (rank + (-distance if rank % 2 else distance)) % size


def _lowest(rank: int, step: int, size: int) -> int:
    """Return the lowest of the ranks that `rank` reaches, itself or by others, from `step` on.

    Ranks that reach the same ones own the same range of chunks.
    """
    if 1 << step >= size:
        return rank
    return min(_lowest(rank, step + 1, size), _lowest(peer(rank, step, size), step + 1, size))
