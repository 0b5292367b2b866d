"""Two results side by side: what differs in their circumstances, and each point in its time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mpiring.errors import UsageError
from mpiring.results import Point, Result
from mpiring.stats import Ratio, bootstrap_speedup

Key: TypeAlias = tuple[str, int]

# What points have to share to mean the same: a comparison of others says nothing of the machine.
SAME_POINT = ("ranks", "dtype", "op", "in_place")
NOT_TELLING = ("started", "command", "noise")


@dataclass(frozen=True)
class Compared:
    """One algorithm at one size, in both results; `speedup` is of the new over the old."""

    old: Point
    new: Point
    speedup: Ratio


def compare(old: Result, new: Result, band: float, force: bool = False) -> list[Compared]:
    """Return the points that both results hold, compared one by one, never on an average of sizes.

    Everything within `band` of 1 is a tie. Raises UsageError where no point is in both, where one
    has too few samples, or, without `force`, where ranks, dtype, operation or place differ.
    """
    before, after = _by_key(old), _by_key(new)
    shared = [key for key in before if key in after]
    if not shared:
        raise UsageError("the two results share no measured point: no algorithm at the same size")
    compared = []
    for key in shared:
        a, b = before[key], after[key]
        differing = [name for name in SAME_POINT if getattr(a, name) != getattr(b, name)]
        if differing and not force:
            name = differing[0]
            raise UsageError(
                f"the results differ in {name}: {getattr(a, name)} and {getattr(b, name)}"
                " (--force compares them all the same)"
            )
        for point in (a, b):
            if len(point.samples_s) < 2:
                raise UsageError(
                    f"{point.algorithm} at {point.nbytes} bytes has one sample, and one tells"
                    " nothing of chance: measure with more --repetitions"
                )
            if not all(point.samples_s):
                raise UsageError(f"{point.algorithm} at {point.nbytes} bytes has a sample of 0 s")
        compared.append(Compared(a, b, bootstrap_speedup(a.samples_s, b.samples_s, band)))
    return compared


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what two environments differ in: its name, the old and the new value."""
    for name in sorted({*old, *new} - set(NOT_TELLING)):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def below(compared: Sequence[Compared], factor: float) -> list[Compared]:
    """Return the points whose speed-up is below `factor` for certain: its whole interval is."""
    return [c for c in compared if c.speedup.interval and c.speedup.interval[1] < factor]


def _by_key(result: Result) -> dict[Key, Point]:
    return {(p.algorithm, p.nbytes): p for p in result.points if p.samples_s}
