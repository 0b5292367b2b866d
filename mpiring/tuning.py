"""From measured points to rules: few, and each one earned.

A change has to be worth a rule. Sizes are looked at from the smallest on; what was picked at one
stays the pick at the next, unless another one is faster there by more than chance and the neutral
band. And whatever is not the library's own call has to be faster than that by more than chance at
each size, or it loses its place to it.
"""

from collections.abc import Mapping, Sequence

from mpiring.algorithms.algorithm import NATIVE
from mpiring.results import Point
from mpiring.stats import NEUTRAL_BAND, paired_speedup

Points = Mapping[str, Point]
"""The points of one size, by the names of what was measured."""


def fastest(points: Points, number: int) -> list[str]:
    """Return the names of the points with the smallest medians."""
    timed = {name: point.median_s for name, point in points.items() if point.median_s is not None}
    return sorted(timed, key=timed.__getitem__)[:number]


def winner(points: Points, incumbent: str) -> str:
    """Return what should run at this size, where `incumbent` does at the one before.

    Of what is faster than the incumbent the fastest: samples of equal index are of the same
    repetition.
    """
    holder = incumbent
    if not _timed(points, holder) or not _earned(points, holder):
        # Where not even the library can, whatever is fastest does.
        holder = NATIVE if _timed(points, NATIVE) else fastest(points, 1)[0]
    faster = [
        name
        for name in points
        if _earned(points, name) and _is_faster(points, name, holder, NEUTRAL_BAND)
    ]
    return min(faster, key=lambda name: points[name].median_s or 0.0, default=holder)


def without_blips(picks: Sequence[str], points: Sequence[Points]) -> list[str]:
    """Return the picks of ascending sizes without those that no rule is worth.

    That is one between two of another name, which is not faster than that one by more than chance.
    """
    smooth = list(picks)
    for index in range(1, len(smooth) - 1):
        before, this, after = smooth[index - 1 : index + 2]
        at = points[index]
        able = _timed(at, before) and _earned(at, before)
        if before == after != this and able and not _is_faster(at, this, before, 0.0):
            smooth[index] = before
    return smooth


def _earned(points: Points, name: str) -> bool:
    """Whether it is the library's call, or faster than that, by more than chance."""
    return (
        name == NATIVE or not _timed(points, NATIVE) or _is_faster(points, name, NATIVE, band=0.0)
    )


def _is_faster(points: Points, name: str, than: str, band: float) -> bool:
    """Whether it is faster, by its whole interval; not where the harness makes up the times."""
    if not (_timed(points, name) and _timed(points, than)):
        return False
    new, old = points[name], points[than]
    if new.below_noise_floor or old.below_noise_floor:
        return False
    return paired_speedup(old.samples_s, new.samples_s, band).verdict == "faster"


def _timed(points: Points, name: str) -> bool:
    point = points.get(name)
    return point is not None and bool(point.samples_s) and all(point.samples_s)
