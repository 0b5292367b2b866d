"""All that the rest asks of numpy: which arrays there are, scratch, copies, reductions.

Buffers are one-dimensional and contiguous once they have passed `Buffers`; everything behind it
works on slices of those. Another kind of array (on a device, say) is added here and nowhere else.
"""

import operator
import zlib
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import cache, partial
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


LINE = 64
"""Bytes of a cache line."""
WORTH_A_LINE = 8 << 10
"""Bytes of a result for which a second call pays, so that it begins at a cache line."""

empty = np.empty
copy = np.copyto
overlap = np.may_share_memory
"""Whether the bounds of two arrays do, which is exact for contiguous ones."""


vector_loop = np.conjugate
"""Of bytes, numpy's fastest loop that copies, without the C library: whose memcpy takes ten times
as long at some addresses, from 16 to 256 KiB, on processors where it trusts `rep movsb`."""
short_copy = operator.setitem
"""Of bytes seen by Python, by that memcpy, in a quarter of the time that it takes to call numpy."""
SHORT = 8 << 10


def copying(target: Array, source: Array) -> Callable[[], Any]:
    """Return a call that copies contiguous arrays by what is fastest at their length."""
    if target.nbytes <= SHORT:
        return partial(short_copy, raw(target).data, slice(None), raw(source).data)
    return partial(vector_loop, raw(source), raw(target))


def quiet_context() -> Context:
    """Return a context in which an overflow gives infinity without a word, as in MPI.

    A warning turned into an exception would stop one rank while the others wait for it. To enter a
    context takes a tenth of the time of `np.errstate`.
    """
    context = copy_context()
    context.run(np.seterr, all="ignore")
    return context


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


def shape_and_dtype(shape: Any, dtype: Any) -> tuple[tuple[int, ...], DType]:
    """Read what an array is to be. Raises Unsupported or UsageError for what numpy cannot make."""
    try:
        dtype = np.dtype(dtype)
        shape = np.broadcast_to(np.empty((), np.int8), shape).shape  # any way to write it
    except (TypeError, ValueError) as error:
        raise UsageError(f"no array of shape {shape!r} and dtype {dtype!r}: {error}") from None
    check_dtype(dtype)
    return shape, dtype


def combine_for(operation: str, dtype: DType) -> Combine:
    """Return what combines by a predefined operation, or raise Unsupported if `dtype` lacks it."""
    if operation == "prod" and dtype.kind == "c":
        return _complex_product(dtype)
    ufunc = _ufunc_for(operation, dtype)
    if ufunc is None:
        raise Unsupported(f"{operation} is not defined for {dtype}")
    return ufunc


def combining(
    combine: Combine, left: Array, right: Array, out: Array
) -> Iterator[Callable[[], Any]]:
    """Yield the calls that combine contiguous arrays into `out`.

    That is one; or two where a large `out` begins at no cache line, so that the second begins at
    one. numpy's loops would store vectors that lie in two lines each, which takes twice as long,
    and more beside messages; and malloc puts large arrays 16 bytes behind a line.
    """
    before = 0
    if out.nbytes >= WORTH_A_LINE and isinstance(combine, np.ufunc):
        nbytes = -out.ctypes.data % LINE
        before = nbytes // out.itemsize if nbytes % out.itemsize == 0 else 0
    for part in (slice(before), slice(before, None)) if before else (slice(None),):
        operands = left[part], right[part]
        # A keyword costs as much as all the rest of a call, but these two warn of a third operand.
        if isinstance(combine, np.ufunc) and combine not in (np.maximum, np.minimum):
            yield partial(combine, *operands, out[part])
        else:
            yield partial(combine, *operands, out=out[part])


@cache
def _ufunc_for(operation: str, dtype: DType) -> np.ufunc | None:
    """Return numpy's function for an operation, or None if it has none for this dtype."""
    ufunc: np.ufunc = getattr(np, UFUNC_NAMES[operation])
    nothing = empty(0, dtype)
    try:
        ufunc(nothing, nothing, out=nothing)
    except TypeError:
        return None
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
    `load` fills it before a run, `store` copies the result out afterwards. `stages` is all that was
    allocated for them, which the caller does not hold.
    """

    contribution: Array
    work: Array
    load: tuple[Array, Array] | None = None
    store: tuple[Array, Array] | None = None
    stages: tuple[Array, ...] = ()

    @property
    def in_place(self) -> bool:
        """Whether the result forms where the contribution is."""
        return self.contribution is self.work

    @property
    def staged_nbytes(self) -> int:
        """Bytes of those stages."""
        return sum(stage.nbytes for stage in self.stages)


def buffers(sendbuf: Any, recvbuf: Any, in_place: bool) -> Buffers:
    """Read the arguments of an allreduce; `in_place`: whatever `sendbuf` is, it does not count.

    Elements correspond in C order of their indices, whatever their order in memory. Raises
    Unsupported or UsageError, as the other readers of arguments here.
    """
    recvbuf = _check_recv("recvbuf", recvbuf)
    work, store = _flat_or_staged(recvbuf)
    if in_place or _same(sendbuf, recvbuf):
        return Buffers(work, work, store and store[::-1], store, _stages(store))
    sendbuf = _check_send(sendbuf, recvbuf)
    contribution, staged = _flat_or_staged(sendbuf)
    load = staged and staged[::-1]
    return Buffers(contribution, work, load, store, _stages(staged, store))


def reduce_scatter_buffers(sendbuf: Any, recvbuf: Any, rank: int, size: int) -> Buffers:
    """Read the arguments of a reduce-scatter: `recvbuf` takes part `rank` of `size` equal parts."""
    recvbuf = _check_recv("recvbuf", recvbuf)
    sendbuf = _check_send(sendbuf, recvbuf, sends=size)
    contribution, staged = _flat_or_staged(sendbuf)
    work = empty(sendbuf.size, sendbuf.dtype)
    mine = work[rank * recvbuf.size : (rank + 1) * recvbuf.size]
    store = (recvbuf, mine.reshape(recvbuf.shape))
    load = staged and staged[::-1]
    return Buffers(contribution, work, load, store, (*_stages(staged), work))


def allgather_buffers(sendbuf: Any, recvbuf: Any, in_place: bool, rank: int, size: int) -> Buffers:
    """Read the arguments of an allgather: `sendbuf` is part `rank` of `size` equal parts."""
    recvbuf = _check_recv("recvbuf", recvbuf)
    work, store = _flat_or_staged(recvbuf)
    if in_place:
        if recvbuf.size % size:
            raise UsageError(f"recvbuf has {recvbuf.size} elements, no multiple of {size} ranks")
        return Buffers(work, work, store and store[::-1], store, _stages(store))
    sendbuf = _check_send(sendbuf, recvbuf, receives=size)
    mine = work[rank * sendbuf.size : (rank + 1) * sendbuf.size]
    return Buffers(work, work, (mine.reshape(sendbuf.shape), sendbuf), store, _stages(store))


def bcast_buffers(buffer: Any) -> Buffers:
    """Read the argument of a broadcast."""
    work, store = _flat_or_staged(_check_recv("buffer", buffer))
    return Buffers(work, work, store and store[::-1], store, _stages(store))


def _flat_or_staged(array: Array) -> tuple[Array, tuple[Array, Array] | None]:
    """Return the elements as a line: themselves, or a copy, with what copies that back."""
    if array.flags.c_contiguous:
        return array.reshape(-1), None
    stage: Array = empty(array.shape, array.dtype)
    return stage.reshape(-1), (array, stage)


def _stages(*staged: tuple[Array, Array] | None) -> tuple[Array, ...]:
    """Return the copies among what was flattened so."""
    return tuple(pair[1] for pair in staged if pair)


def _check_recv(name: str, recvbuf: Any) -> Array:
    if not isinstance(recvbuf, np.ndarray):
        raise _no_array(name, recvbuf)
    array = _plain(name, recvbuf)
    if not array.flags.writeable:
        raise UsageError(f"{name} is read-only")
    return array


def _check_send(sendbuf: Any, recvbuf: Array, sends: int = 1, receives: int = 1) -> Array:
    """Return the array to send, for `sends` parts to `receives` parts."""
    if not isinstance(sendbuf, np.ndarray | np.generic):
        raise _no_array("sendbuf", sendbuf)
    array = _plain("sendbuf", sendbuf)
    if array.dtype != recvbuf.dtype:
        raise Unsupported(f"sendbuf is {array.dtype}, recvbuf is {recvbuf.dtype}")
    if array.size * receives != recvbuf.size * sends:
        parts = "" if sends == receives else f": of {max(sends, receives)} parts, one for each rank"
        raise UsageError(f"sendbuf has {array.size} elements, recvbuf has {recvbuf.size}{parts}")
    if overlap(array, recvbuf) and np.shares_memory(array, recvbuf):
        raise UsageError("sendbuf and recvbuf overlap, but are not the same")
    return array


def _same(a: Any, b: Array) -> bool:
    if not isinstance(a, np.ndarray):
        return False
    return a is b or (
        overlap(a, b)  # a quick look first
        and a.ctypes.data == b.ctypes.data
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
