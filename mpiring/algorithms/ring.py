"""Ring: every rank talks to its two neighbours alone.

The buffer is cut into N chunks. In each round a rank sends one chunk to the right and takes one
from the left. N-1 rounds of reduce-scatter add up what passes, after which rank r owns the complete
chunk r+1; N-1 rounds of allgather pass the complete chunks round.

Rounds: 2(N-1). Bytes sent per rank: 2(N-1)/N n, the lower bound.
Cost: 2(N-1) alpha + 2(N-1)/N n beta + (N-1)/N n gamma.
Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
J. Parallel Distrib. Comput. 69 (2009).

Each chunk is added up in the order in which it passes the ranks, which begins at another rank for
each: the operation has to commute.
"""

from collections.abc import Callable, Iterator

from mpiring.schedule import Recv, Round, Rounds, Send, relabel


def ring(rank: int, size: int) -> Iterator[Round]:
    """Yield the rounds of `rank` among `size`, over `size` chunks."""
    yield from ring_reduce_scatter(rank, size)
    yield from ring_allgather(rank, size)


def ring_reduce_scatter(rank: int, size: int) -> Iterator[Round]:
    """Leave chunk `rank + 1` complete at `rank`."""
    left, right = (rank - 1) % size, (rank + 1) % size
    for step in range(size - 1):
        yield (
            Send(right, (rank - step) % size),
            Recv(left, (rank - step - 1) % size, reduce=True),
        )


def ring_allgather(rank: int, size: int) -> Iterator[Round]:
    """Pass the complete chunks round, each rank beginning with chunk `rank + 1`."""
    left, right = (rank - 1) % size, (rank + 1) % size
    for step in range(size - 1):
        yield (
            Send(right, (rank + 1 - step) % size),
            Recv(left, (rank - step) % size),
        )


def owning(phase: Callable[[int, int], Rounds], rank: int, size: int) -> Iterator[Round]:
    """Turn a phase by one rank, so that each rank owns the chunk of its own number."""
    turned = [(peer + 1) % size for peer in range(size)]
    return relabel(phase((rank - 1) % size, size), turned)
