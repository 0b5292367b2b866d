"""Direct reduce-scatter, then allgather: each rank owns one chunk of the result.

Collect: rank k takes chunk k of all the others and adds them to its own, so that it owns 1/N of
the result. Distribute: it sends this finished chunk to all the others.

Rounds: 2, of N-1 messages each way. Bytes sent per rank: 2(N-1)/N n, the lower bound.
Cost with a single port: 2(N-1) alpha + 2(N-1)/N n beta + (N-1)/N n gamma.
Source: the pairwise exchanges of Thakur, Rabenseifner and Gropp (see `binomial_tree`), all at once.

A round holds all N-1 messages, as the algorithm is taught; ranks address their peers from the next
one on, so that they do not all begin with the same.
"""

from collections.abc import Iterator

from mpiring.schedule import Recv, Round, Send, back


def reduce_scatter(rank: int, size: int) -> Iterator[Round]:
    """Yield the rounds of `rank` among `size`, over `size` chunks."""
    yield from collect(rank, size, owners=size)
    yield from distribute(rank, size, owners=size)


def collect(rank: int, size: int, owners: int) -> Iterator[Round]:
    """Chunk k, of `owners` chunks, is reduced at rank k; ranks from `owners` on only contribute."""
    others = [(rank + distance) % size for distance in range(1, size)]
    sends = [Send(owner, owner) for owner in others if owner < owners]
    receives = [Recv(peer, rank, reduce=True) for peer in others] if rank < owners else []
    if others:
        yield (*sends, *receives)


def distribute(rank: int, size: int, owners: int) -> Iterator[Round]:
    """Chunk k, complete at rank k, goes to all the others."""
    return back(collect(rank, size, owners))
