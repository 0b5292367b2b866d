"""`native`: the MPI library's own MPI_Allreduce, as a plan like any other."""

from functools import partial
from typing import Any

from mpi4py import MPI

from mpiring.arrays import Buffers, copy, empty
from mpiring.errors import Unsupported
from mpiring.executor import Call, Plan
from mpiring.operations import describe, mpi_datatype


class Prepared:
    """A request that this library can fulfil.

    Raises Unsupported where it has no such datatype, or not this operation on it.
    """

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

    def bind(self, comm: MPI.Intracomm, tag: int, pieces: int) -> Plan:
        """Return the plan that calls `comm.Allreduce` in its `wait()`."""
        work, count = self.buffers.work, self.buffers.work.size
        send: Any = MPI.IN_PLACE
        if not self.buffers.in_place:
            send = (self.buffers.contribution, count, self.datatype)
        call = partial(comm.Allreduce, send, (work, count, self.datatype), self.op)
        begin: list[Call] = []
        finish: list[Call] = [call]
        if self.buffers.load:
            begin.append(partial(copy, *self.buffers.load))
        if self.buffers.store:
            finish.append(partial(copy, *self.buffers.store))
        if begin or len(finish) > 1:
            return Plan("native", begin, finish, scratch_nbytes=self.buffers.staged_nbytes)
        return _Bare("native", begin, finish, call)


class _Bare(Plan):
    """Called, it is nothing but the library's call: what ours are measured against."""

    def __init__(self, algorithm: str, begin: list[Call], finish: list[Call], call: Call) -> None:
        super().__init__(algorithm, begin, finish)
        self._call = call

    def __call__(self) -> None:
        self._call()
