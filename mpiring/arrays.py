"""All that the rest asks of numpy: which arrays there are, scratch, copies, reductions.

Buffers are one-dimensional and contiguous once they have passed `Buffers`; everything behind it
works on slices of those. Another kind of array (on a device, say) is added here and nowhere else.
"""

import zlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from mpiring.errors import Unsupported, UsageError
from mpiring.reductions import UFUNC_NAMES

Array: TypeAlias = npt.NDArray[Any]
DType: TypeAlias = np.dtype[Any]


class Combine(Protocol):
    """What combines two arrays into `out`, which is `left`, `right` or apart from both."""

    def __call__(self, left: Array, right: Array, /, *, out: Array) -> Any:
        """Set `out` to `left` op `right`, element by element."""


empty = np.empty
copy = np.copyto


def vector_copy(target: Array, source: Array) -> None:
    """Copy contiguous arrays with numpy's own loops, without the C library."""
    np.bitwise_or(raw(source), 0, out=raw(target))


def quietly() -> AbstractContextManager[None]:
    """Let an overflow give infinity without a word, as MPI does.

    A warning turned into an exception would stop one rank while the others wait for it.
    """
    return np.errstate(all="ignore")


def raw(array: Array) -> Array:
    """Return the bytes of a contiguous array, whatever its dtype, for a message."""
    return array.view(np.uint8)


def fingerprint(array: Array) -> int:
    """Return a number that changes with almost any change of a contiguous array's bytes."""
    return zlib.crc32(raw(array).data)


def dtype_named(name: str) -> DType:
    """Return numpy's numeric dtype called `name`, or bfloat16 where ml_dtypes is installed."""
    if name == "bfloat16":
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            raise Unsupported("bfloat16 needs ml_dtypes, which is not installed") from None
        dtype: DType = np.dtype(bfloat16)
        return dtype
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        raise Unsupported(f"unknown dtype {name!r}") from None
    if dtype.kind not in "biufc":
        raise Unsupported(f"dtype {name!r} is neither bfloat16 nor one of numpy's numbers")
    return dtype


def check_dtype(dtype: DType) -> None:
    """Raise Unsupported unless the elements are numbers or truth values."""
    if dtype.kind not in "biufc" and not is_extension(dtype):
        raise Unsupported(f"cannot reduce dtype {dtype}: its elements are not numbers")


def is_extension(dtype: DType) -> bool:
    """Whether the dtype is not numpy's own, as bfloat16."""
    return dtype.isbuiltin == 2


def combine_for(operation: str, dtype: DType) -> Combine:
    """Return what combines by a predefined operation, or raise Unsupported if `dtype` lacks it."""
    if operation == "prod" and dtype.kind == "c":
        return _complex_product(dtype)
    ufunc: np.ufunc = getattr(np, UFUNC_NAMES[operation])
    nothing = empty(0, dtype)
    try:
        ufunc(nothing, nothing, out=nothing)
    except TypeError:
        raise Unsupported(f"{operation} is not defined for {dtype}") from None
    return ufunc


def _complex_product(dtype: DType) -> Combine:
    """Return a product whose last bit does not depend on where its operands lie in memory.

    numpy's does: it may fuse a multiplication and an addition, or not, by the distance of the
    arrays. Two ranks that multiply the same numbers would end with different results.
    """
    # Small enough to stay in cache, and to need no mention beside a plan's scratch.
    one, other = np.empty((2, 1 << 10), dtype.type(0).real.dtype)

    def combine(left: Array, right: Array, /, *, out: Array) -> None:
        for start in range(0, left.size, one.size):
            block = slice(start, start + one.size)
            a, b, product = left[block], right[block], out[block]
            ac, bd = one[: a.size], other[: a.size]
            np.multiply(a.real, b.real, out=ac)
            np.multiply(a.imag, b.imag, out=bd)
            np.subtract(ac, bd, out=ac)
            np.multiply(a.real, b.imag, out=bd)
            imaginary = np.multiply(a.imag, b.real, out=product.imag)
            np.add(imaginary, bd, out=imaginary)
            product.real = ac

    return combine


@dataclass(frozen=True)
class Buffers:
    """What a plan works on: flat, contiguous arrays of equal length and dtype.

    `contribution` is what this rank brings and is never written, unless it is `work` itself (in
    place); `work` is where the result forms. An argument that is not contiguous has a copy that is:
    `load` fills it before a run, `store` copies the result out afterwards.
    """

    contribution: Array
    work: Array
    load: tuple[Array, Array] | None = None
    store: tuple[Array, Array] | None = None

    @property
    def in_place(self) -> bool:
        """Whether the result forms where the contribution is."""
        return self.contribution is self.work

    @property
    def staged_nbytes(self) -> int:
        """Bytes of the contiguous copies, which the caller does not hold."""
        staged = {id(self.contribution)} if self.load else set()
        staged |= {id(self.work)} if self.store else set()
        return len(staged) * self.work.nbytes


def buffers(sendbuf: Any, recvbuf: Any, in_place: bool) -> Buffers:
    """Read the arguments of a call; `in_place`: whatever `sendbuf` is, it does not count.

    Elements correspond in C order of their indices, whatever their order in memory. Raises
    Unsupported or UsageError.
    """
    if not isinstance(recvbuf, np.ndarray):
        raise _no_array("recvbuf", recvbuf)
    recvbuf = _plain("recvbuf", recvbuf)
    if not recvbuf.flags.writeable:
        raise UsageError("recvbuf is read-only")
    in_place = in_place or _same(sendbuf, recvbuf)
    if not in_place:
        sendbuf = _check_send(sendbuf, recvbuf)

    if recvbuf.flags.c_contiguous:
        work, store = recvbuf.reshape(-1), None
    else:
        stage = empty(recvbuf.shape, recvbuf.dtype)
        work, store = stage.reshape(-1), (recvbuf, stage)
    if in_place:
        return Buffers(work, work, store and store[::-1], store)
    if sendbuf.flags.c_contiguous:
        return Buffers(sendbuf.reshape(-1), work, None, store)
    stage = empty(sendbuf.shape, sendbuf.dtype)
    return Buffers(stage.reshape(-1), work, (stage, sendbuf), store)


def _check_send(sendbuf: Any, recvbuf: Array) -> Array:
    if not isinstance(sendbuf, np.ndarray | np.generic):
        raise _no_array("sendbuf", sendbuf)
    array = _plain("sendbuf", sendbuf)
    if array.dtype != recvbuf.dtype:
        raise Unsupported(f"sendbuf is {array.dtype}, recvbuf is {recvbuf.dtype}")
    if array.size != recvbuf.size:
        raise UsageError(f"sendbuf has {array.size} elements, recvbuf has {recvbuf.size}")
    if np.shares_memory(array, recvbuf):
        raise UsageError("sendbuf and recvbuf overlap, but are not the same")
    return array


def _same(a: Any, b: Array) -> bool:
    if not isinstance(a, np.ndarray):
        return False
    return a is b or (
        a.ctypes.data == b.ctypes.data
        and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype)
        and a.size > 0
    )


def _plain(name: str, array: Any) -> Array:
    """Return the array without a subclass, whose shapes or arithmetic may be others."""
    if isinstance(array, np.ma.MaskedArray):
        raise Unsupported(f"{name} is a masked array, and a mask cannot be reduced")
    plain = np.asarray(array)
    check_dtype(plain.dtype)
    return plain


def _no_array(name: str, value: Any) -> Unsupported:
    return Unsupported(f"{name} is of type {type(value).__name__}, not a numpy array")
