"""The check itself: exact data for every dtype and operation, and no fault goes unseen."""

from dataclasses import replace

import numpy as np
import pytest
from ml_dtypes import bfloat16

from mpiring.arrays import combine_for
from mpiring.errors import Unsupported
from mpiring.reductions import UFUNC_NAMES
from mpiring.verify import Case, Exactness, find_fault, poison

pytestmark = pytest.mark.pure

DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "g", "F", "D", bfloat16]


def expected_of(case):
    return case.expected(slice(0, case.count))


def cases(size, count=257):
    for dtype in map(np.dtype, DTYPES):
        for op in UFUNC_NAMES:
            try:
                combine_for(op, dtype)
            except Unsupported:
                continue
            yield Case(count, dtype, op, size)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 64, 300])
def test_the_expected_values_do_not_depend_on_the_order(size):
    order = np.random.default_rng(size).permutation(size)
    for case in cases(size):
        combine = combine_for(case.op, case.dtype)
        total = case.contribution(int(order[0]))
        for rank in order[1:]:
            combine(case.contribution(int(rank)), total, out=total)
        np.testing.assert_array_equal(total, expected_of(case), str(case))


@pytest.mark.parametrize("size", [2, 4, 5])
def test_contributions_differ_in_rank_and_index(size):
    for case in cases(size):
        parts = [case.contribution(rank) for rank in range(size)]
        if case.dtype != bool and not case.op.startswith("l"):
            assert len(np.unique(parts[0])) > 2, case
        for rank in range(1, size):
            assert np.any(parts[rank] != parts[0]), case
        assert np.any(parts[0] != replace(case, seed=1).contribution(0)), case


def faulty_results(case):
    """What a broken algorithm would leave: each has to differ from what is expected."""
    parts = [case.contribution(rank) for rank in range(case.size)]
    expected, third = expected_of(case), case.count // 3
    combine = combine_for(case.op, case.dtype)
    yield "the input", parts[0]
    missing = expected.copy()
    missing[-third:] = parts[0][-third:]
    yield "the last chunk not reduced", missing
    fewer = parts[0].copy()
    for part in parts[1:-1]:
        combine(fewer, part, out=fewer)
    yield "one rank left out", fewer
    yield "chunks swapped", np.roll(expected, third)
    if case.op in ("sum", "prod", "lxor", "bxor") and case.dtype.kind != "b":
        twice = expected.copy()
        combine(twice, parts[1], out=twice)
        yield "one rank added twice", twice
    if case.dtype.kind == "c" and case.op in ("sum", "prod"):
        yield "conjugated", expected.conj()


@pytest.mark.parametrize("size", [2, 4, 64, 255])
def test_faults_are_found(size):
    """Also of many ranks, each of which decides few elements."""
    for case in cases(size, count=max(257, 20 * size)):
        expected = expected_of(case)
        assert find_fault(expected.copy(), expected) == ""
        for name, result in faulty_results(case):
            assert find_fault(result, expected), (name, case)


def test_a_receive_buffer_that_was_never_written_is_wrong_everywhere():
    for case in cases(4):
        expected = expected_of(case)
        recvbuf = np.zeros_like(expected)
        poison(recvbuf, expected)
        assert f"{case.count} of {case.count} are wrong" in find_fault(recvbuf, expected)


def test_the_fault_is_described():
    expected = np.arange(5.0)
    result = expected.copy()
    result[3:] = 9
    assert find_fault(result, expected) == "element 3 is 9.0 instead of 3.0, 2 of 5 are wrong"


def test_long_buffers_are_made_block_by_block():
    case = Case(200001, np.dtype("f4"), "sum", 2)
    parts = [case.contribution(rank) for rank in (0, 1)]
    np.testing.assert_array_equal(parts[0] + parts[1], expected_of(case))
    assert len(np.unique(parts[0])) > 100000


def test_the_expected_values_can_be_made_part_by_part():
    """Each rank makes its part, from blocks that begin elsewhere than a contribution does."""
    parts = [slice(0, 5), slice(5, 99), slice(65530, 65541), slice(65537, 131080)]
    for case in cases(3, count=131080):
        combine = combine_for(case.op, case.dtype)
        whole = case.contribution(0)
        for rank in (1, 2):
            combine(whole, case.contribution(rank), out=whole)
        for part in parts:
            np.testing.assert_array_equal(case.expected(part), whole[part], f"{case} {part}")


def test_no_elements():
    case = Case(0, np.dtype("f4"), "sum", 3)
    assert expected_of(case).size == case.contribution(1).size == 0
    assert find_fault(case.contribution(0), expected_of(case)) == ""


EXACTNESS_DTYPES = ["f2", "f4", "f8", "F", "D", bfloat16]


def exactness(dtype, op="sum", size=3, count=5):
    return Exactness.of(Case(count, np.dtype(dtype), op, size))


def nudged(values, steps):
    """Return the values moved up by so many representable numbers, in their real part."""
    moved = values.copy()
    for _ in range(steps):
        moved.real = np.nextafter(moved.real, np.array(np.inf, moved.real.dtype))
    return moved


@pytest.mark.parametrize("dtype", EXACTNESS_DTYPES, ids=str)
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_an_error_counts_units_of_the_last_place(dtype, steps):
    """Also of the largest element alone, at either end of a power of two."""
    check = exactness(dtype)
    exact = np.array([1.0, 1.5, 3.0, 1024.0, 0.75]).astype(dtype)
    assert check.error(nudged(exact, steps), check.probe(exact)) == steps
    for place in (0, len(exact) - 1):
        one = exact.copy()
        one[place] = nudged(exact, steps)[place]
        assert check.error(one, check.probe(exact)) == steps


@pytest.mark.parametrize("dtype", EXACTNESS_DTYPES, ids=str)
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_data_that_round_are_near_the_reference_for_many_ranks(dtype, op):
    """A reduction in rank order of 2000 contributions neither overflows nor vanishes."""
    size = 2000 if np.dtype(dtype).itemsize > 2 else 20
    check = exactness(dtype, op, size)
    parts = [check.contribution(rank) for rank in range(size)]
    total = parts[0].copy()
    combine = combine_for(op, total.dtype)
    for part in parts[1:]:
        combine(total, part, out=total)
    reference = check.reference([check.probe(part) for part in parts])
    assert np.all(np.isfinite(total))
    assert 0 < check.error(total, reference) < size


@pytest.mark.parametrize(
    ("dtype", "op", "count"), [("i4", "sum", 5), ("f4", "max", 5), ("f4", "sum", 0)]
)
def test_what_cannot_round_has_no_exactness(dtype, op, count):
    assert exactness(dtype, op, count=count) is None
