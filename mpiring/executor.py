"""Bind a schedule to buffers on a communicator, and run it.

Everything that can be done once is done when the plan is made: views are sliced, scratch is
allocated, requests are made persistent. What is left for a run is a list of calls.

The send buffer is not copied first. A chunk that nothing was written to yet is read where it is, in
the send buffer; the first reduction or receive writes it to the receive buffer.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from mpi4py import MPI

from mpiring.algorithms import Algorithm
from mpiring.arrays import Array, Buffers, Combine, copy, empty, quietly, raw
from mpiring.chunks import Split
from mpiring.cost import Traffic, scratch_length, traffic
from mpiring.schedule import Meeting, Recv, Round, Send, meetings
from mpiring.topology import Topology

Call: TypeAlias = Callable[[], Any]

PAGE = 4096

_ABANDONED: list[tuple[Sequence[Call], Sequence[Call]]] = []
"""The calls, and so the buffers, of plans dropped while started: MPI may still write to these."""


class Plan:
    """An allreduce that is prepared once and run many times, like a persistent MPI request.

    `start()` begins it and `wait()` completes it; calling the plan does both. In between, neither
    buffer may be touched. Every rank has to start its plans of one communicator, and to wait for
    them, in an order that all ranks share. `free()` gives back what MPI holds for the plan; so does
    leaving a `with` block, or the garbage collector.
    """

    _requests: Sequence[MPI.Prequest] = ()
    _state = "new"

    algorithm: str
    """Name of the algorithm that runs."""
    traffic: Traffic | None
    """What this rank does in a run; None where the MPI library alone knows."""
    scratch_nbytes: int
    """Bytes that the plan holds beside the caller's buffers."""
    remark: str
    """What a reader of its timings has to know, or empty."""

    def __init__(
        self,
        algorithm: str,
        begin: Sequence[Call],
        finish: Sequence[Call],
        requests: Sequence[MPI.Prequest] = (),
        traffic: Traffic | None = None,
        scratch_nbytes: int = 0,
        remark: str = "",
    ) -> None:
        self.algorithm = algorithm
        self.remark = remark
        self.traffic = traffic
        self.scratch_nbytes = scratch_nbytes
        self._begin = begin
        self._finish = finish
        self._requests = requests
        self._state = "ready"

    def start(self) -> None:
        """Begin. Raises RuntimeError on a plan that is started already or freed."""
        if self._state != "ready":
            raise RuntimeError(f"start() of a plan that is {self._state}")
        self._state = "started"
        for call in self._begin:
            call()

    def wait(self) -> None:
        """Return when the result is in the receive buffer. Raises RuntimeError before `start()`."""
        if self._state != "started":
            raise RuntimeError(f"wait() for a plan that is {self._state}, not started")
        with quietly():
            for call in self._finish:
                call()
        self._state = "ready"

    def __call__(self) -> None:
        """Run the plan: start and wait."""
        self.start()
        self.wait()

    def free(self) -> None:
        """Give back the requests; the plan cannot be started again. A second call does nothing."""
        if self._state == "started":
            raise RuntimeError("free() of a plan that is started: wait for it first")
        self._release()

    def __enter__(self) -> "Plan":
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        # After an error, a started request must not turn that error into another one.
        self._release() if kind else self.free()

    def __del__(self) -> None:
        self._release()

    def _release(self) -> None:
        requests, self._requests = self._requests, ()
        if self._state == "started":
            _ABANDONED.append((self._begin, self._finish))
        self._state = "freed"
        if requests and not MPI.Is_finalized():
            for request in requests:
                request.Free()


class Prepared:
    """A schedule and the buffers that it is to run on, checked by one rank alone.

    `whole` keeps the buffer in one piece, whatever scratch that takes.
    """

    terms: Mapping[str, str] = {}

    def __init__(
        self,
        algorithm: Algorithm,
        topology: Topology,
        rank: int,
        buffers: Buffers,
        combine: Combine,
        whole: bool,
    ) -> None:
        assert algorithm.schedule is not None
        self.algorithm = algorithm.name
        self.remark = algorithm.remark(topology)
        self.rounds = tuple(algorithm.schedule(rank, topology))
        self.split = Split(buffers.work.size, algorithm.chunks(topology))
        self.buffers = buffers
        self.combine = combine
        self.whole = whole

    @property
    def pieces(self) -> int:
        """In how many pieces, one after the other, the buffer has to run here to bound the scratch.

        The bound is one buffer, or one page where the buffer is smaller than that. All ranks have
        to take the largest answer of any.
        """
        itemsize = self.buffers.work.itemsize
        needed = scratch_length(self.rounds, self.split) * itemsize
        return 1 if self.whole else max(1, -(-needed // max(self.split.count * itemsize, PAGE)))

    def bind(self, comm: MPI.Intracomm, tag: int, pieces: int) -> Plan:
        """Return the plan that runs the schedule over each of the pieces in turn."""
        whole = Split(self.split.count, pieces)
        splits = [
            Split(whole.length(piece), self.split.chunks, whole.offset(piece))
            for piece in range(pieces)
        ]
        longest = max(scratch_length(self.rounds, split) for split in splits)
        binder = _Binder(self.buffers, self.combine, comm, tag, longest)
        if self.buffers.load:
            binder.then(copy, *self.buffers.load)
        for split in splits:
            binder.add(self.rounds, split)
        if self.buffers.store:
            binder.finish.append(partial(copy, *self.buffers.store))
        counts = [traffic(self.rounds, split) for split in splits]
        return Plan(
            self.algorithm,
            binder.begin,
            binder.finish,
            requests=binder.requests,
            traffic=Traffic(*map(sum, zip(*counts, strict=True))),
            scratch_nbytes=binder.scratch.nbytes + self.buffers.staged_nbytes,
            remark=self.remark,
        )


class _Binder:
    """Collects the calls of one rank's run: up to the first start of requests, and the rest."""

    def __init__(
        self, buffers: Buffers, combine: Combine, comm: MPI.Intracomm, tag: int, scratch_length: int
    ) -> None:
        self.buffers = buffers
        self.combine = combine
        self.comm = comm
        self.tag = tag
        self.scratch = empty(scratch_length, buffers.work.dtype)
        self.requests: list[MPI.Prequest] = []
        self.begin: list[Call] = []
        self.finish: list[Call] = []
        self.calls = self.begin

    def then(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Add one call to what runs."""
        self.calls.append(partial(call, *arguments, **options))

    def add(self, rounds: Sequence[Round], split: Split) -> None:
        """Add a whole schedule over the elements of `split`."""
        self.split = split
        self.written = [self.buffers.in_place] * split.chunks
        for steps in rounds:
            steps = tuple(s for s in steps if split.length(s.first, s.chunks))
            if steps:
                self.add_round(steps)
        for chunk in range(split.chunks):
            self.fill(chunk)

    def add_round(self, steps: Round) -> None:
        """Add: start everything, wait for everything, reduce."""
        landed: dict[tuple[int, int], Array] = {}  # by peer and first chunk
        used = 0
        receives, sends = [], []
        for step in steps:
            if isinstance(step, Send):
                message = raw(self.current(step.first, step.chunks))
                sends.append(self.comm.Send_init((message, MPI.BYTE), step.peer, self.tag))
                continue
            where = self.split.slice(step.first, step.chunks)
            target = self.buffers.work[where]
            if step.reduce:
                target = self.scratch[used : used + target.size]
                used += target.size
                landed[step.peer, step.first] = target
            receives.append(self.comm.Recv_init((raw(target), MPI.BYTE), step.peer, self.tag))
        requests = receives + sends  # receives first, so that no message arrives unexpected
        self.requests += requests
        self.then(MPI.Prequest.Startall, requests)
        self.calls = self.finish
        self.then(MPI.Prequest.Waitall, requests)

        for step in steps:
            if isinstance(step, Recv) and not step.reduce:
                self.mark_written(step.first, step.chunks)
        for meeting in meetings(self.comm.rank, steps):
            self.add_meeting(meeting, landed)

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
            self.then(self.combine, left, right, out=out)
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
            self.then(copy, self.buffers.work[where], self.buffers.contribution[where])
            self.mark_written(chunk, 1)

    def mark_written(self, first: int, chunks: int) -> None:
        self.written[first : first + chunks] = [True] * chunks
