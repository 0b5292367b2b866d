"""Parameter server: all ranks send their buffer to one, which adds them up and sends the result.

Rounds: 2, of up to N-1 messages, for each of N-1 pieces of a long buffer, which bound the root's
scratch. Bytes sent: the root (N-1) n, every other rank n.
Cost, at the root: 2(N-1) alpha + 2(N-1) n beta + (N-1) n gamma.
Source: the scheme of early distributed training (Li et al., Scaling Distributed Machine Learning
with the Parameter Server, OSDI 2014) with one server, on a worker; the baseline of the others here.

The root adds in rank order, and nothing is cut.
"""

from collections.abc import Iterator

from mpiring.errors import UsageError
from mpiring.schedule import Recv, Round, Schedule, Send, back


def parameter_server(size: int, root: int) -> Schedule:
    """Return the schedule of `size` ranks, over 1 chunk. Raises UsageError for no such root."""
    if root >= size:
        raise UsageError(f"root is rank {root}, the job has {size}")

    def rounds(rank: int) -> Iterator[Round]:
        yield from flat_reduce(rank, size, root)
        yield from flat_bcast(rank, size, root)

    return Schedule(size, 1, rounds)


def flat_reduce(rank: int, size: int, root: int) -> Iterator[Round]:
    """Leave the chunk complete at `root`."""
    if rank != root:
        yield (Send(root, 0),)
    else:
        yield tuple(Recv(peer, 0, reduce=True) for peer in range(size) if peer != root)


def flat_bcast(rank: int, size: int, root: int) -> Iterator[Round]:
    """Send the chunk from `root` to all the others."""
    return back(flat_reduce(rank, size, root))
