"""Which sizes to measure in the time there is: how many fit, and the most informative first.

What a size will take is guessed from those measured so far, and guessed anew before each. A guess
only chooses; that the time is not exceeded is up to the deadline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log2

from mpiring.results import Point

RESERVE_S = 15
"""Of a batch job's time, what is kept to save, to be queued again, and to leave MPI."""
CALL_S, BYTES_PER_S = 1e-4, 1e8
"""A slow machine: of which nothing is measured, or only what takes no time for its bytes."""
FOR_ITS_BYTES = 64 << 10
"""From this size on, a call takes so much longer as it has more bytes, at most."""
APART_RUNS = 5
"""Of each algorithm at each size, beside its samples: to verify and to warm up."""
SLACK = 2
CROSSING = 4
"""How many times as wide a gap between sizes counts, if the fastest algorithm changes in it."""


@dataclass(frozen=True)
class Budget:
    """What is done at each size: so many algorithms, each run so many times or for so long."""

    algorithms: int
    fewest: int
    time_limit_s: float

    def order(self, sizes: Sequence[int], points: Sequence[Point], left_s: float) -> list[int]:
        """Return those of `sizes` that fit into `left_s` seconds, in the order to measure them.

        They stay in their order if all fit. Otherwise each is the one that lies furthest from those
        before it and from the sizes of `points`, on a logarithmic axis; the smallest is first.
        Where none fits, and there is time, it is the one that takes least: it may have been
        misjudged, and the time would be lost otherwise.
        """
        times = _calls_s(points)
        costs = {nbytes: self.cost_s(nbytes, times) for nbytes in sizes}
        if sum(costs.values()) <= left_s:
            return list(sizes)
        crossings = _crossings(points)
        known, chosen = {point.nbytes for point in points}, list[int]()
        while fitting := [n for n in sizes if n not in chosen and costs[n] <= left_s]:
            best = max(fitting, key=lambda n: (_distance(n, known, crossings), -n))
            chosen.append(best)
            known.add(best)
            left_s -= costs[best]
        return chosen or ([min(sizes, key=costs.__getitem__)] if left_s > 0 and sizes else [])

    def cost_s(self, nbytes: int, times: Mapping[int, float]) -> float:
        """Return the seconds that this size may take, with calls of all that took `times`."""
        smaller = max((n for n in times if n <= nbytes), default=None)
        if smaller is not None:
            each_byte_s = times[smaller] / max(smaller, 1)
            if smaller < FOR_ITS_BYTES:
                each_byte_s = min(each_byte_s, self.algorithms / BYTES_PER_S)
            calls_s = times[smaller] + (nbytes - smaller) * each_byte_s
        elif times:
            calls_s = times[min(times)]
        else:
            calls_s = self.algorithms * (CALL_S + nbytes / BYTES_PER_S)
        return SLACK * max(self.time_limit_s, (self.fewest + APART_RUNS) * calls_s)


def _calls_s(points: Sequence[Point]) -> dict[int, float]:
    """Return the seconds of one call of each algorithm, together, for each size."""
    times: dict[int, float] = {}
    for point in points:
        times[point.nbytes] = times.get(point.nbytes, 0.0) + (point.median_s or 0.0)
    return times


def _crossings(points: Sequence[Point]) -> list[tuple[int, int]]:
    """Return each two neighbours among the sizes that have different fastest algorithms."""
    fastest: dict[int, Point] = {}
    for point in points:
        if point.median_s and point.median_s < (_median_of(fastest.get(point.nbytes))):
            fastest[point.nbytes] = point
    return [
        (low, high)
        for low, high in pairwise(sorted(fastest))
        if fastest[low].algorithm != fastest[high].algorithm
    ]


def _median_of(point: Point | None) -> float:
    return (point and point.median_s) or inf


def _distance(nbytes: int, known: set[int], crossings: Sequence[tuple[int, int]]) -> float:
    """Return how far a size lies from those known, in powers of two."""
    apart = min((abs(log2(nbytes or 0.5) - log2(n or 0.5)) for n in known), default=inf)
    return apart * (CROSSING if any(low < nbytes < high for low, high in crossings) else 1)
