"""Results: immutable, and the versioned documents they are written as and read from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mpiring.errors import UsageError
from mpiring.stats import NEUTRAL_BAND, Ratio, Summary, paired_speedup, summarise
from mpiring.units import algbw, busbw

SCHEMA = "mpiring.results/1"
NOISY_CV = 0.25


@dataclass(frozen=True)
class Point:
    """One algorithm at one size.

    `samples_s` are seconds, each of the slowest rank; there are none where the check failed or the
    algorithm could not run, and `note` says why.
    """

    algorithm: str
    nbytes: int
    count: int
    dtype: str
    op: str
    in_place: bool
    ranks: int
    samples_s: tuple[float, ...] = ()
    batch: int = 1
    """Calls in a row that each sample is the mean of."""
    rank_means_s: tuple[float, float, float] | None = None
    """Mean time of a call: the mean over ranks, of the fastest rank, of the slowest rank."""
    slowest_rank: int | None = None
    native_samples_s: tuple[float, ...] = ()
    """Of `native` in the same repetitions."""
    check_ok: bool | None = None
    """None where nothing was checked."""
    max_ulp: float | None = None
    """Largest error against a reference of higher precision, in units of the last place."""
    ranks_equal: bool | None = None
    """Whether the result had the same bits on all ranks."""
    limit_s: float | None = None
    """What the machine takes, measured in the same repetitions, to move as many bytes at best."""
    noise_floor_s: float = 0.0
    note: str = ""
    ran: str | None = None
    """The algorithm that really ran."""
    rounds: int | None = None
    bytes_sent_per_rank: int | None = None
    """By the rank that sends most; None where the MPI library alone knows, as for `rounds`."""

    @cached_property
    def summary(self) -> Summary | None:
        """What there is to say about the samples."""
        return summarise(self.samples_s) if self.samples_s else None

    @property
    def median_s(self) -> float | None:
        """Median of the samples."""
        return self.summary.median if self.summary else None

    @property
    def algbw(self) -> float | None:
        """In GB/s."""
        return algbw(self.nbytes, self.median_s) if self.median_s else None

    @property
    def busbw(self) -> float | None:
        """In GB/s."""
        return busbw(self.nbytes, self.median_s, self.ranks) if self.median_s else None

    @cached_property
    def speedup(self) -> Ratio | None:
        """How many times as fast as `native`, by pairs of samples."""
        pairs = len(self.samples_s) == len(self.native_samples_s) > 0
        if not pairs or not all(self.samples_s):
            return None
        return paired_speedup(self.native_samples_s, self.samples_s, NEUTRAL_BAND)

    @property
    def percent_of_limit(self) -> float | None:
        """How close the median is to the machine's limit: 100 at best."""
        return 100 * self.limit_s / self.median_s if self.limit_s and self.median_s else None

    @property
    def below_noise_floor(self) -> bool:
        """Whether the median is shorter than what the harness cannot tell from nothing."""
        return self.median_s is not None and self.median_s < self.noise_floor_s

    @property
    def noisy(self) -> bool:
        """Whether the samples spread widely."""
        return bool(self.summary and self.summary.cv and self.summary.cv > NOISY_CV)

    def document(self) -> dict[str, Any]:
        """Return the point as it stands in a JSON file."""
        summary, speedup = self.summary, self.speedup
        mean, fastest, slowest = self.rank_means_s or (None, None, None)
        return {
            "algorithm": self.algorithm,
            "ran": self.ran,
            "nbytes": self.nbytes,
            "count": self.count,
            "dtype": self.dtype,
            "op": self.op,
            "in_place": self.in_place,
            "ranks": self.ranks,
            "time_s": {
                "median": summary and summary.median,
                "interval95": summary and summary.interval and list(summary.interval),
                "mean": summary and summary.mean,
                "min": summary and summary.minimum,
                "max": summary and summary.maximum,
                "p50": summary and summary.median,
                "p90": summary and summary.p90,
                "p99": summary and summary.p99,
                "cv": summary and summary.cv,
            },
            "rank_mean_s": {
                "mean": mean,
                "fastest": fastest,
                "slowest": slowest,
                "slowest_rank": self.slowest_rank,
            },
            "samples_s": list(self.samples_s),
            "batch": self.batch,
            "algbw_GBps": self.algbw,
            "busbw_GBps": self.busbw,
            "speedup_vs_native": speedup and speedup.ratio,
            "speedup_interval95": speedup and speedup.interval and list(speedup.interval),
            "verdict": speedup.verdict if speedup else "unknown",
            "limit_s": self.limit_s,
            "percent_of_limit": self.percent_of_limit,
            "noise_floor_s": self.noise_floor_s,
            "below_noise_floor": self.below_noise_floor,
            "noisy": self.noisy,
            "check": {"ok": self.check_ok},
            "exactness": {"max_ulp": self.max_ulp, "ranks_equal": self.ranks_equal},
            "note": self.note,
            "rounds": self.rounds,
            "bytes_sent_per_rank": self.bytes_sent_per_rank,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Point":
        """Read what `document()` wrote; `native_samples_s` are put in by `Result`.

        Raises KeyError, TypeError or ValueError for anything else.
        """
        means = document["rank_mean_s"]
        have_means = means["mean"] is not None
        same = (
            *("algorithm", "ran", "nbytes", "count", "dtype", "op", "in_place", "ranks", "batch"),
            *("limit_s", "noise_floor_s", "note", "rounds", "bytes_sent_per_rank"),
        )
        point = cls(
            **{name: document[name] for name in same},
            samples_s=tuple(float(sample) for sample in document["samples_s"]),
            rank_means_s=(means["mean"], means["fastest"], means["slowest"])
            if have_means
            else None,
            slowest_rank=means["slowest_rank"],
            check_ok=document["check"]["ok"],
            max_ulp=document["exactness"]["max_ulp"],
            ranks_equal=document["exactness"]["ranks_equal"],
        )
        if not isinstance(point.algorithm, str) or not isinstance(point.nbytes, int):
            raise TypeError("algorithm or nbytes")
        if any(not 0 <= sample < float("inf") for sample in point.samples_s):
            raise ValueError("a sample is no time")
        return point


def with_native(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return the points of one size, each with the samples of `native` beside its own."""
    native = next((p.samples_s for p in points if p.algorithm == "native"), ())
    return tuple(replace(point, native_samples_s=native) for point in points)


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

    def has(self, nbytes: int, algorithms: Sequence[str]) -> bool:
        """Whether all of `algorithms` have a point at this size."""
        measured = {point.algorithm for point in self.points if point.nbytes == nbytes}
        return measured >= set(algorithms)

    def resume(
        self, earlier: "Result", source: str, sizes: Sequence[int], algorithms: Sequence[str]
    ) -> "Result":
        """Return this result, which is about to be measured, with the points of an earlier run.

        Of `sizes`, those that lack one of `algorithms` are left out, to be measured as a whole.
        Raises UsageError where the two cannot stand in one file; `source` names the earlier one.
        """
        here, there = _identity(self), _identity(earlier)
        for name in here:
            if here[name] != there[name]:
                raise UsageError(
                    f"{source}: its {name} is {there[name]}, that of this run is {here[name]}"
                )
        anew = {nbytes for nbytes in sizes if not earlier.has(nbytes, algorithms)}
        return replace(self, points=tuple(p for p in earlier.points if p.nbytes not in anew))

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


def _identity(result: Result) -> dict[str, Any]:
    """Return what has to be the same for points to stand side by side."""
    asked = {name: result.config.get(name) for name in ("dtype", "op", "in_place")}
    kept = ("ranks", "nodes", "mpi_library", "thread_level", "topology")
    on = {name: result.environment.get(name) for name in kept}
    identity: dict[str, Any] = json.loads(json.dumps(asked | on))  # as it comes back from a file
    return identity


def parse(text: str, source: str) -> Result:
    """Return the result that a JSON document holds. `source` names it in errors.

    Raises UsageError for what is not JSON, not ours, of a newer schema, or damaged.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source}: not JSON, or cut off: {error}") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith("mpiring.results/"):
        raise UsageError(f"{source}: not a result of mpiring bench")
    if schema != SCHEMA:
        raise UsageError(f"{source}: its schema is {schema}, this program reads {SCHEMA}")
    try:
        by_size: dict[int, list[Point]] = {}
        for entry in document["points"]:
            point = Point.from_document(entry)
            by_size.setdefault(point.nbytes, []).append(point)
        return Result(
            environment=dict(document["environment"]),
            config=dict(document["config"]),
            points=tuple(p for points in by_size.values() for p in with_native(tuple(points))),
            status=str(document["status"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{source}: damaged: {type(error).__name__}: {error}") from None


def _refuse_constant(token: str) -> float:
    raise ValueError(f"{token} is no JSON")
