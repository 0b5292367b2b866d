"""Naive: every rank takes the whole buffer of every other rank, and adds them up itself.

Rounds: 1, of N-1 messages each way; up to N-1 of them for a long buffer, which the executor runs
piece after piece to bound the scratch that N-1 buffers would need. Bytes sent per rank: (N-1) n.
Cost with a single port: (N-1) alpha + (N-1) n beta + (N-1) n gamma.
Source: what everybody writes first; as an allgather and a local reduction in Thakur, Rabenseifner
and Gropp (see `binomial_tree`).

Nothing is cut, so an operation that does not commute gets its operands whole and in rank order. All
ranks add in rank order too: in the order of arrival they would differ in the last bit.

All messages of a round start at once: if the ranks instead took the buffers one after the other in
rank order, all of them would wait for the same rank at a time.
"""

from collections.abc import Iterator

from mpiring.schedule import Recv, Round, Send


def naive(rank: int, size: int) -> Iterator[Round]:
    """Yield the round of `rank` among `size`, over 1 chunk."""
    others = [(rank + distance) % size for distance in range(1, size)]
    if others:
        yield (
            *(Send(peer, 0) for peer in others),
            *(Recv(peer, 0, reduce=True) for peer in others),
        )
