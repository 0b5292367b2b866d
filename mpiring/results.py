"""Results: immutable, and the versioned documents they are written as."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, median
from typing import Any

from mpiring.units import algbw, busbw

SCHEMA = "mpiring.results/1"


@dataclass(frozen=True)
class Point:
    """One algorithm at one size.

    `samples_s` are seconds, each the maximum over ranks; there are none where the check failed or
    the algorithm could not run, and `note` says why.
    """

    algorithm: str
    nbytes: int
    count: int
    dtype: str
    op: str
    in_place: bool
    ranks: int
    samples_s: tuple[float, ...] = ()
    check_ok: bool | None = None
    """None where nothing was checked."""
    note: str = ""
    rounds: int | None = None
    bytes_sent_per_rank: int | None = None
    """By the rank that sends most; None where the MPI library alone knows, as for `rounds`."""
    native_median_s: float | None = None

    @cached_property
    def median_s(self) -> float | None:
        """Median of the samples."""
        return median(self.samples_s) if self.samples_s else None

    @property
    def algbw(self) -> float | None:
        """In GB/s."""
        return algbw(self.nbytes, self.median_s) if self.median_s else None

    @property
    def busbw(self) -> float | None:
        """In GB/s."""
        return busbw(self.nbytes, self.median_s, self.ranks) if self.median_s else None

    @property
    def speedup_vs_native(self) -> float | None:
        """How many times as fast as `native` in the same run."""
        if not self.median_s or not self.native_median_s:
            return None
        return self.native_median_s / self.median_s

    def document(self) -> dict[str, Any]:
        """Return the point as it stands in a JSON file."""
        samples = self.samples_s
        return {
            "algorithm": self.algorithm,
            "nbytes": self.nbytes,
            "count": self.count,
            "dtype": self.dtype,
            "op": self.op,
            "in_place": self.in_place,
            "time_s": {
                "median": self.median_s,
                "mean": fmean(samples) if samples else None,
                "min": min(samples, default=None),
                "max": max(samples, default=None),
            },
            "samples_s": list(samples),
            "algbw_GBps": self.algbw,
            "busbw_GBps": self.busbw,
            "speedup_vs_native": self.speedup_vs_native,
            "check": {"ok": self.check_ok},
            "note": self.note,
            "rounds": self.rounds,
            "bytes_sent_per_rank": self.bytes_sent_per_rank,
        }


@dataclass(frozen=True)
class Result:
    """A run: what it ran on, what was asked, and the points so far.

    `status` is "interrupted" until the last point is there, so that a run which was killed needs no
    last word.
    """

    environment: Mapping[str, Any]
    config: Mapping[str, Any]
    points: tuple[Point, ...] = ()
    status: str = "interrupted"

    def with_points(self, points: tuple[Point, ...]) -> "Result":
        """Return the result with more points."""
        return replace(self, points=self.points + points)

    def complete(self) -> "Result":
        """Return the result of a run that came to its end."""
        return replace(self, status="complete")

    @property
    def wrong(self) -> tuple[Point, ...]:
        """The points whose check failed."""
        return tuple(point for point in self.points if point.check_ok is False)

    def to_json(self) -> str:
        """Return the JSON document, which holds no NaN or Infinity."""
        document = {
            "schema": SCHEMA,
            "status": self.status,
            "environment": dict(self.environment),
            "config": dict(self.config),
            "points": [point.document() for point in self.points],
        }
        return json.dumps(document, indent=1, allow_nan=False) + "\n"
