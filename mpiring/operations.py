"""From an `MPI.Op` to what combines two arrays on this rank."""

from contextlib import suppress

from mpi4py import MPI

from mpiring import arrays
from mpiring.arrays import Array, Combine, DType, is_extension
from mpiring.errors import Unsupported
from mpiring.reductions import UFUNC_NAMES

PREDEFINED: dict[str, MPI.Op] = {name: getattr(MPI, name.upper()) for name in UFUNC_NAMES}
"""MPI's operations by the names in `UFUNC_NAMES`."""


def describe(op: MPI.Op) -> str:
    """Return the name of a predefined operation, or all that can be said of another one."""
    name = _name(op)
    if name:
        return name
    return "user operation, " + ("commutes" if op.Is_commutative() else "does not commute")


def combine_for(op: MPI.Op, dtype: DType) -> Combine:
    """Return what combines two arrays by `op`, with numpy's results for predefined operations.

    Raises Unsupported where the operation is not defined for `dtype`.
    """
    name = _name(op)
    if name:
        return arrays.combine_for(name, dtype)
    if op == MPI.OP_NULL or op.is_predefined:
        raise Unsupported("op does not work element by element")
    datatype = mpi_datatype(dtype)

    def combine(left: Array, right: Array, /, *, out: Array) -> None:
        # MPI has a two-operand form alone: the second array becomes first op second. Where the
        # result goes to the first one, that is copied: the second may be another rank's.
        if arrays.overlap(out, left):
            left = left.copy()
        if not arrays.overlap(out, right):
            arrays.copy(out, right)
        op.Reduce_local((left, datatype), (out, datatype))

    return combine


def mpi_datatype(dtype: DType) -> MPI.Datatype:
    """Return the MPI datatype of one element, or raise Unsupported where the library has none."""
    # An extension type is known by a character that means another type to MPI.
    if dtype.isnative and not is_extension(dtype):
        with suppress(ValueError):
            datatype = MPI.Datatype.fromcode(dtype.char)
            if datatype.Get_size() == dtype.itemsize:
                return datatype
    raise Unsupported(f"the MPI library has no datatype for {dtype}")


def _name(op: MPI.Op) -> str | None:
    return next((name for name, known in PREDEFINED.items() if op == known), None)
