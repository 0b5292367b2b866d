"""The MPI library's own MPI_Allreduce, called or as a persistent request: plans like any other."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from mpi4py import MPI

from mpiring.algorithms.algorithm import NATIVE, NATIVE_PERSISTENT
from mpiring.arrays import Buffers, copy, empty
from mpiring.errors import Unsupported
from mpiring.operations import describe, mpi_datatype
from mpiring.plan import Call, Plan, refuse


class Prepared:
    """A request that this library can fulfil.

    Raises Unsupported where it has no such datatype, or not this operation on it.
    """

    name = NATIVE
    pieces = 1

    def __init__(self, op: MPI.Op, buffers: Buffers) -> None:
        dtype = buffers.work.dtype
        self.op = op
        self.buffers = buffers
        self.datatype = mpi_datatype(dtype)
        # To mix in place and not is an error in MPI, and nothing to us.
        self.terms = {"in place": str(buffers.in_place)}
        if op.is_predefined:
            one, other = empty(1, dtype), empty(1, dtype)
            one[:] = other[:] = 1
            try:  # what the standard leaves to the library shows when it is tried
                op.Reduce_local((one, 1, self.datatype), (other, 1, self.datatype))
            except MPI.Exception:
                raise Unsupported(f"the MPI library has no {describe(op)} of {dtype}") from None

    @property
    def arguments(self) -> tuple[Any, Any, MPI.Op]:
        """What the library's call is given, on this rank."""
        work, count = self.buffers.work, self.buffers.work.size
        send: Any = MPI.IN_PLACE
        if not self.buffers.in_place:
            send = (self.buffers.contribution, count, self.datatype)
        return send, (work, count, self.datatype), self.op

    def bind(self, comm: MPI.Intracomm, tag: int, pieces: int) -> Plan:
        """Return the plan that calls `comm.Allreduce` in its `wait()`."""
        call = partial(comm.Allreduce, *self.arguments)
        begin, finish = self.staged([], [call])
        if begin or len(finish) > 1:
            return Plan(self.name, begin, finish, scratch_nbytes=self.buffers.staged_nbytes)
        return _Bare(self.name, begin, finish, call)

    def staged(self, begin: list[Call], finish: list[Call]) -> tuple[list[Call], list[Call]]:
        """Return the calls of a run, with the copies of what is not contiguous before and after."""
        load, store = self.buffers.load, self.buffers.store
        before: list[Call] = [partial(copy, *load)] if load else []
        after: list[Call] = [partial(copy, *store)] if store else []
        return [*before, *begin], [*finish, *after]


class Persistent(Prepared):
    """The same as a persistent request."""

    name = NATIVE_PERSISTENT

    def bind(self, comm: MPI.Intracomm, tag: int, pieces: int) -> Plan:
        """Return the plan that starts the request in its `start()`; making it is collective.

        Raises Unsupported where the library has no such requests.
        """
        try:
            request = comm.Allreduce_init(*self.arguments)
        except (NotImplementedError, MPI.Exception) as error:
            raise Unsupported(f"the MPI library cannot: {error}") from None
        begin, finish = self.staged([request.Start], [request.Wait])
        kind = _Persistent if len(begin) + len(finish) > 2 else _BarePersistent
        return kind(self.name, begin, finish, [request], scratch_nbytes=self.buffers.staged_nbytes)


class _Bare(partial[None], Plan):
    """Called, it is the library's call itself, without a line of Python in between.

    Out of turn it is what refuses that: the call is put back when the plan is ready again.
    """

    def __new__(cls, name: str, begin: list[Call], finish: list[Call], call: Any) -> "_Bare":
        return super().__new__(cls, call.func, *call.args)

    def __init__(self, name: str, begin: list[Call], finish: list[Call], call: Any) -> None:
        self._call = call
        Plan.__init__(self, name, begin, finish)

    def start(self) -> None:
        super().start()
        self._become(partial(refuse, self._state))

    def wait(self) -> None:
        super().wait()
        self._become(self._call)

    def _release(self) -> None:
        super()._release()
        self._call = partial(refuse, self._state)
        self._become(self._call)

    def _become(self, call: Any) -> None:
        # How partial is unpickled; its stub does not say so.
        self.__setstate__((call.func, call.args, {}, self.__dict__))  # type: ignore[attr-defined]


class _Persistent(Plan):
    def _release(self) -> None:
        if self._state == "started":  # MPI frees no collective request that is under way
            self._requests = ()
        super()._release()


class _BarePersistent(_Persistent):
    """Called, it starts the request and waits for it, and nothing else."""

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        (self._start_request,), (self._wait_for_it,) = self._begin, self._finish

    def __call__(self) -> None:
        if self._state != "ready":
            refuse(self._state)
        self._start_request()
        self._wait_for_it()

    def _release(self) -> None:
        super()._release()
        self._start_request = self._wait_for_it = partial(refuse, self._state)


FORMS: Mapping[str, type[Prepared]] = {form.name: form for form in (Prepared, Persistent)}
"""What fulfils a request, by the names in the registry."""
