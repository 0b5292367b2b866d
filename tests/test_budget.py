"""Which sizes are measured in the time there is, from times that are made up."""

import pytest

from mpiring.budget import SLACK, Budget
from mpiring.results import Point

pytestmark = pytest.mark.pure

SIZES = [8 << i for i in range(9)]  # 8 B to 2 KiB
BUDGET = Budget(algorithms=2, fewest=5, time_limit_s=1.0)


def points(nbytes, **seconds):
    return [
        Point(name, nbytes, nbytes // 4, "float32", "sum", False, 4, samples_s=(time,))
        for name, time in seconds.items()
    ]


def test_what_fits_stays_in_its_order():
    left_s = SLACK * len(SIZES)
    assert BUDGET.order(SIZES, [], left_s) == SIZES
    assert BUDGET.order(SIZES[::-1], [], float("inf")) == SIZES[::-1]


def test_the_ends_come_first_then_the_middle_of_the_widest_gap():
    assert BUDGET.order(SIZES, [], 5 * SLACK) == [8, 2048, 128, 32, 512]


def test_sizes_that_are_measured_are_known():
    known = points(8, ring=1e-6, native=1e-6) + points(2048, ring=1e-6, native=1e-6)
    assert BUDGET.order(SIZES[1:-1], known, SLACK) == [128]


def test_a_gap_in_which_the_fastest_changes_counts_more():
    known = points(8, ring=2e-6, native=1e-6) + points(64, ring=2e-6, native=1e-6)
    known += points(2048, ring=1e-6, native=2e-6)
    wide = [16, 32, 128, 256, 512, 1024]
    assert BUDGET.order(wide, known, SLACK) == [256]
    known = points(8, ring=2e-6, native=1e-6) + points(64, ring=1e-6, native=2e-6)
    known += points(2048, ring=1e-6, native=2e-6)
    assert BUDGET.order(wide, known, SLACK) == [16]


def test_what_takes_longer_than_is_left_is_left_out():
    """10 runs of 2 calls of 0.1 s at 1 MiB are 2 s, as many bytes more take as much longer."""
    mib = 1 << 20
    known = points(mib, ring=0.1, native=0.1)
    assert BUDGET.cost_s(mib, {mib: 0.2}) == pytest.approx(2 * SLACK)
    assert BUDGET.cost_s(4 * mib, {mib: 0.2}) == pytest.approx(8 * SLACK)
    assert BUDGET.cost_s(0, {mib: 0.2, 2 * mib: 9.0}) == pytest.approx(2 * SLACK)
    assert BUDGET.order([4 * mib, 2 * mib], known, 7 * SLACK) == [2 * mib]


def test_small_sizes_tell_what_a_call_takes_and_nothing_of_its_bytes():
    assert BUDGET.cost_s(1 << 20, {8: 0.2}) == pytest.approx(2 * SLACK, rel=0.2)


def test_time_is_not_lost_where_nothing_seems_to_fit():
    assert BUDGET.order([16, 8, 32], [], 0.9 * SLACK) == [16]
    known = points(1 << 20, ring=10.0, native=10.0)
    assert BUDGET.order([4 << 20, 2 << 20], known, 1.0) == [2 << 20]
    assert BUDGET.order(SIZES, [], 0.0) == BUDGET.order(SIZES, [], -1.0) == []


def test_before_anything_is_measured_a_slow_machine_is_assumed():
    assert BUDGET.cost_s(8, {}) == SLACK
    assert BUDGET.cost_s(10**9, {}) > 100


def test_no_bytes_are_the_smallest_size():
    assert BUDGET.order([0, 8, 1 << 20], [], 1.5 * SLACK) == [0]
