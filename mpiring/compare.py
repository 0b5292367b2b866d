"""Two results side by side: what differs in their circumstances, and each point in its time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeGuard

from mpiring.errors import UsageError
from mpiring.results import Point, Result
from mpiring.stats import Ratio, bootstrap_speedup

Key: TypeAlias = tuple[str, int]
Side: TypeAlias = Literal["old", "new"]

# What points have to share to mean the same: a comparison of others says nothing of the machine.
SAME_POINT = ("ranks", "dtype", "op", "in_place")
NOT_TELLING = ("started", "command", "resumed", "noise", "algorithms", "sizes")


@dataclass(frozen=True)
class Compared:
    """One algorithm at one size, in both results; `speedup` is of the new over the old."""

    old: Point
    new: Point
    speedup: Ratio


@dataclass(frozen=True)
class Missing:
    """One algorithm at one size that has no time on this side, and why."""

    algorithm: str
    nbytes: int
    side: Side
    reason: str


@dataclass(frozen=True)
class Comparison:
    """What two results say of each other."""

    points: tuple[Compared, ...]
    missing: tuple[Missing, ...]
    """What one of the two has a time for, and what is wrong in the new one."""

    def below(self, factor: float) -> list[Compared]:
        """Return the points whose speed-up has its whole interval below `factor`.

        A new time below its noise floor is as good as none.
        """
        return [
            c
            for c in self.points
            if c.speedup.interval and c.speedup.interval[1] < factor and not c.new.below_noise_floor
        ]

    @property
    def lost(self) -> list[Missing]:
        """What the new result has no time for: missing, impossible or wrong."""
        return [missing for missing in self.missing if missing.side == "new"]


def compare(old: Result, new: Result, band: float, force: bool = False) -> Comparison:
    """Compare the points of two results one by one, never on an average of sizes.

    Everything within `band` of 1 is a tie. Raises UsageError where the two have no algorithm at the
    same size, where a sample is 0, or, without `force`, where ranks, dtype, operation or place
    differ.
    """
    before, after = _by_key(old), _by_key(new)
    points: list[Compared] = []
    missing: list[Missing] = []
    for key in {**before, **after}:
        a, b = before.get(key), after.get(key)
        if _timed(a) and _timed(b):
            points.append(_compared(a, b, band, force))
        elif _timed(b):
            missing.append(Missing(*key, "old", _reason(a)))
        elif _timed(a) or _wrong(b):
            missing.append(Missing(*key, "new", _reason(b)))
    if not before.keys() & after.keys() or not (points or missing):
        raise UsageError("the two results share no measured point: no algorithm at the same size")
    return Comparison(tuple(points), tuple(missing))


def differences(old: Result, new: Result) -> Iterator[tuple[str, Any, Any]]:
    """Yield what differs in how and on what two results were measured: name, old and new value."""
    was, is_now = old.circumstances, new.circumstances
    for name in sorted({*was, *is_now} - set(NOT_TELLING)):
        if was.get(name) != is_now.get(name):
            yield name, was.get(name), is_now.get(name)


def _by_key(result: Result) -> dict[Key, Point]:
    return {(p.algorithm, p.nbytes): p for p in result.points}


def _wrong(point: Point | None) -> bool:
    return point is not None and point.check_ok is False


def _timed(point: Point | None) -> TypeGuard[Point]:
    """Whether there is a point with a time; that of a wrong result tells nothing."""
    return point is not None and bool(point.samples_s) and not _wrong(point)


def _reason(point: Point | None) -> str:
    """Return why a point has no time."""
    return (point and point.note) or ("WRONG" if _wrong(point) else "not measured")


def _compared(old: Point, new: Point, band: float, force: bool) -> Compared:
    for name in SAME_POINT:
        was, is_now = getattr(old, name), getattr(new, name)
        if was != is_now and not force:
            raise UsageError(
                f"the results differ in {name}: {was} and {is_now}"
                " (--force compares them all the same)"
            )
    for point in (old, new):
        if not all(point.samples_s):
            raise UsageError(f"{point.algorithm} at {point.nbytes} bytes has a sample of 0 s")
    speedup = bootstrap_speedup(old.samples_s, new.samples_s, band)
    # A time below the noise floor is mostly the harness's own. It still says how long a call takes
    # at most: what was below it and takes longer now has become slower. Nothing else can be told.
    slower = speedup.verdict == "slower"
    if new.below_noise_floor or (old.below_noise_floor and not slower):
        speedup = replace(speedup, verdict="unknown")
    return Compared(old, new, speedup)
