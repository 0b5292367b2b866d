"""The one representation of an algorithm: the rounds of each rank, in terms of chunks.

A schedule knows no buffer, dtype or MPI. Each rank holds a buffer cut into chunks, which at first
hold its own contribution. A *round* is what a rank starts together and then waits for:

1. start every send and receive of the round;
2. wait for all of them;
3. reduce: where contributions meet at a chunk, they are combined in rank order, the rank's own
   value among them at its place (`meetings`).

A reducing receive lands in scratch, so it may meet a send of the same chunk in its round; a plain
receive writes the chunk itself, so nothing else in its round may touch that chunk (`check_round`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias


class Send(NamedTuple):
    """Send `chunks` chunks from `first` on to `peer`."""

    peer: int
    first: int
    chunks: int = 1


class Recv(NamedTuple):
    """Receive `chunks` chunks from `first` on from `peer`: to reduce into them, or replace them."""

    peer: int
    first: int
    chunks: int = 1
    reduce: bool = False


Step: TypeAlias = Send | Recv
Round: TypeAlias = tuple[Step, ...]
Rounds: TypeAlias = Iterable[Round]


class Meeting(NamedTuple):
    """Contributions that meet at `chunks` chunks from `first` on, named by rank, in rank order."""

    first: int
    chunks: int
    ranks: tuple[int, ...]


def relabel(
    rounds: Rounds, ranks: Sequence[int], first: int = 0, width: int = 1
) -> Iterator[Round]:
    """Let the schedule of a small group run among `ranks`, on `width` chunks in place of each one.

    Peer `p` becomes `ranks[p]`, chunk `c` the `width` chunks from `first + c * width` on.
    """
    for steps in rounds:
        yield tuple(
            step._replace(
                peer=ranks[step.peer], first=first + step.first * width, chunks=step.chunks * width
            )
            for step in steps
        )


def meetings(rank: int, steps: Round) -> Iterator[Meeting]:
    """What `rank` has to combine after it waited for a round.

    Rank order, rather than the order of arrival, makes the result of each chunk a fixed expression:
    two ranks that combine the same contributions end bitwise equal, and an operation that does not
    commute gets its operands from left to right.
    """
    where: dict[tuple[int, int], list[int]] = {}
    for step in steps:
        if isinstance(step, Recv) and step.reduce:
            where.setdefault((step.first, step.chunks), [rank]).append(step.peer)
    for (first, chunks), ranks in where.items():
        yield Meeting(first, chunks, tuple(sorted(ranks)))


def check_round(rank: int, steps: Round) -> None:
    """Raise ValueError where a round breaks the rule at the top of this module."""
    sent = {chunk for step in steps if isinstance(step, Send) for chunk in _chunks(step)}
    received: dict[int, Recv] = {}
    for step in steps:
        if step.peer == rank:
            raise ValueError(f"rank {rank} exchanges with itself: {step}")
        if isinstance(step, Send):
            continue
        for chunk in _chunks(step):
            other = received.setdefault(chunk, step)
            together = step.reduce and other.reduce and step[1:3] == other[1:3]
            if other is not step and (not together or other.peer == step.peer):
                raise ValueError(f"rank {rank}: {other} and {step} of one round overlap")
            if not step.reduce and chunk in sent:
                raise ValueError(f"rank {rank}: {step} and a send of one round overlap")


def _chunks(step: Step) -> range:
    return range(step.first, step.first + step.chunks)
