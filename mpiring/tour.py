"""A ring over the best links: a tour of all ranks whose worst link is as good as can be found.

A ring is as fast as its worst link, so that counts first, and the sum of all links second. To find
the best tour is NP-hard; this takes each time the nearest rank that is left, and then turns parts
of the tour round as long as that helps (2-opt, Croes, A Method for Solving Traveling-Salesman
Problems, 1958). Of 4 to 8 ranks with random costs, nine of ten such tours are the best that there
are. The work is bounded by the number of links that are weighed, and not by a clock, so that the
same costs give the same tour everywhere.
"""

from math import fsum
from typing import NamedTuple

import numpy as np

from mpiring.arrays import Array

STARTS = 8
"""Ranks that a tour is begun with, at most; the best tour is returned."""
MOST_WEIGHED = 40_000_000
"""Pairs of links that are weighed for all starts together, at most: some seconds."""


class Length(NamedTuple):
    """How long a tour is: the shorter one is the lower one."""

    worst: float
    total: float


def length(costs: Array, tour: list[int]) -> Length:
    """Return the worst link of a ring in this order, and the sum of its links."""
    links = costs[tour, tour[1:] + tour[:1]]
    return Length(float(links.max()), fsum(links))


def nearest_neighbour(costs: Array, start: int = 0) -> list[int]:
    """Return the tour that goes on to the cheapest rank that is left, of equal ones the lowest."""
    left = np.ones(len(costs), bool)
    tour = [start]
    left[start] = False
    while left.any():
        tour.append(int(np.argmin(np.where(left, costs[tour[-1]], np.inf))))
        left[tour[-1]] = False
    return tour


def find_tour(costs: Array) -> tuple[int, ...]:
    """Return the ranks in the order of a short tour, from rank 0 on.

    `costs` are those of each pair, symmetric and at least 0. The tour is no longer than that of
    the nearest neighbour from rank 0. Of the two directions the one with the lower rank comes
    first.
    """
    size = len(costs)
    starts = range(0, size, -(-size // STARTS))
    steps = MOST_WEIGHED // (len(starts) * size)
    tours = [two_opt(costs, nearest_neighbour(costs, start), steps) for start in starts]
    tour = min(tours, key=lambda tour: length(costs, tour))
    first = tour.index(0)
    tour = tour[first:] + tour[:first]
    back = tour[:1] + tour[:0:-1]
    return tuple(min(tour, back))


def two_opt(costs: Array, tour: list[int], steps: int) -> list[int]:
    """Turn parts of the tour round while that helps: for each link in turn the part behind it.

    At most `steps` times one link is weighed against all others.
    """
    size, idle = len(tour), 0
    order = np.array(tour)
    links = costs[order, np.roll(order, -1)]
    for step in range(steps if size > 3 else 0):
        if idle == size:  # no link is left to gain by
            break
        # Turning what lies behind place i, up to place j, replaces the links that begin at i and j.
        i, j = step % size, (step + np.arange(2, size - 1)) % size
        following = order[(i + 1) % size], order[(j + 1) % size]
        added = costs[order[i], order[j]], costs[following]
        gains = links[i] + links[j] - added[0] - added[1]
        worsts = np.maximum(_worst_without(links, i, j), np.maximum(*added))
        best = int(np.lexsort((-gains, worsts))[0])
        now = links.max()
        # What rounding makes of a sum is no gain, and could go on for ever.
        helps = gains[best] > 1e-9 * now
        idle += 1
        if worsts[best] < now or (worsts[best] == now and helps):
            first = (i + 1) % size
            part = (first + np.arange((int(j[best]) - i) % size)) % size
            order[part] = order[part[::-1]]
            links = costs[order, np.roll(order, -1)]
            idle = 0
    return [int(rank) for rank in order]


def _worst_without(links: Array, i: int, j: Array) -> Array:
    """Return the largest link other than those at i and at each place of `j`."""
    others = np.delete(links, i)
    first = int(np.argmax(others))
    second = float(np.delete(others, first).max())
    place = first + (first >= i)
    return np.where(j == place, second, others[first])
