"""What a schedule does, step by step: who sends what to whom, and what each rank then holds.

Works on chunks alone, without MPI; `report` turns it into text and pictures.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias

from mpiring.schedule import Recv, Round, Schedule, ScheduleError, Send, meetings

Held: TypeAlias = tuple[int, ...]
"""The ranks whose contributions a chunk holds."""


class Message(NamedTuple):
    """Chunks on their way; `reduce` if the receiver adds them to what it holds."""

    sender: int
    receiver: int
    first: int
    chunks: int
    reduce: bool


@dataclass(frozen=True)
class Frame:
    """A moment: the messages that led to it, and what each rank holds of each chunk."""

    messages: tuple[Message, ...]
    held: tuple[tuple[Held, ...], ...]

    def complete(self, rank: int) -> list[int]:
        """Return the chunks of `rank` that hold every rank's contribution."""
        return [c for c, held in enumerate(self.held[rank]) if len(held) == len(self.held)]


def frames(schedule: Schedule) -> Iterator[Frame]:
    """Yield the beginning, and the moment after each step.

    In a step, every rank whose peers are ready goes through its next round. Raises ScheduleError
    where no rank can.
    """
    size = schedule.size
    held: list[list[Held]] = [[(rank,)] * schedule.chunks for rank in range(size)]
    rounds = [iter(schedule.rounds(rank)) for rank in range(size)]
    current = {rank: next(rounds[rank], ()) for rank in range(size)}
    yield _frame((), held)
    while current:
        ready = _ready(current)
        if not ready:
            raise ScheduleError(f"no rank can go on: {current}")
        messages = tuple(chain.from_iterable(_sent(rank, current[rank]) for rank in ready))
        before = [list(chunks) for chunks in held]
        for rank in ready:
            _receive(rank, current[rank], before, held[rank])
            steps = next(rounds[rank], None)
            if steps is None:
                del current[rank]
            else:
                current[rank] = steps
        if messages:  # a step in which all were idle shows nothing
            yield _frame(messages, held)


def _frame(messages: tuple[Message, ...], held: list[list[Held]]) -> Frame:
    return Frame(messages, tuple(tuple(chunks) for chunks in held))


def _ready(current: dict[int, Round]) -> list[int]:
    """Return the ranks whose round can run now, since all its peers are at the matching one."""
    ready = dict(current)
    while True:
        ends = Counter(end for rank, steps in ready.items() for end in _ends(rank, steps))
        stuck = [
            rank
            for rank, steps in ready.items()
            if any(
                ends[sender, receiver, part, not sends] < ends[sender, receiver, part, sends]
                for sender, receiver, part, sends in _ends(rank, steps)
            )
        ]
        if not stuck:
            return sorted(ready)
        for rank in stuck:
            del ready[rank]


def _ends(rank: int, steps: Round) -> Iterator[tuple[int, int, tuple[int, int], bool]]:
    """Yield what a step has in common with its other end, and whether it is the sending one."""
    for step in steps:
        part = (step.first, step.chunks)
        if isinstance(step, Send):
            yield rank, step.peer, part, True
        else:
            yield step.peer, rank, part, False


def _sent(rank: int, steps: Round) -> Iterator[Message]:
    for step in steps:
        if isinstance(step, Recv):
            yield Message(step.peer, rank, step.first, step.chunks, step.reduce)


def _receive(rank: int, steps: Round, before: list[list[Held]], held: list[Held]) -> None:
    """Let `held` be what `rank` holds after a round, given what all held `before`."""
    for step in steps:
        if isinstance(step, Recv) and not step.reduce:
            part = slice(step.first, step.first + step.chunks)
            held[part] = before[step.peer][part]
    for first, chunks, ranks in meetings(rank, steps):
        for chunk in range(first, first + chunks):
            held[chunk] = tuple(sorted(chain.from_iterable(before[peer][chunk] for peer in ranks)))
