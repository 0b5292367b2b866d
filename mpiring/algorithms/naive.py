"""Naive: every rank takes the whole tensor of every other rank, and adds them up itself.

Rounds: 1, of N-1 messages each way. Bytes sent per rank: (N-1) n.
Cost with a single port: alpha + (N-1) n beta + (N-1) n gamma.

Nothing is cut, so an operation that does not commute gets its operands whole and in rank order. All
ranks add in rank order too: in the order of arrival they would differ in the last bit.

One round rather than N-1: every message may start at once. The executor bounds the scratch that
the N-1 tensors land in, by running a long buffer piece after piece.
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
