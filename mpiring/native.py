"""`native`: the MPI library's own MPI_Allreduce, as a plan like any other."""

from functools import partial
from typing import Any

from mpi4py import MPI

from mpiring.arrays import Buffers, DType, copy, empty
from mpiring.errors import Unsupported
from mpiring.executor import Call, Plan
from mpiring.operations import describe, mpi_datatype


def check(op: MPI.Op, dtype: DType) -> None:
    """Raise Unsupported where the library has no such datatype, or not this operation on it."""
    datatype = mpi_datatype(dtype)
    if not op.is_predefined:
        return
    one, other = empty(1, dtype), empty(1, dtype)
    one[:] = other[:] = 1
    try:  # what the standard leaves to the library shows when it is tried
        op.Reduce_local((one.view("u1"), 1, datatype), (other.view("u1"), 1, datatype))
    except MPI.Exception:
        raise Unsupported(f"the MPI library has no {describe(op)} of {dtype}") from None


def bind(buffers: Buffers, op: MPI.Op, comm: MPI.Intracomm) -> Plan:
    """Return the plan that calls `comm.Allreduce` in its `wait()`."""
    datatype = mpi_datatype(buffers.work.dtype)
    count = buffers.work.size
    recv: Any = (buffers.work, count, datatype)
    send: Any = MPI.IN_PLACE if buffers.in_place else (buffers.contribution, count, datatype)
    begin: list[Call] = []
    finish: list[Call] = [partial(comm.Allreduce, send, recv, op)]
    if buffers.load:
        begin.append(partial(copy, *buffers.load))
    if buffers.store:
        finish.append(partial(copy, *buffers.store))
    return Plan("native", begin, finish, scratch_nbytes=buffers.staged_nbytes)
