"""Bind a schedule to buffers on a communicator, and run it.

Everything that can be done once is done when the plan is made: views are sliced, scratch is
allocated, requests are made persistent. What is left for a run is a list of calls.

The send buffer is not copied first. A chunk that nothing was written to yet is read where it is, in
the send buffer; the first reduction or receive writes it to the receive buffer.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from itertools import cycle
from typing import Any, NamedTuple, NoReturn, cast

from mpi4py import MPI

from mpiring.arrays import Array, Buffers, Combine, combining, copy, copying, empty, raw
from mpiring.chunks import Split
from mpiring.cost import Traffic, pieces, scratch_length, span
from mpiring.node_rounds import NodeRounds
from mpiring.node_tasks import Task, tasks
from mpiring.plan import Call, Plan
from mpiring.schedule import (
    Meeting,
    Recv,
    Round,
    Schedule,
    Send,
    Turn,
    in_turn,
    meetings,
    messages,
    segmented,
)


def no_reduction(left: Array, right: Array, /, *, out: Array) -> NoReturn:
    """Stand for an operation where a schedule has none to do."""
    raise AssertionError("a reduction in a collective that has none")


class Prepared:
    """A schedule and the buffers that it is to run on, checked by one rank alone.

    `wanted` are the chunks that have to be complete in the end, by default all of them; they are
    those of a buffer in one piece, so `whole` has to go with them: it keeps the buffer so, whatever
    scratch that takes.
    """

    terms: Mapping[str, str] = {}

    def __init__(
        self,
        name: str,
        schedule: Schedule,
        rank: int,
        buffers: Buffers,
        combine: Combine = no_reduction,
        *,
        wanted: Iterable[int] | None = None,
        whole: bool = False,
        rendezvous: bool = False,
        remark: str = "",
    ) -> None:
        self.name = name
        self.schedule = schedule
        self.rank = rank
        self.buffers = buffers
        self.combine = combine
        self.wanted = wanted
        self.whole = whole
        self.rendezvous = rendezvous
        self.remark = remark

    @property
    def pieces(self) -> int:
        """In how many pieces this rank needs the buffer; all have to take the largest answer."""
        if self.whole:
            return 1
        work = self.buffers.work
        needed = self.schedule.in_flight * _walk(self.schedule, self.rank, work.size).longest
        return pieces(needed * work.itemsize, work.size, work.itemsize)

    def bind(
        self, comm: MPI.Intracomm, tag: int, pieces: int, node: NodeRounds | None = None
    ) -> Plan:
        """Return the plan that runs the schedule over each of the pieces in turn.

        `node` carries out the rounds inside this rank's node, if they are not messages.
        """
        schedule = segmented(self.schedule, pieces)
        walk = (_walk if pieces == 1 else _walked)(schedule, self.rank, self.buffers.work.size)
        binder = _Binder(self, comm, tag, schedule, walk.longest, node)
        if self.buffers.load:
            binder.then(copy, *self.buffers.load)
        binder.add(walk)
        for chunk in range(schedule.chunks) if self.wanted is None else self.wanted:
            binder.fill(chunk)
        if self.buffers.store:
            binder.finish.append(partial(copy, *self.buffers.store))
        return Plan(
            self.name,
            binder.begin,
            binder.finish,
            requests=binder.requests,
            schedule=schedule,
            traffic=Traffic(**binder.counts),
            scratch_nbytes=binder.scratch_nbytes + self.buffers.staged_nbytes,
            remark=self.remark or (node.remark if node else ""),
            keeps=self.buffers,
        )


class _Walk(NamedTuple):
    """What a rank does in a schedule, over buffers of some length."""

    tasks: tuple[tuple[Round, Task | None], ...]
    """Its rounds, each with what it is inside the node; None where it is messages."""
    turns: tuple[Turn, ...]
    """When it starts each of them, and when it waits for it."""
    longest: int
    """Elements of scratch that a round needs at most."""


def _walked(schedule: Schedule, rank: int, count: int) -> _Walk:
    """Walk the rounds of a rank."""
    rounds, split = tuple(schedule.rounds(rank)), Split(count, schedule.chunks)
    group = schedule.group_of(rank)
    turns = tuple(in_turn(rounds, schedule.in_flight, group))
    longest = scratch_length(schedule.by_message(rank, rounds), split)
    return _Walk(tuple(tasks(rounds, group, split)), turns, longest)


_walk = lru_cache(maxsize=8)(_walked)
"""The same, kept: `allreduce` makes a plan each time that it is called."""


class _Flight(NamedTuple):
    """A round that was started: what has to be waited for, and where what is reduced lands."""

    steps: Round
    requests: list[MPI.Prequest]
    landed: dict[tuple[int, int], Array]  # by peer and first chunk


class _Binder:
    """Collects the calls of one rank's run: up to the first start of requests, and the rest."""

    def __init__(
        self,
        prepared: Prepared,
        comm: MPI.Intracomm,
        tag: int,
        schedule: Schedule,
        longest: int,
        node: NodeRounds | None,
    ) -> None:
        self.buffers = prepared.buffers
        self.combine = prepared.combine
        self.comm = comm
        self.send_init = comm.Ssend_init if prepared.rendezvous else comm.Send_init
        self.tag = tag
        self.in_flight = schedule.in_flight
        self.split = Split(self.buffers.work.size, schedule.chunks)
        self.written = [self.buffers.in_place] * schedule.chunks
        self.node = node
        self.longest = longest
        self.scratch = empty(self.in_flight * longest, self.buffers.work.dtype)
        self.requests: list[MPI.Prequest] = []
        # Of what is really handed to MPI, or done in the node.
        self.counts: Counter[str] = Counter()
        self.begin: list[Call] = []
        self.finish: list[Call] = []
        # What is done in the node waits for others, so all of it has to be left to `wait()`.
        self.calls = self.finish if node else self.begin

    @property
    def scratch_nbytes(self) -> int:
        """Bytes of scratch, for messages and for what the node carries out."""
        return self.scratch.nbytes + (self.node.scratch_nbytes if self.node else 0)

    def then(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Add one call to what runs."""
        self.calls.append(partial(call, *arguments, **options))

    def add(self, walk: _Walk) -> None:
        """Add all rounds, each of messages started and completed in its turn."""
        flights: dict[int, _Flight] = {}
        slots = cycle(range(self.in_flight))
        busy: list[int] = []
        self.calls += self.node.ends if self.node else ()
        for starts, number in walk.turns:
            steps, task = walk.tasks[number]
            if not starts:
                if task is None:
                    self.complete(flights.pop(number))
                continue
            if task is not None:
                moves = self.add_inside(steps, task)
            else:
                flights[number] = self.start(steps, self.longest * next(slots))
                moves = bool(flights[number].requests)
            if moves:
                busy.append(number)
        self.calls += self.node.ends if self.node else ()
        self.counts["rounds"] = span(busy)

    def add_inside(self, steps: Round, task: Task) -> bool:
        """Add a round that the node carries out; return whether it moves anything."""
        assert self.node is not None
        moving = [step for step, _ in messages(steps, self.split)]
        for step in moving:
            length = self.split.length(step.first, step.chunks)
            if isinstance(step, Send):
                self.count_sent(length)
                continue
            self.count_received(length)
            if step.reduce:
                self.counts["elements_reduced"] += length
            self.mark_written(step.first, step.chunks)
        self.calls += self.node.calls(task)
        return bool(moving)

    def start(self, steps: Round, scratch: int) -> _Flight:
        """Add the start of a round; what is reduced lands in scratch, from that index on."""
        landed: dict[tuple[int, int], Array] = {}
        receives: list[MPI.Prequest] = []
        sends: list[MPI.Prequest] = []
        for step, offset in messages(steps, self.split):
            where, tag = self.split.slice(step.first, step.chunks), self.tag + offset
            if isinstance(step, Send):
                message = self.current(step.first, step.chunks)
                request = self.send_init((raw(message), MPI.BYTE), step.peer, tag)
                sends.append(cast(MPI.Prequest, request))  # its stub says less
                self.count_sent(message.size)
                continue
            target = self.buffers.work[where]
            if step.reduce:
                target = self.scratch[scratch : scratch + target.size]
                scratch += target.size
                landed[step.peer, step.first] = target
            receives.append(self.comm.Recv_init((raw(target), MPI.BYTE), step.peer, tag))
            self.count_received(target.size)
        requests = receives + sends  # receives first, so that no message arrives unexpected
        if requests:
            self.requests += requests
            self.then(MPI.Prequest.Startall, requests)
            self.calls = self.finish
        return _Flight(steps, requests, landed)

    def complete(self, flight: _Flight) -> None:
        """Add the wait for a round, and its reductions."""
        if not flight.requests:
            return
        self.then(MPI.Prequest.Waitall, flight.requests)
        for step in flight.steps:
            if isinstance(step, Recv) and not step.reduce:
                self.mark_written(step.first, step.chunks)
        for meeting in meetings(self.comm.rank, flight.steps):
            if self.split.length(meeting.first, meeting.chunks):
                self.add_meeting(meeting, flight.landed)

    def add_meeting(self, meeting: Meeting, landed: dict[tuple[int, int], Array]) -> None:
        """Add the reductions of one meeting, from left to right; the last writes the result."""
        first, chunks, ranks = meeting
        own = self.current(first, chunks)
        written = self.written[first]
        result = own if written else self.buffers.work[self.split.slice(first, chunks)]
        left, *others = [own if rank == self.comm.rank else landed[rank, first] for rank in ranks]
        for index, right in enumerate(others, start=1):
            last = index == len(others)
            out = result if last or right is own else right  # scratch takes what is unfinished
            self.calls += combining(self.combine, left, right, out)
            self.counts["elements_reduced"] += right.size
            left = out
        self.mark_written(first, chunks)

    def current(self, first: int, chunks: int) -> Array:
        """Return the chunks where their value is: the send buffer until something is written."""
        where = self.split.slice(first, chunks)
        if not any(self.written[first : first + chunks]):
            return self.buffers.contribution[where]
        for chunk in range(first, first + chunks):
            self.fill(chunk)
        return self.buffers.work[where]

    def fill(self, chunk: int) -> None:
        """Copy a chunk that nothing was written to from the send buffer."""
        where = self.split.slice(chunk)
        if not self.written[chunk] and where.start < where.stop:
            self.calls.append(copying(self.buffers.work[where], self.buffers.contribution[where]))
            self.mark_written(chunk, 1)

    def count_sent(self, elements: int) -> None:
        self.counts["messages_sent"] += 1
        self.counts["elements_sent"] += elements

    def count_received(self, elements: int) -> None:
        self.counts["messages_received"] += 1
        self.counts["elements_received"] += elements

    def mark_written(self, first: int, chunks: int) -> None:
        self.written[first : first + chunks] = [True] * chunks
