"""Several results of growing numbers of ranks: how well each algorithm keeps its bus bandwidth.

The bus bandwidth of an allreduce that is limited by its links stays the same on any number of
ranks. So efficiency is busbw over that of the smallest run, of those with more than one rank: the
same run for all curves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mpiring.compare import SAME_POINT
from mpiring.errors import UsageError
from mpiring.results import Point, Result
from mpiring.stats import NEUTRAL_BAND, Interval, bootstrap_speedup
from mpiring.units import counted

EXPECTED = (
    *(
        "ranks",
        "nodes",
        "hosts",
        "cores_per_node",
        "affinity",
        "oversubscribed",
        "topology",
        "slurm",
    ),
    *("seed", "memory_bytes"),
)
"""What differs between the results of a scaling study, and needs no word."""

Extent: TypeAlias = tuple[int, int]
"""Ranks and nodes."""


@dataclass(frozen=True)
class Scaled:
    """One algorithm at one size, on some ranks and nodes."""

    point: Point
    nodes: int
    efficiency: float | None = None
    """1 on the smallest run; None for one rank, where that run has no time for it, and where a time
    is below its noise floor."""
    interval: Interval | None = None
    """Of the efficiency, with 95 % confidence; None with fewer than 6 samples."""

    @property
    def place(self) -> str:
        """Ranks and nodes, in words."""
        return f"{counted(self.point.ranks, 'rank')} on {counted(self.nodes, 'node')}"


@dataclass(frozen=True)
class Curve:
    """One algorithm at one size; its steps go from the fewest ranks to the most."""

    algorithm: str
    nbytes: int
    steps: tuple[Scaled, ...]

    def stop(self, least: float) -> Scaled | None:
        """Return the step from which on efficiency is surely below `least`, or None.

        Surely: with its whole interval, at this step and at all after it.
        """
        stop = None
        for step in reversed(self.steps):
            if not (step.interval and step.interval[1] < least):
                break
            stop = step
        return stop


def smallest(results: Sequence[tuple[str, Result]]) -> tuple[str, Extent] | None:
    """Return the name and the place of the smallest result with several ranks, if there is one."""
    places = [
        ((point.ranks, _nodes(result)), name)
        for name, result in results
        for point in result.points[:1]
        if point.ranks > 1
    ]
    place, name = min(places, default=(None, ""))
    return (name, place) if place else None


def curves(results: Sequence[tuple[str, Result]]) -> list[Curve]:
    """Return a curve for each size and algorithm with a time, in ascending order of sizes.

    A point that is wrong has none. Each result comes with its name, for errors: UsageError where
    two are of as many ranks on as many nodes, or where dtype, operation or place differ.
    """
    taken: dict[Extent, str] = {}
    steps: dict[tuple[int, str], list[Scaled]] = {}
    first: Point | None = None
    for name, result in results:
        points = [
            point for point in result.points if point.median_s and point.check_ok is not False
        ]
        nodes = _nodes(result)
        for point in points:
            first = first or point
            _check_same(name, first, point)
            holder = taken.setdefault((point.ranks, nodes), name)
            if holder != name:
                raise UsageError(f"{holder} and {name} are both of {Scaled(point, nodes).place}")
            steps.setdefault((point.nbytes, point.algorithm), []).append(Scaled(point, nodes))
    _, base = smallest(results) or ("", None)
    return [
        Curve(name, nbytes, _with_efficiency(steps[nbytes, name], base))
        for nbytes, name in sorted(steps, key=lambda key: key[0])
    ]


def lacking(curves: Sequence[Curve], base: Extent) -> list[Curve]:
    """Return the curves without a step at `base`, the place of the smallest result."""
    return [
        curve
        for curve in curves
        if not any((step.point.ranks, step.nodes) == base for step in curve.steps)
    ]


def _nodes(result: Result) -> int:
    return len(result.environment.get("nodes") or [[]])


def _check_same(name: str, first: Point, point: Point) -> None:
    for what in SAME_POINT:
        was, is_now = getattr(first, what), getattr(point, what)
        if what != "ranks" and was != is_now:
            raise UsageError(f"{name}: its {what} is {is_now}, that of the others {was}")


def _with_efficiency(steps: Sequence[Scaled], base: Extent | None) -> tuple[Scaled, ...]:
    by_place = {(step.point.ranks, step.nodes): step for step in steps}
    first = by_place.get(base) if base else None
    ordered = (by_place[place] for place in sorted(by_place))
    return tuple(_compared(step, first.point) if first else step for step in ordered)


def _compared(step: Scaled, base: Point) -> Scaled:
    point = step.point
    if not point.busbw or not base.busbw or point.below_noise_floor or base.below_noise_floor:
        return step
    efficiency = point.busbw / base.busbw
    if point is base:
        return Scaled(point, step.nodes, efficiency, None)
    speedup = bootstrap_speedup(base.samples_s, point.samples_s, NEUTRAL_BAND)
    carried = efficiency / speedup.ratio
    low, high = speedup.interval or (None, None)
    interval = None if low is None or high is None else (low * carried, high * carried)
    return Scaled(point, step.nodes, efficiency, interval)
