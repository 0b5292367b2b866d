"""What is asked of numpy: copies, and reductions whose result begins anywhere."""

import numpy as np
import pytest

from mpiring.arrays import LINE, SHORT, WORTH_A_LINE, combine_for, combining, copying
from mpiring.reductions import UFUNC_NAMES
from mpiring.trace import kind_of

pytestmark = pytest.mark.pure


def beginning(offset, count, dtype):
    """Return an array that begins so many bytes behind a cache line."""
    memory = np.empty(count * dtype.itemsize + 2 * LINE, np.uint8)
    begin = -memory.ctypes.data % LINE + offset
    array = memory[begin : begin + count * dtype.itemsize].view(dtype)
    array[:] = np.arange(count) % 11 + offset
    return array


@pytest.mark.parametrize("nbytes", [0, 1, SHORT - 1, SHORT, SHORT + 1, 5 * SHORT])
def test_a_copy_is_exact_at_any_length_and_touches_nothing_else(nbytes):
    for offset in (0, 1, 16):
        target = beginning(offset, nbytes + 2, np.dtype(np.uint8))
        source = (np.arange(nbytes) * 7 % 251).astype(np.uint8)
        source.flags.writeable = False
        around = target[0], target[-1]
        call = copying(target[1:-1], source)
        call()
        assert kind_of(call) == "copy", "in a profile"
        np.testing.assert_array_equal(target[1:-1], source)
        assert (target[0], target[-1]) == around


@pytest.mark.parametrize("kind", ["float16", "complex64", "bool", "int64"])
@pytest.mark.parametrize("count", [3, SHORT])
def test_a_copy_is_of_bits_whatever_they_mean(kind, count):
    bits = np.random.default_rng(5).integers(0, 256, count * np.dtype(kind).itemsize, np.uint8)
    target = np.zeros(count, kind)
    copying(target, bits.view(kind))()
    np.testing.assert_array_equal(target.view(np.uint8), bits)


@pytest.mark.parametrize("operation", UFUNC_NAMES)
def test_no_operation_warns_of_how_it_is_called(operation):
    dtype = np.dtype(np.int64)
    left, right, out = (beginning(0, WORTH_A_LINE, dtype) for _ in range(3))
    right[:] = right[::-1]
    combine = combine_for(operation, dtype)
    expected = combine(left, right, out=out.copy())
    for call in combining(combine, left, right, out):
        call()
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("where", ["apart", "left", "right"])
def test_a_large_result_is_stored_from_a_line_on_wherever_it_begins(kind, where):
    dtype = np.dtype(kind)
    for nbytes in (0, LINE, WORTH_A_LINE - 16, WORTH_A_LINE, WORTH_A_LINE + 16, 5 * WORTH_A_LINE):
        count = nbytes // dtype.itemsize
        for offset in range(0, LINE, dtype.itemsize):
            out = beginning(offset, count, dtype)
            left = out if where == "left" else beginning(16, count, dtype)
            right = out if where == "right" else beginning(32, count, dtype)
            expected = left + right
            calls = list(combining(np.add, left, right, out))
            for call in calls:
                call()
            np.testing.assert_array_equal(out, expected)
            parts = [call.args[-1] for call in calls]
            assert sum(part.size for part in parts) == count
            large = count * dtype.itemsize >= WORTH_A_LINE
            assert len(parts) == (2 if large and offset else 1)
            assert not large or parts[-1].ctypes.data % LINE == 0


def test_a_line_that_no_element_begins_is_not_looked_for():
    dtype = np.dtype(np.complex128)
    out = beginning(8, WORTH_A_LINE, dtype)
    assert len(list(combining(np.add, out, out, out))) == 1


def test_what_is_no_function_of_numpys_gets_the_whole_array():
    """A user's operation may act on several elements; the complex product has blocks anyway."""
    dtype = np.dtype(np.complex128)
    out = beginning(16, WORTH_A_LINE, dtype)
    for combine in (combine_for("prod", dtype), lambda left, right, /, *, out: None):
        (call,) = combining(combine, out, out, out)
        assert [array.size for array in (*call.args, call.keywords["out"])] == [out.size] * 3
