"""Results: immutable, and the versioned documents they are written as and read from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mpiring.algorithms.algorithm import NATIVE
from mpiring.documents import load
from mpiring.errors import UsageError
from mpiring.fields import FLAG, MAPPING, NUMBER, POSITIVE, SECONDS, SEQUENCE, TEXT, WHOLE, Field
from mpiring.stats import NEUTRAL_BAND, Ratio, Summary, paired_speedup, summarise
from mpiring.units import algbw, busbw, differing, shortened

SCHEMA = "mpiring.results/1"
NOISY_CV = 0.25
DIFFERENCE = 60
"""Characters in which each of two values that differ is written; some are lists of all ranks."""
INTERRUPTED, COMPLETE = "interrupted", "complete"

POINT_FIELDS: Mapping[str, Field] = {
    "algorithm": TEXT,
    "ran": TEXT.or_none(),
    "nbytes": WHOLE,
    "count": WHOLE,
    "dtype": TEXT,
    "op": TEXT,
    "in_place": FLAG,
    "ranks": POSITIVE,
    "batch": POSITIVE,
    "limit_s": SECONDS.or_none(),
    "noise_floor_s": SECONDS,
    "note": TEXT,
    "rounds": WHOLE.or_none(),
    "bytes_sent_per_rank": WHOLE.or_none(),
    "node_crossings": NUMBER.or_none(),
}
"""Fields of a point that stand in its document as they are."""

# What has to be the same for points to stand side by side, beside the variables that tune MPI.
IDENTITY = (
    *(
        "dtype",
        "op",
        "in_place",
        "buffers",
        "check",
        "options",
        "decision",
        "decision_digest",
        "sync",
        "cold",
        "batch",
    ),
    *("ranks", "nodes", "cpu_model", "mpi_library", "mpi_build", "thread_level"),
    "topology",
)

BEGUN = ("command", "started", "hosts", "slurm", "topology")
"""What an environment says of the run itself, for which a resumed run has an entry of its own."""

INNER = {
    "ranks": POSITIVE,
    "variables": MAPPING,
    "topology": MAPPING,
    "resumed": SEQUENCE,
    "nodes": SEQUENCE,
}
"""Parts of an environment that are looked into."""


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
    native_below_noise_floor: bool = False
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
    node_crossings: float | None = None
    """Messages from one node to another, of all ranks in a round, on average; None as above."""

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
        """How many times as fast as `native`, by pairs of samples.

        Without a verdict where either time is mostly the harness's own.
        """
        pairs = len(self.samples_s) == len(self.native_samples_s) > 0
        if not pairs or not all(self.samples_s):
            return None
        speedup = paired_speedup(self.native_samples_s, self.samples_s, NEUTRAL_BAND)
        telling = not (self.below_noise_floor or self.native_below_noise_floor)
        return speedup if telling else replace(speedup, verdict="unknown")

    @property
    def telling_limit_s(self) -> float | None:
        """`limit_s`, unless nothing was moved or it is below the noise floor: then it is a call."""
        known = self.nbytes and self.limit_s and self.limit_s >= self.noise_floor_s
        return self.limit_s if known else None

    @property
    def percent_of_limit(self) -> float | None:
        """How close the median is to the machine's limit: 100 at best."""
        limit_s = self.telling_limit_s
        return 100 * limit_s / self.median_s if limit_s and self.median_s else None

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
            **{name: getattr(self, name) for name in POINT_FIELDS},
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
            "algbw_GBps": self.algbw,
            "busbw_GBps": self.busbw,
            "speedup_vs_native": speedup and speedup.ratio,
            "speedup_interval95": speedup and speedup.interval and list(speedup.interval),
            "verdict": speedup.verdict if speedup else "unknown",
            "percent_of_limit": self.percent_of_limit,
            "below_noise_floor": self.below_noise_floor,
            "noisy": self.noisy,
            "check": {"ok": self.check_ok},
            "exactness": {"max_ulp": self.max_ulp, "ranks_equal": self.ranks_equal},
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Point":
        """Read what `document()` wrote; what is known of `native` is put in by `parse`.

        Raises ValueError, which says what is wrong, for anything else.
        """
        by_rank, check, exactness = (
            MAPPING.read(document, name) for name in ("rank_mean_s", "check", "exactness")
        )
        means = [SECONDS.or_none().read(by_rank, name) for name in ("mean", "fastest", "slowest")]
        return cls(
            **{name: field.read(document, name) for name, field in POINT_FIELDS.items()},
            samples_s=tuple(
                SECONDS.check(sample, "a sample") for sample in SEQUENCE.read(document, "samples_s")
            ),
            rank_means_s=None if None in means else (means[0], means[1], means[2]),
            slowest_rank=WHOLE.or_none().read(by_rank, "slowest_rank"),
            check_ok=FLAG.or_none().read(check, "ok"),
            max_ulp=NUMBER.or_none().read(exactness, "max_ulp"),
            ranks_equal=FLAG.or_none().read(exactness, "ranks_equal"),
        )


def with_native(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return the points of one size, each with what is known of `native` beside its own."""
    native = next((point for point in points if point.algorithm == NATIVE), None)
    if native is None:
        return points
    return tuple(
        replace(
            point,
            native_samples_s=native.samples_s,
            native_below_noise_floor=native.below_noise_floor,
        )
        for point in points
    )


@dataclass(frozen=True)
class Result:
    """A run: what it ran on, what was asked, and the points so far.

    `status` is "interrupted" until the last point is there, so that a run which was killed needs no
    last word.
    """

    environment: Mapping[str, Any]
    config: Mapping[str, Any]
    points: tuple[Point, ...] = ()
    status: str = INTERRUPTED

    def with_points(self, points: tuple[Point, ...]) -> "Result":
        """Return the result with more points."""
        return replace(self, points=self.points + points)

    def complete(self) -> "Result":
        """Return the result of a run that came to its end."""
        return replace(self, status=COMPLETE)

    @property
    def is_complete(self) -> bool:
        """Whether the run came to its end."""
        return self.status == COMPLETE

    def has(self, nbytes: int, algorithms: Sequence[str]) -> bool:
        """Whether all of `algorithms` have a point at this size."""
        measured = {point.algorithm for point in self.points if point.nbytes == nbytes}
        return measured >= set(algorithms)

    def resume(
        self, earlier: "Result", source: str, sizes: Sequence[int], algorithms: Sequence[str]
    ) -> "Result":
        """Return this result, which is about to be measured, with the points of an earlier run.

        It keeps that run's command and time, and has its own beside them. Of `sizes`, those that
        lack one of `algorithms` are left out, to be measured as a whole. Raises UsageError where
        the two cannot stand in one file; `source` names the earlier one.
        """
        here, there = _identity(self), _identity(earlier)
        for name in {**here, **there}:
            was, is_now = there.get(name), here.get(name)
            if was != is_now:
                its, ours = differing(was, is_now, DIFFERENCE)
                raise UsageError(f"{source}: its {name} is {its}, that of this run is {ours}")
        anew = {nbytes for nbytes in sizes if not earlier.has(nbytes, algorithms)}
        return replace(
            self,
            environment={**self.environment, **_begun(self.environment, earlier.environment)},
            points=tuple(p for p in earlier.points if p.nbytes not in anew),
        )

    def with_rest_of(self, earlier: "Result") -> "Result":
        """Return the result with an earlier run's points at sizes that have none here yet."""
        here = {point.nbytes for point in self.points}
        return self.with_points(tuple(p for p in earlier.points if p.nbytes not in here))

    @property
    def circumstances(self) -> dict[str, Any]:
        """What it ran on and what was asked, each by its name, sampling and variables as well."""
        known = {**self.environment, **self.config}
        inner = known.pop("variables", {}), known.pop("sampling", {})
        return {**known, **inner[0], **inner[1]}

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


def _begun(here: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first command and its time, and those of every run that resumed it."""
    first, this = ({n: at[n] for n in BEGUN if n in at} for at in (there, here))
    return {**first, "resumed": [*there.get("resumed", []), this]}


def _identity(result: Result) -> dict[str, Any]:
    """Return what has to be the same for points to stand in one file."""
    names = (*IDENTITY, *result.environment.get("variables", {}))
    circumstances = result.circumstances
    known = {name: circumstances.get(name) for name in names}
    known["topology"] = _chosen(known["topology"])
    identity: dict[str, Any] = json.loads(json.dumps(known))  # as it comes back from a file
    return identity


def _chosen(topology: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a topology without what depends on the hosts that a batch system happened to give.

    That is how switches group the nodes that MPI found, and what was left out of it.
    """
    if topology is None:
        return None
    levels = topology.get("levels", [])
    nodes = [
        index
        for index, level in enumerate(levels)
        if (level.get("name"), level.get("source")) == ("node", "MPI")
    ]
    return {"source": topology.get("source"), "levels": levels[: nodes[0] + 1] if nodes else levels}


def parse(text: str, source: str) -> Result:
    """Return the result that a JSON document holds. `source` names it in errors.

    Raises UsageError for what is not JSON, not ours, of a newer schema, or damaged.
    """
    document = load(text, source, SCHEMA, "a result of mpiring bench")
    try:
        environment = MAPPING.read(document, "environment")
        config = MAPPING.read(document, "config")
        for name, field in INNER.items():
            if name in environment:
                field.check(environment[name], name)
        levels = SEQUENCE.check(environment.get("topology", {}).get("levels", []), "levels")
        for index, level in enumerate(levels):
            MAPPING.check(level, f"levels[{index}]")
        MAPPING.check(config.get("sampling", {}), "sampling")
        status = TEXT.read(document, "status")
        if status not in (INTERRUPTED, COMPLETE):
            raise ValueError(f"status is {shortened(repr(status), 40)}")
        points = _points(SEQUENCE.read(document, "points"))
        for point in points:
            if point.ranks != environment.get("ranks", point.ranks):
                said = f"the environment {environment['ranks']}"
                raise ValueError(f"{point.algorithm} has {point.ranks} ranks, {said}")
        return Result(environment, config, points, status)
    except ValueError as error:
        raise UsageError(f"{source}: damaged: {error}") from None


def _points(entries: Sequence[Any]) -> tuple[Point, ...]:
    by_size: dict[int, dict[str, Point]] = {}
    for index, entry in enumerate(entries):
        place = f"points[{index}]"
        document = MAPPING.check(entry, place)
        try:
            point = Point.from_document(document)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        same_size = by_size.setdefault(point.nbytes, {})
        if point.algorithm in same_size:
            raise ValueError(f"{place}: {point.algorithm} at {point.nbytes} bytes is there twice")
        same_size[point.algorithm] = point
    return tuple(p for points in by_size.values() for p in with_native(tuple(points.values())))
