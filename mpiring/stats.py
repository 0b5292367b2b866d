"""From samples to statements. Timings have long tails, so no normal distribution is assumed.

Intervals of a median are those of order statistics (Hollander and Wolfe, Nonparametric Statistical
Methods, on the sign test): the number of samples below the true median is binomial, whatever the
distribution. Intervals of a ratio of two unpaired medians are percentiles of a bootstrap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from statistics import fmean, median, stdev
from typing import Literal, TypeAlias

import numpy as np

from mpiring.arrays import Array

Interval: TypeAlias = tuple[float, float]
Verdict: TypeAlias = Literal["faster", "slower", "tie", "unknown"]

CONFIDENCE = Fraction(19, 20)
ENOUGH_FOR_P99 = 100
DRAWS = 2000
AT_ONCE = 1 << 18
"""Samples that are drawn in one step of a bootstrap: 2 MiB of them."""
NEUTRAL_BAND = 0.05


@dataclass(frozen=True)
class Summary:
    """What there is to say about the samples of one quantity."""

    number: int
    median: float
    interval: Interval | None
    """Of the median, with 95 % confidence; None with fewer than 6 samples."""
    mean: float
    minimum: float
    maximum: float
    p90: float
    p99: float | None
    """None with fewer than 100 samples."""
    cv: float | None
    """Standard deviation over mean; None for one sample, or where all are 0."""

    @property
    def precision(self) -> float:
        """Half the width of the interval over the median: infinite where there is no interval."""
        if self.interval is None or not self.median:
            return float("inf")
        low, high = self.interval
        return (high - low) / 2 / self.median


def summarise(samples: Sequence[float]) -> Summary:
    """Summarise at least one sample."""
    mean = fmean(samples)
    return Summary(
        number=len(samples),
        median=median(samples),
        interval=median_interval(samples),
        mean=mean,
        minimum=min(samples),
        maximum=max(samples),
        p90=float(np.percentile(samples, 90)),
        p99=float(np.percentile(samples, 99)) if len(samples) >= ENOUGH_FOR_P99 else None,
        cv=stdev(samples, mean) / mean if len(samples) > 1 and mean else None,
    )


def median_interval(samples: Sequence[float]) -> Interval | None:
    """Return the interval that encloses the median with 95 % confidence, if there is one."""
    position = _interval_position(len(samples))
    if position is None:
        return None
    ordered = sorted(samples)
    return ordered[position], ordered[-1 - position]


@cache
def _interval_position(number: int) -> int | None:
    """Return how many of `number` ordered samples may lie outside the interval on either side."""
    # In whole numbers, since 2^number has no float beyond some thousand samples.
    unlikely = int((1 - CONFIDENCE) * 2**number)
    outside, below, ways = None, 0, 1
    for position in range(number // 2):
        below += ways
        if 2 * below > unlikely:
            break
        outside = position
        ways = ways * (number - position) // (position + 1)
    return outside


@dataclass(frozen=True)
class Ratio:
    """How many times as fast one thing is as another, and what may be said of it."""

    ratio: float
    interval: Interval | None
    verdict: Verdict


def paired_speedup(reference: Sequence[float], times: Sequence[float], band: float) -> Ratio:
    """Return how many times as fast `times` are as `reference`, sample by sample.

    Samples of equal index were taken one after the other, so a drift of the machine cancels.
    """
    ratios = [a / b for a, b in zip(reference, times, strict=True)]
    interval = median_interval(ratios)
    return Ratio(median(ratios), interval, verdict(interval, band))


def bootstrap_speedup(
    reference: Sequence[float], times: Sequence[float], band: float, seed: int = 0
) -> Ratio:
    """Return how many times as fast `times` are as `reference`, taken apart from each other.

    Without an interval where either has fewer than 6 samples: a bootstrap can draw no other values
    than it was given, so those of a few samples are too narrow.
    """
    interval = None
    if all(_interval_position(len(samples)) is not None for samples in (reference, times)):
        random = np.random.default_rng(seed)
        ratios = _resampled_medians(random, reference) / _resampled_medians(random, times)
        tail = float(100 * (1 - CONFIDENCE) / 2)
        low, high = np.percentile(ratios, [tail, 100 - tail])
        interval = (float(low), float(high))
    return Ratio(median(reference) / median(times), interval, verdict(interval, band))


def _resampled_medians(random: np.random.Generator, samples: Sequence[float]) -> Array:
    """Return the medians of DRAWS resamples, a block at a time, not in gigabytes."""
    rows = max(1, AT_ONCE // len(samples))
    blocks = (min(rows, DRAWS - done) for done in range(0, DRAWS, rows))
    drawn = (random.choice(samples, (block, len(samples))) for block in blocks)
    return np.concatenate([np.median(block, axis=1) for block in drawn])


def verdict(interval: Interval | None, band: float) -> Verdict:
    """Return what an interval of a speed-up says, with everything within `band` of 1 a tie.

    A difference is called one only if the whole interval lies beyond the band. An interval that
    reaches beyond the band on both sides says nothing: faster, slower and equal are all within it;
    nor does one that is four times as wide as the band, which may hide a large difference.
    """
    if interval is None:
        return "unknown"
    low, high = interval
    slowest, fastest = 1 / (1 + band), 1 + band
    if low > fastest:
        return "faster"
    if high < slowest:
        return "slower"
    wide = high > low * fastest**4
    return "unknown" if wide or (low < slowest and high > fastest) else "tie"
