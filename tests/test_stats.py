"""Statistics against distributions whose answers are known."""

import tracemalloc

import numpy as np
import pytest

from mpiring.stats import (
    bootstrap_speedup,
    median_interval,
    paired_speedup,
    summarise,
    verdict,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("number", "outside"),
    [(6, 0), (8, 0), (9, 1), (12, 2), (20, 5), (25, 7), (100, 39), (1000, 468)],
)
def test_the_interval_has_the_positions_of_the_tables(number, outside):
    """Ranks of the confidence interval of a median, as printed in tables of the sign test."""
    samples = np.random.default_rng(1).permutation(number).astype(float)
    assert median_interval(samples) == (outside, number - 1 - outside)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_few_samples_have_no_interval(number):
    assert median_interval([1.0] * number) is None


@pytest.mark.parametrize("number", [6, 17, 100])
@pytest.mark.parametrize("draw", ["exponential", "normal", "standard_cauchy"])
def test_the_interval_covers_the_median_of_any_distribution(number, draw):
    random = np.random.default_rng(3)
    true = {"exponential": np.log(2), "normal": 0.0, "standard_cauchy": 0.0}[draw]
    hits = 0
    for _ in range(2000):
        low, high = median_interval(getattr(random, draw)(size=number))
        hits += low <= true <= high
    assert 0.94 <= hits / 2000 <= 1


def test_a_summary():
    samples = [float(x) for x in range(1, 101)]
    summary = summarise(samples)
    assert (summary.number, summary.median, summary.mean) == (100, 50.5, 50.5)
    assert (summary.minimum, summary.maximum) == (1, 100)
    assert summary.p90 == pytest.approx(90.1)
    assert summary.p99 == pytest.approx(99.01)
    assert summary.cv == pytest.approx(29.01149 / 50.5)
    assert summary.interval == (40, 61)
    assert summary.precision == pytest.approx(10.5 / 50.5)


def test_percentiles_that_so_few_samples_cannot_tell():
    assert summarise([1.0] * 99).p99 is None
    assert summarise([1.0] * 100).p99 == 1


@pytest.mark.parametrize("samples", [[2.0], [2.0] * 7, [0.0], [0.0] * 7])
def test_samples_without_spread_divide_by_nothing(samples):
    summary = summarise(samples)
    assert summary.median == samples[0]
    assert summary.cv in (None, 0)
    assert summary.precision in (0, float("inf"))


def test_pairs_cancel_a_drift():
    random = np.random.default_rng(5)
    drift = np.linspace(1, 3, 50)
    reference = drift * random.normal(1, 0.01, 50)
    speedup = paired_speedup(reference, drift * random.normal(0.5, 0.005, 50), band=0.05)
    assert speedup.ratio == pytest.approx(2, rel=0.02)
    assert speedup.interval[1] - speedup.interval[0] < 0.05
    assert speedup.verdict == "faster"


@pytest.mark.parametrize(
    ("factor", "expected"), [(1.0, "tie"), (1.1, "slower"), (0.9, "faster"), (1.02, "tie")]
)
@pytest.mark.parametrize("compare", [paired_speedup, bootstrap_speedup])
def test_verdicts_are_right_nineteen_times_of_twenty(compare, factor, expected):
    right = 0
    for seed in range(40):
        random = np.random.default_rng([7, seed])
        reference = random.gamma(20, 0.02, 150) + 1  # a long tail, and 6 % of spread
        times = factor * (random.gamma(20, 0.02, 150) + 1)
        right += compare(reference, times, band=0.05).verdict == expected
    assert right >= 38


def test_a_bootstrap_of_equal_samples():
    speedup = bootstrap_speedup([2.0] * 6, [1.0] * 6, band=0.05)
    assert (speedup.ratio, speedup.interval, speedup.verdict) == (2, (2, 2), "faster")


@pytest.mark.parametrize(("before", "after"), [(2, 2), (5, 100), (100, 5)])
def test_a_bootstrap_of_few_samples_says_nothing(before, after):
    speedup = bootstrap_speedup([2.0] * before, [1.0] * after, band=0.05)
    assert (speedup.ratio, speedup.interval, speedup.verdict) == (2, None, "unknown")


def test_many_samples_need_little_memory():
    samples = np.random.default_rng(1).normal(1, 0.01, 20_000)
    tracemalloc.start()
    speedup = bootstrap_speedup(samples, samples, band=0.05)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert speedup.verdict == "tie"
    assert peak < 32 << 20


def test_many_samples_have_an_interval():
    """As the normal approximation of the binomial gives it, which is exact by then."""
    low, high = median_interval(range(30_000))
    half = 1.96 * np.sqrt(30_000) / 2
    assert low == pytest.approx(15_000 - half, abs=2)
    assert high == pytest.approx(15_000 + half, abs=2)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((1.06, 1.2), "faster"),
        ((1.04, 1.2), "tie"),
        ((0.8, 0.94), "slower"),
        ((0.8, 0.96), "tie"),
        ((0.38, 1.02), "unknown"),
        ((0.99, 1.22), "unknown"),
        ((0.97, 1.04), "tie"),
        ((0.94, 1.04), "tie"),
        ((0.94, 1.06), "unknown"),
        ((0.5, 2.0), "unknown"),
        (None, "unknown"),
    ],
)
def test_a_difference_is_one_beyond_the_band_alone(interval, expected):
    assert verdict(interval, 0.05) == expected
