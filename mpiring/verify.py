"""Data for checks, and the check: exact for every dtype and operation, in any order of reduction.

Contributions differ in every rank and index. They are chosen so that no order of reduction rounds
(small integers in floating point, powers of two for products), so a result is right or wrong,
without a tolerance. The expected values are reduced in the dtype itself: integers wrap as numpy's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpiring.arrays import Array, DType, combine_for, empty, is_extension, raw

_BLOCK = 1 << 16  # elements at a time, to stay in cache
_ODD = np.uint64(0x9E3779B97F4A7C15)
_OF_TRUTH = {"sum": "bor", "max": "bor", "lor": "bor"}
_OF_TRUTH |= {"prod": "band", "min": "band", "land": "band"}
"""What an operation is of truth values, where that is not an exclusive or."""


@dataclass(frozen=True)
class Case:
    """What is reduced: `count` elements of `dtype` by operation `op`, over `size` ranks."""

    count: int
    dtype: DType
    op: str
    size: int
    seed: int = 0

    def contribution(self, rank: int) -> Array:
        """Return what `rank` brings."""
        out = empty(self.count, self.dtype)
        for block in _blocks(slice(0, self.count)):
            out[block] = self._block(rank, block)
        return out

    def expected(self, part: slice) -> Array:
        """Return a part of the result, reduced in rank order."""
        out = empty(part.stop - part.start, self.dtype)
        combine = combine_for(self.op, self.dtype)
        for block in _blocks(part):
            total = out[block.start - part.start : block.stop - part.start]
            total[:] = self._block(0, block)
            for rank in range(1, self.size):
                combine(total, self._block(rank, block), out=total)
        return out

    def _block(self, rank: int, block: slice) -> Array:
        index = np.arange(block.start, block.stop, dtype=np.uint64)
        values: Array = self._values(rank, index, _mix(index, rank, self.seed)).astype(self.dtype)
        return values

    def _values(self, rank: int, index: Array, bits: Array) -> Any:
        """Return values that `dtype` holds exactly, and whose reduction by `op` is exact too."""
        truth = self.dtype.kind == "b" or self.op in ("land", "lor", "lxor")
        op = _OF_TRUTH.get(self.op, self.op) if truth else self.op
        if op in ("band", "bor"):
            rare = self._rare(bits)
            some = rare if truth else np.where(rare, bits, np.uint64(0))
            return ~some if op == "band" else some
        if truth:
            return bits & 1 == 1
        if op == "prod":  # even factors would soon give 0
            return bits | 1 if self.dtype.kind in "iu" else self._factors(rank, bits)
        values = self._terms(rank, index, bits)
        if op in ("max", "min"):
            mirrored = ~values if self.dtype.kind in "iu" else -values
            above, below = np.maximum(values, mirrored), np.minimum(values, mirrored)
            return np.where(self._rare(bits) == (op == "max"), above, below)
        return values

    def _rare(self, bits: Array) -> Array:
        """Whether a rank decides an element: one in `size` does, on average, whatever `size` is.

        Of random values the others would be right without it: a bit is in the result of ten ranks
        anyway, and the largest number of eight bits in that of a thousand.
        """
        rare: Array = (bits * _ODD >> np.uint64(32)) % np.uint64(self.size + 1) == 0
        return rare

    def _terms(self, rank: int, index: Array, bits: Array) -> Any:
        if self.dtype.kind in "iu":
            return bits.astype(self.dtype)
        values = self._summands(rank, index, bits)
        if self.dtype.kind == "c":  # of other bits, as much a function of the index alone
            values = values + 1j * self._summands(rank, index, bits >> np.uint64(32))
        return values

    def _summands(self, rank: int, index: Array, bits: Array) -> Any:
        """Integers so small that the sum of `size` of them has no more bits than the mantissa."""
        largest = 2 ** (_mantissa_bits(self.dtype) - 1)
        ranks = self.size if self.op == "sum" else 1  # nothing else grows with them
        bound = min(largest // ranks, 2**20)
        if bound:
            return (bits % np.uint64(2 * bound + 1)).astype(np.int64) - bound
        # More ranks than the mantissa counts: each index gets summands from some of them only.
        every = -(-self.size // largest)
        return np.where(
            (index + np.uint64(rank)) % np.uint64(every) == 0, 1 - (bits & 2).astype(int), 0
        )

    def _factors(self, rank: int, bits: Array) -> Any:
        """Powers of two, from the first few ranks alone, with any sign; or that times i."""
        sign: Any = 1.0 - (bits & 2).astype(float)
        if self.dtype.kind == "c":
            sign = sign * np.where(bits & 4, 1j, 1)
        exponent = (bits & 1).astype(int) * (1 if rank % 2 else -1)
        return sign * 2.0**exponent if rank < 8 else sign


@dataclass(frozen=True)
class Exactness:
    """How far results are from exact ones, for floating-point data that round."""

    case: Case
    PROBES = 1024

    @classmethod
    def of(cls, case: Case) -> "Exactness | None":
        """Return it for sums and products of at least one number, of a dtype that rounds."""
        rounds = case.dtype.kind in "fc" or is_extension(case.dtype)
        return cls(case) if rounds and case.op in ("sum", "prod") and case.count else None

    def contribution(self, rank: int) -> Array:
        """Return what `rank` brings: of magnitude near 1: no sum cancels, no product runs off."""
        out = empty(self.case.count, self.case.dtype)
        for block in _blocks(slice(0, self.case.count)):
            index = np.arange(block.start, block.stop, dtype=np.uint64)
            bits = _mix(index, rank, self.case.seed + 1)
            values = 0.75 + (bits >> np.uint64(11)) * 2.0**-54
            out[block] = values * (0.8 + 0.6j) if self.case.dtype.kind == "c" else values
        return out

    def probe(self, array: Array) -> Array:
        """Return some elements, from the first to the last, in extended precision."""
        where = np.linspace(0, array.size - 1, min(array.size, self.PROBES)).astype(int)
        wide: Array = array[where].astype(
            np.clongdouble if array.dtype.kind == "c" else np.longdouble
        )
        return wide

    def reference(self, probes: Sequence[Array]) -> Array:
        """Return the result of higher precision where the probes of all ranks were taken."""
        reduce = np.add.reduce if self.case.op == "sum" else np.multiply.reduce
        exact: Array = reduce(np.array(probes), axis=0)
        return exact

    def error(self, result: Array, reference: Array) -> float:
        """Return the largest error at the probes, in units of the last place of the result."""
        off = np.abs(self.probe(result) - reference)
        # 2^exponent is the power of two above the reference, and the mantissa begins just below it.
        _, exponent = np.frexp(np.abs(reference))
        unit = np.ldexp(1.0, exponent - _mantissa_bits(self.case.dtype))
        return float(np.max(off / unit))


def _blocks(part: slice) -> Iterator[slice]:
    for start in range(part.start, part.stop, _BLOCK):
        yield slice(start, min(start + _BLOCK, part.stop))


def poison(recvbuf: Array, expected: Array) -> None:
    """Fill `recvbuf` with values that are wrong everywhere: each byte off by its lowest bit."""
    np.bitwise_xor(raw(expected), 1, out=raw(recvbuf))


def find_fault(result: Array, expected: Array) -> str:
    """Return what is wrong with `result`, or an empty string."""
    wrong = np.flatnonzero(result != expected)
    if not wrong.size:
        return ""
    index = int(wrong[0])
    return (
        f"element {index} is {result[index]} instead of {expected[index]},"
        f" {wrong.size} of {result.size} are wrong"
    )


def _mix(index: Array, rank: int, seed: int) -> Array:
    """Return 64 well-mixed bits for each index, another set for each rank and seed."""
    mask = 2**64 - 1
    offset = np.uint64((rank * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03 + 1) & mask)
    bits = (index + offset) * np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(29)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(32)
    return bits


def _mantissa_bits(dtype: DType) -> int:
    """Return how many bits an exact integer may have in `dtype`."""
    if dtype.kind in "fc":
        return int(np.finfo(dtype).nmant) + 1
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return int(finfo.nmant) + 1
