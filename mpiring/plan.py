"""What a collective comes to on one rank: a list of calls, to be run as often as wanted."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from mpi4py import MPI

from mpiring.arrays import quiet_context
from mpiring.cost import Traffic
from mpiring.options import DEFAULTS, Options
from mpiring.schedule import Schedule

Call: TypeAlias = Callable[[], Any]

_ABANDONED: list[tuple[Sequence[Call], Sequence[Call]]] = []
"""The calls, and so the buffers, of plans dropped while started: MPI may still write to these."""


class Plan:
    """A collective that is prepared once and run many times, like a persistent MPI request.

    `start()` begins it and `wait()` completes it; calling the plan does both. In between, neither
    buffer may be touched. Every rank has to start its plans of one communicator, and to wait for
    them, in an order that all ranks share. `free()` gives back what MPI holds for the plan; so does
    leaving a `with` block, or the garbage collector.
    """

    _requests: Sequence[MPI.Prequest] = ()
    _state = "new"

    algorithm: str
    """Name of the algorithm that runs."""
    options: Options = DEFAULTS
    """What was chosen of it."""
    schedule: Schedule | None
    """What runs, in as many segments as it does; None where the MPI library alone knows."""
    traffic: Traffic | None
    """What this rank hands to MPI and to the operation in a run; None as above."""
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
        schedule: Schedule | None = None,
        traffic: Traffic | None = None,
        scratch_nbytes: int = 0,
        remark: str = "",
        keeps: object = None,
    ) -> None:
        """`keeps` is what has to live as long as the plan can run: memory that its calls use."""
        self.algorithm = algorithm
        self._keeps = keeps
        self.remark = remark
        self.schedule = schedule
        self.traffic = traffic
        self.scratch_nbytes = scratch_nbytes
        self._begin = begin
        self._finish = finish
        self._requests = requests
        self._quietly = quiet_context().run
        self._state = "ready"

    def start(self) -> None:
        """Begin. Raises RuntimeError on a plan that is started already or freed."""
        if self._state != "ready":
            refuse(self._state)
        self._state = "started"
        for call in self._begin:
            call()

    def wait(self) -> None:
        """Return when the result is in the receive buffer. Raises RuntimeError before `start()`."""
        if self._state != "started":
            raise RuntimeError(f"wait() for a plan that is {self._state}, not started")
        self._quietly(self._complete)
        self._state = "ready"

    def _complete(self) -> None:
        for call in self._finish:
            call()

    def __call__(self) -> None:
        """Run the plan: start and wait."""
        # Not by these two methods: their calls would take a tenth of a short plan's time.
        if self._state != "ready":
            refuse(self._state)
        self._state = "started"
        self._quietly(self._run)
        self._state = "ready"

    def _run(self) -> None:
        for call in self._begin:
            call()
        for call in self._finish:
            call()

    def traced(self, now: Callable[[], float]) -> list[tuple[Call, float, float]]:
        """Run the plan, and return each of its calls with the time before and after it."""
        if self._state != "ready":
            raise RuntimeError(f"traced() of a plan that is {self._state}")
        return self._quietly(self._timed, now)

    def _timed(self, now: Callable[[], float]) -> list[tuple[Call, float, float]]:
        timed = []
        for call in (*self._begin, *self._finish):
            before = now()
            call()
            timed.append((call, before, now()))
        return timed

    def free(self) -> None:
        """Give back the requests, and let go of the buffers, the scratch and all copies.

        The plan cannot be started again. A second call does nothing. Raises RuntimeError on a plan
        that is started.
        """
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
        self._begin = self._finish = ()
        self._keeps = None
        if requests and not MPI.Is_finalized():
            for request in requests:
                request.Free()


def refuse(state: str) -> NoReturn:
    """Refuse to start a plan in such a state."""
    raise RuntimeError(f"start() of a plan that is {state}")
