"""Run all ranks of a schedule in one process, with mailboxes in place of MPI.

Messages are as strict as MPI can be: a send completes only when its receive takes it (rendezvous),
so a schedule that needs buffering deadlocks here. Messages between two ranks keep their order.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import Any

from mpiring.chunks import Split
from mpiring.schedule import Recv, Round, Rounds, Send, Step, check_round, meetings

Values = list[Any]


class ScheduleError(Exception):
    """A schedule that cannot run: a deadlock, or a send and a receive that do not fit."""


def simulate(
    schedule: Callable[[int], Rounds],
    size: int,
    split: Split,
    contribution: Callable[[int, int], Any] = lambda rank, index: (rank,),
    combine: Callable[[Any, Any], Any] = add,
) -> list[Values]:
    """Return what each rank holds at the end: a list of `split.count` values for each rank.

    `schedule(rank)` yields the rounds of a rank. Element `index` starts as
    `contribution(rank, index)`; the defaults keep the ranks whose contributions an element holds,
    from left to right.
    """
    ranks = [_Rank(rank, schedule(rank), split, contribution) for rank in range(size)]
    sends: dict[tuple[int, int], deque[tuple[Step, Values]]] = defaultdict(deque)
    receives: dict[tuple[int, int], deque[Step]] = defaultdict(deque)
    ready = deque(ranks)
    while ready:
        this = ready.popleft()
        this.finish_round(combine)
        for step, payload in this.start_round(size):
            link = (this.rank, step.peer) if isinstance(step, Send) else (step.peer, this.rank)
            if isinstance(step, Send):
                sends[link].append((step, payload))
            else:
                receives[link].append(step)
            if sends[link] and receives[link]:
                sent, values = sends[link].popleft()
                taken = receives[link].popleft()
                if sent[1:3] != taken[1:3]:
                    raise ScheduleError(f"{link[0]} sends {sent}, {link[1]} expects {taken}")
                ranks[link[1]].arrived[taken] = values
                for end in link:
                    ranks[end].pending -= 1
                    if ranks[end].pending == 0 and end != this.rank:
                        ready.append(ranks[end])
        if not this.done and this.pending == 0:
            ready.append(this)
    stuck = [f"rank {r.rank} in round {r.round}: {r.steps}" for r in ranks if not r.done]
    if stuck:
        raise ScheduleError("deadlock: " + "; ".join(stuck))
    return [r.values for r in ranks]


class _Rank:
    """One rank between two rounds: its values, and what it waits for."""

    def __init__(
        self, rank: int, rounds: Rounds, split: Split, contribution: Callable[[int, int], Any]
    ) -> None:
        self.rank = rank
        self.split = split
        self.rounds = iter(rounds)
        self.values = [contribution(rank, index) for index in range(split.count)]
        self.steps: Round = ()
        self.round = -1
        self.pending = 0
        self.arrived: dict[Step, Values] = {}
        self.done = False

    def start_round(self, size: int) -> Iterator[tuple[Step, Values]]:
        """Yield each step of the next round that moves something, with what it sends."""
        steps = next(self.rounds, None)
        if steps is None:
            self.done = True
            return
        check_round(self.rank, steps)
        if any(not 0 <= step.peer < size for step in steps):
            raise ScheduleError(f"rank {self.rank}: no such peer in {steps}")
        self.round += 1
        self.steps = tuple(s for s in steps if self.split.length(s.first, s.chunks))
        self.pending = len(self.steps)
        for step in self.steps:
            yield step, self.values[self.split.slice(step.first, step.chunks)]

    def finish_round(self, combine: Callable[[Any, Any], Any]) -> None:
        for step in self.steps:
            if isinstance(step, Recv) and not step.reduce:
                self.values[self.split.slice(step.first, step.chunks)] = self.arrived[step]
        for meeting in meetings(self.rank, self.steps):
            where = self.split.slice(meeting.first, meeting.chunks)
            operands = [
                self.values[where]
                if rank == self.rank
                else self.arrived[Recv(rank, meeting.first, meeting.chunks, reduce=True)]
                for rank in meeting.ranks
            ]
            self.values[where] = [reduce(combine, column) for column in zip(*operands, strict=True)]
        self.arrived = {}
        self.steps = ()
