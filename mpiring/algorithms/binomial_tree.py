"""Binomial tree: halve the number of ranks in each round, then tell all of them the same way back.

In round k of the reduction, the ranks that are odd multiples of 2^k send all they have to the rank
2^k below; rank 0 ends with everything. The broadcast is the same tree, the other way.

Rounds: 2 ceil(lg N). Bytes sent: up to ceil(lg N) n, by rank 0.
Cost: 2 ceil(lg N) (alpha + n beta) + ceil(lg N) n gamma.
Source: Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in
MPICH, Int. J. High Perform. Comput. Appl. 19 (2005): its broadcast and its reduction.

What a rank has collected is always that of the ranks from itself on: contributions meet in rank
order. Ranks keep in step, with empty rounds, so that segments can follow each other in a pipeline:
with S of them, 2 ceil(lg N) + S - 1 rounds of n/S bytes.
"""

from collections.abc import Iterator

from mpiring.schedule import Recv, Round, Send, back, relabel


def binomial_tree(rank: int, size: int) -> Iterator[Round]:
    """Yield the rounds of `rank` among `size`, over 1 chunk."""
    yield from binomial_reduce(rank, size)
    yield from binomial_bcast(rank, size)


def binomial_reduce(rank: int, size: int) -> Iterator[Round]:
    """Leave the chunk complete at rank 0."""
    for bit in range((size - 1).bit_length()):
        distance = 1 << bit
        if rank % (2 * distance) == distance:
            yield (Send(rank - distance, 0),)
        elif rank % (2 * distance) == 0 and rank + distance < size:
            yield (Recv(rank + distance, 0, reduce=True),)
        else:
            yield ()


def binomial_bcast(rank: int, size: int, root: int = 0) -> Iterator[Round]:
    """Send the chunk from `root` to all the others."""
    turned = [(root + place) % size for place in range(size)]
    return relabel(back(binomial_reduce((rank - root) % size, size)), turned)
