"""Levels of a machine, found from the measured links alone.

The ranks of a node have better links to each other than to any other rank, those of a switch to
each other than to ranks beyond it, and so on. So groups are found as single linkage finds them: two
ranks are in one group if a chain of links leads from one to the other, each of them as good as the
group asks for. What disturbs a measurement makes links look worse, never better. So what counts of
a pair is its best sample, and a chain of links that were not disturbed keeps a group together; one
bad cable or a slow rank does not divide it.

From a level to the next one links get worse at once, while noise makes them worse little by little:
a level ends where the next link that a chain needs is GAP times as bad as all before. Latency and
rate are looked at apart, and the levels of both are taken together. Inside a node links often have
a lower latency and no higher rate than between nodes; to a far switch it is the other way round.

Ranks, or groups of the level before, that stay alone where others have grown may be one to a node,
or have slow links (a rank in trouble, a node with a bad cable). They are a group of their own if it
is as far from them to any other as between those that have grown, by latency and by rate. If only
one has grown, that cannot tell. Then it has to be outside all other levels, and even the best link
beyond it LONE times as bad as those inside, in latency and in rate.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

import numpy as np

from mpiring.arrays import Array
from mpiring.links import Figure, Link, Links, best
from mpiring.stats import median_interval
from mpiring.topology import Groups, Level, Topology
from mpiring.tour import find_tour

GAP = 1.5
"""Links that are so many times as bad belong to another level."""
LONE = 4.0
"""One group and nothing but lone others make a level if links are so many times as bad."""
OFF = 0.2
"""A link is far off if it is by more than this share of what its level has."""
DIGITS = 4
"""Of the figures in a topology, which nobody measures more exactly than that."""


@dataclass(frozen=True)
class LinkLevel:
    """The links of one level: those between ranks of a group that no smaller group has both of."""

    groups: Groups
    links: tuple[Link, ...]

    @cached_property
    def latency_us(self) -> Figure:
        """Alpha: the median over ranks of what the median of their links is."""
        return _middle([(link.ranks, link.latency_us) for link in self.links], min)

    @cached_property
    def gbytes_per_s(self) -> Figure:
        """Beta: as for the latency, of the rates in both directions."""
        return _middle([(link.ranks, f) for link in self.links for f in link.gbytes_per_s], max)


def find_levels(links: Links) -> tuple[LinkLevel, ...]:
    """Return the levels, the best links first; the last one's group has all ranks.

    Where not all pairs were measured, ranks of a node are taken to be alike. There is no level of a
    single rank.
    """
    if links.size == 1:
        return ()
    chain = [_singles(links.size), *_partitions(links), (tuple(range(links.size)),)]
    found = []
    for inner, outer in pairwise(chain):
        within, inside = _index(outer), _index(inner)
        members = tuple(
            link
            for link in links.links
            if within[link.ranks[0]] == within[link.ranks[1]]
            and inside[link.ranks[0]] != inside[link.ranks[1]]
        )
        found.append(LinkLevel(outer, members))
    return tuple(found)


def to_topology(links: Links, found: Sequence[LinkLevel], known: Topology) -> Topology:
    """Return the levels as a topology, with the tour over the best links.

    A level of a topology tells of the links beyond its groups, so each has the groups of one
    `LinkLevel` and the figures of the next. Names are those of `known` where the groups are the
    same. What measuring cannot tell is taken from `known`: the nodes where all links are alike, and
    where each rank is a node of its own.
    """
    names = {_sorted(level.groups): level.name for level in known.levels}
    levels = [
        _level(names.get(inner.groups, f"level {number}"), inner.groups, outer)
        for number, (inner, outer) in enumerate(pairwise(found), 1)
    ]
    nodes = _sorted(known.nodes)
    if not levels or nodes == _singles(links.size):
        alike = found[0] if found and len(nodes) > 1 else None
        levels.insert(0, _level(names[nodes], nodes, alike))
    tour = find_tour(_costs(links, found)) if found else (0,)
    return Topology(links.size, tuple(levels), "measured", tour)


def _level(name: str, groups: Groups, beyond: LinkLevel | None) -> Level:
    if beyond is None:
        return Level(name, groups)
    rate, latency = (
        float(f"{figure.median:.{DIGITS}g}") for figure in (beyond.gbytes_per_s, beyond.latency_us)
    )
    return Level(name, groups, rate, latency)


def _middle(
    figures: Sequence[tuple[tuple[int, int], Figure]], best: Callable[[Iterable[float]], float]
) -> Figure:
    """Return the median over ranks of the median over links, with an interval, and the best link.

    Not the median over links: one slow host of four is in half of them, and would be the measure
    of the others. The interval is that of order statistics, and with fewer than 6 ranks goes from
    the least bound of a link to the greatest. It would miss what lies anywhere between the links'
    true medians only if the extreme one of these were beyond its own interval on that side, which
    happens once in 40 times.
    """
    of_rank: dict[int, list[float]] = {}
    for ranks, figure in figures:
        for rank in ranks:
            of_rank.setdefault(rank, []).append(figure.median)
    medians = [median(values) for values in of_rank.values()]
    interval = median_interval(medians)
    own = [figure.interval for _, figure in figures if figure.interval]
    if interval is None and len(own) == len(figures):
        interval = min(low for low, _ in own), max(high for _, high in own)
    return Figure(median(medians), interval, best(figure.best for _, figure in figures))


def _partitions(links: Links) -> list[Groups]:
    """Return the groups of each level but the outermost, from the inside to the outside."""
    latencies = _filled(links.latencies(best), links.nodes)
    slowness = 1 / _filled(links.rates(best), links.nodes)
    slowness = np.fmin(slowness, slowness.T)  # what disturbed one direction says nothing
    candidates = [(groups, m) for m in (latencies, slowness) for groups in _cuts(m)]
    # Sorted by their number, groups that nest come from the inside to the outside.
    candidates.sort(key=lambda found: -len(found[0]))
    accepted = [_singles(links.size)]
    for groups, costs in candidates:
        grown, lone = _grown(accepted[-1], groups)
        clear = len(grown) > 1 and _step(accepted[-1], groups, costs, 0.25, 0.75) >= GAP
        if clear and not any(_strays(lone, groups, m) for m in (latencies, slowness)):
            accepted.append(groups)
    for groups, _ in candidates:
        grown, lone = _grown(accepted[-1], groups)
        if len(grown) == 1 and lone:
            steps = (_step(accepted[-1], groups, m, 0, 0.5) for m in (latencies, slowness))
            if min(steps) >= LONE:
                accepted.append(groups)
    return accepted[1:]


def _grown(inner: Groups, outer: Groups) -> tuple[Groups, Groups]:
    """Return the outer groups that hold several of the inner ones, and those that are one of them.

    Both are empty where the groups do not nest.
    """
    if not _nest(inner, outer):
        return (), ()
    lone = tuple(group for group in outer if group in inner)
    return tuple(group for group in outer if group not in lone), lone


def _strays(lone: Sequence[tuple[int, ...]], groups: Groups, costs: Array) -> bool:
    """Whether a lone group is closer to another one than the groups that have grown are."""
    index = _index(groups)
    beyond = index[:, None] != index[None, :]
    grown = np.ones(len(costs), bool)
    grown[[rank for group in lone for rank in group]] = False
    least = costs[beyond & grown[:, None] & grown[None, :]].min()
    return any(costs[list(group)][beyond[list(group)]].min() * GAP < least for group in lone)


def _cuts(costs: Array) -> list[Groups]:
    """Return the groups below each gap in what single linkage needs to join all ranks."""
    chain = sorted(_spanning_tree(costs))
    groups = {rank: [rank] for rank in range(len(costs))}  # a rank's list is that of its group
    cuts = []
    for (cost, a, b), following in pairwise(chain):
        joined = groups[a] + groups[b]
        groups.update(dict.fromkeys(joined, joined))
        if following[0] >= GAP * cost:
            distinct = {group[0]: tuple(group) for group in groups.values()}
            cuts.append(_sorted(tuple(distinct.values())))
    return cuts


def _spanning_tree(costs: Array) -> list[tuple[float, int, int]]:
    """Return the links of the least spanning tree, each with its cost (Prim's algorithm)."""
    size = len(costs)
    least, nearest = costs[0].copy(), np.zeros(size, int)
    outside = np.arange(size) > 0
    tree = []
    for _ in range(size - 1):
        rank = int(np.argmin(np.where(outside, least, np.inf)))
        tree.append((float(least[rank]), int(nearest[rank]), rank))
        outside[rank] = False
        better = costs[rank] < least
        least[better], nearest[better] = costs[rank][better], rank
    return tree


def _step(inner: Groups, outer: Groups, costs: Array, best: float, worst: float) -> float:
    """Return how many times as bad links beyond the outer groups are as those inside them.

    By these quantiles of the two: 0 is the best link, 1 the worst.
    """
    within, inside = _index(outer), _index(inner)
    beyond = within[:, None] != within[None, :]
    between = ~beyond & (inside[:, None] != inside[None, :])
    return float(np.quantile(costs[beyond], best) / np.quantile(costs[between], worst))


def _costs(links: Links, found: Sequence[LinkLevel]) -> Array:
    """Return what a tour pays for each link, us for a kB, shape (size, size) and symmetric.

    That is the median between two innermost groups, or what the link takes where that is far more;
    and what is not far apart costs the same. Else a ring would go in and out of groups, which share
    one link, to use what looks best by chance. For the same reason a link beyond a group costs at
    least GAP times as much as inside it: one pair at a time may be faster there.
    """
    slowness = 1 / _filled(links.rates(), links.nodes)
    slowness = np.fmax(slowness, slowness.T)  # a ring may run either way
    costs = _medians(slowness, found[0].groups)
    costs = np.where(slowness > costs / (1 - OFF), slowness, costs)
    for inner, level in pairwise(found):
        index = _index(inner.groups)
        beyond = index[:, None] != index[None, :]
        inside = 1 / inner.gbytes_per_s.median
        costs[beyond] *= max(1.0, GAP * inside * level.gbytes_per_s.median)
    np.fill_diagonal(costs, 0)
    return _stepped(costs)


def _stepped(costs: Array) -> Array:
    """Return the costs with all that are not far above the lowest as low as that, and so on up."""
    stepped = costs.copy()
    while (costs > 0).any():
        least = costs[costs > 0].min()
        alike = (costs >= least) & (costs * (1 - OFF) < least)
        stepped[alike] = least
        costs = np.where(alike, 0, costs)
    return stepped


def _filled(matrix: Array, nodes: Groups) -> Array:
    """Return the matrix, or where pairs are missing, one in which the ranks of a node are alike."""
    unknown = np.isnan(matrix).sum() > len(matrix)  # beside the diagonal
    return _medians(matrix, nodes) if unknown else matrix


def _medians(matrix: Array, groups: Groups) -> Array:
    """Return a matrix in which each pair has the median of those between the same two groups."""
    smooth = np.full_like(matrix, np.nan)
    for one in groups:
        for other in groups:
            block = matrix[np.ix_(one, other)]
            if not np.isnan(block).all():  # as for a rank by itself
                smooth[np.ix_(one, other)] = np.nanmedian(block)
    np.fill_diagonal(smooth, np.nan)
    return smooth


def _singles(size: int) -> Groups:
    return tuple((rank,) for rank in range(size))


def _sorted(groups: Groups) -> Groups:
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def _index(groups: Groups) -> Array:
    """Return the number of each rank's group."""
    index = np.empty(sum(map(len, groups)), int)
    for number, group in enumerate(groups):
        index[list(group)] = number
    return index


def _nest(inner: Groups, outer: Groups) -> bool:
    index = _index(outer)
    return all(len(set(index[list(group)].tolist())) == 1 for group in inner)
