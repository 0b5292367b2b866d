"""Run all ranks of a schedule in one process, with mailboxes in place of MPI.

Messages are as strict as MPI can be. A send completes only when its receive takes it (rendezvous),
so a schedule that needs buffering deadlocks here. What is sent is read, and what is received is
written, at any time while the round is in flight. The order in which things happen can be shuffled.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import partial, reduce
from random import Random
from typing import Any

from mpiring.chunks import Split
from mpiring.schedule import (
    Recv,
    Round,
    Schedule,
    ScheduleError,
    Send,
    Step,
    check_round,
    in_turn,
    meetings,
    messages,
)

Values = Any
"""The elements of one rank: a list or an array."""


def concatenate(left: Values, right: Values) -> Values:
    """Combine lists of tuples, element by element: who is in there, from left to right."""
    return [a + b for a, b in zip(left, right, strict=True)]


def simulate(
    schedule: Schedule,
    count: int,
    contribution: Callable[[int], Values] | None = None,
    combine: Callable[[Values, Values], Values] = concatenate,
    shuffle: Random | None = None,
) -> list[Values]:
    """Return what each rank holds at the end: its `count` elements.

    `contribution(rank)` is what it begins with, and `combine` reduces two slices of such elements.
    The defaults keep the ranks that an element has come from, from left to right.

    Raises ScheduleError for a deadlock, for a send and a receive that do not fit, for a peer or a
    chunk that there is not, and for a round that breaks a rule.
    """
    begin = contribution or (lambda rank: [(rank,)] * count)
    split = Split(count, schedule.chunks)
    ranks = [_Rank(rank, schedule, split, begin(rank), combine) for rank in range(schedule.size)]
    posted: dict[tuple[int, int, int], deque[Posted]] = defaultdict(deque)
    events: list[Callable[[], Iterator[Posted]]] = [rank.advance for rank in ranks]

    def deliver(send: "Posted", receive: "Posted") -> Iterator["Posted"]:
        receive.rank.take(receive, send.rank.values[split.slice(*send.step[1:3])])
        for end in (send, receive):
            end.flight.pending -= 1
            if end.flight.pending == 0:
                yield from end.rank.advance()

    while events:
        index = shuffle.randrange(len(events)) if shuffle else -1
        events[index], events[-1] = events[-1], events[index]
        for message in events.pop()():
            waiting = posted[message.link]
            if not waiting or isinstance(waiting[0].step, Send) == isinstance(message.step, Send):
                waiting.append(message)
                continue
            ends = sorted((waiting.popleft(), message), key=lambda m: isinstance(m.step, Recv))
            if ends[0].step[1:3] != ends[1].step[1:3]:
                raise ScheduleError(
                    f"rank {ends[0].rank.rank} sends {ends[0].step},"
                    f" rank {ends[1].rank.rank} expects {ends[1].step}"
                )
            events.append(partial(deliver, *ends))
    stuck = [f"rank {r.rank} in {r.flights[r.turn.number].steps}" for r in ranks if r.turn]
    if stuck:
        raise ScheduleError("deadlock: " + "; ".join(stuck))
    return [rank.values for rank in ranks]


class _Flight:
    """A round that was started: its steps that move something, and what has arrived."""

    def __init__(self, steps: Round) -> None:
        self.steps = steps
        self.pending = len(steps)
        self.arrived: dict[tuple[int, int], Values] = {}


class Posted:
    """One end of a message: a step that waits for the other end.

    `link` is what MPI matches by: sender, receiver, and tag.
    """

    def __init__(self, rank: "_Rank", flight: _Flight, step: Step, tag: int) -> None:
        self.rank = rank
        self.flight = flight
        self.step = step
        ends = (rank.rank, step.peer) if isinstance(step, Send) else (step.peer, rank.rank)
        self.link = (*ends, tag)


class _Rank:
    def __init__(
        self,
        rank: int,
        schedule: Schedule,
        split: Split,
        values: Values,
        combine: Callable[[Values, Values], Values],
    ) -> None:
        self.rank = rank
        self.size = schedule.size
        self.rounds = tuple(schedule.rounds(rank))
        self.turns = in_turn(self.rounds, schedule.in_flight, schedule.group_of(rank))
        self.turn = next(self.turns, None)
        self.split = split
        self.values = values
        self.combine = combine
        self.flights: dict[int, _Flight] = {}

    def advance(self) -> Iterator[Posted]:
        """Take its turns up to one that has to wait, and yield what is posted."""
        while self.turn:
            starts, number = self.turn
            if starts:
                yield from self.start(number)
            elif self.flights[number].pending:
                return
            else:
                self.finish(self.flights.pop(number))
            self.turn = next(self.turns, None)

    def start(self, number: int) -> Iterator[Posted]:
        steps = self.rounds[number]
        check_round(self.rank, steps)
        if any(not 0 <= step.peer < self.size for step in steps):
            raise ScheduleError(f"rank {self.rank}: no such peer in {steps}")
        end = self.split.chunks
        if any(not 0 <= step.first < step.first + step.chunks <= end for step in steps):
            raise ScheduleError(f"rank {self.rank}: no such chunk in {steps}")
        moving = list(messages(steps, self.split))
        flight = _Flight(tuple(step for step, _ in moving))
        self.flights[number] = flight
        for step, tag in moving:
            yield Posted(self, flight, step, tag)

    def take(self, message: Posted, values: Values) -> None:
        step = message.step
        if isinstance(step, Recv) and step.reduce:
            message.flight.arrived[step.peer, step.first] = values.copy()
        else:
            self.values[self.split.slice(step.first, step.chunks)] = values

    def finish(self, flight: _Flight) -> None:
        for meeting in meetings(self.rank, flight.steps):
            where = self.split.slice(meeting.first, meeting.chunks)
            operands = [
                self.values[where] if rank == self.rank else flight.arrived[rank, meeting.first]
                for rank in meeting.ranks
            ]
            self.values[where] = reduce(self.combine, operands)
