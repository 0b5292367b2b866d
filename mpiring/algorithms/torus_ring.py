"""Torus ring: rings along the rows and the columns of a grid of X x Y ranks, both at a time.

One half of the buffer is reduced along the rows, then, each rank its share, along the columns, and
gathered along the rows: the hierarchical ring with rows for nodes. The other half begins with the
columns, so that no dimension of the torus is idle.

Rounds: 2(X-1) + 2(Y-1), which is 4(sqrt(N) - 1) for a square. Bytes sent per rank: 2(N-1)/N n, the
lower bound. Cost: (2(X-1) + 2(Y-1)) alpha + 2(N-1)/N n beta + (N-1)/N n gamma.
Source: Mikami et al., Massively Distributed SGD: ImageNet/ResNet-50 Training in a Flash (2018); the
two halves as in Ying et al., Image Classification at Supercomputer Scale (2018).

Rank r is in row r // Y. A grid of a single row or column is the plain ring.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import isqrt

from mpiring.algorithms.hierarchical_ring import hierarchical_ring
from mpiring.algorithms.phases import ALLREDUCES
from mpiring.errors import UsageError
from mpiring.schedule import Round, Schedule, relabel, side_by_side
from mpiring.topology import Groups, Level, Topology


def torus_ring(size: int, torus: tuple[int, int] | None) -> Schedule:
    """Return the schedule of `size` ranks on a grid, by default the one nearest to a square.

    Raises UsageError where the grid has another number of ranks.
    """
    x, y = torus or nearest_factors(size)
    if x * y != size:
        raise UsageError(f"a torus of {x} x {y} has {x * y} ranks, the job has {size}")
    if 1 in (x, y):
        return ALLREDUCES["ring"](size)
    rows = tuple(tuple(range(first, first + y)) for first in range(0, size, y))
    columns = tuple(tuple(range(first, size, y)) for first in range(y))
    one, other = _along(rows), _along(columns)

    def rounds(rank: int) -> Iterator[Round]:
        shifted = relabel(other.rounds(rank), range(size), first=one.chunks)
        return side_by_side(one.rounds(rank), shifted)

    return replace(one, chunks=one.chunks + other.chunks, rounds=rounds)


def nearest_factors(size: int) -> tuple[int, int]:
    """Return the two factors of `size` that are nearest to each other, the smaller one first."""
    x = next(x for x in range(isqrt(size), 0, -1) if size % x == 0)
    return x, size // x


def _along(groups: Groups) -> Schedule:
    return hierarchical_ring(Topology(sum(map(len, groups)), (Level("ring", groups),)))
