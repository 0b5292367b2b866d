"""A topology as a tree of text."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from mpiring.topology import Level, Topology
from mpiring.units import counted, plural, ranges


def lines(
    topology: Topology, hosts: Sequence[str], affinity: Sequence[frozenset[int]]
) -> Iterator[str]:
    """Yield a line for each group, the outermost first, with its ranks, hosts and cores.

    `hosts` and `affinity` are those of each rank: where it runs, and the cores that it may use.
    """
    levels = ", ".join(
        f"{', '.join(f'{len(level.groups)} x {level.name}' for level in some)} (from {origin})"
        for origin, some in groupby(topology.levels, topology.origin)
    )
    yield f"{counted(topology.size, 'rank')}: {levels}"
    yield from _groups(topology.levels, range(topology.size), "", hosts, affinity)
    yield from topology.left_out


def _groups(
    levels: Sequence[Level],
    inside: Iterable[int],
    indent: str,
    hosts: Sequence[str],
    affinity: Sequence[frozenset[int]],
) -> Iterator[str]:
    """Yield the groups of the last level that lie `inside`, each above those that it holds."""
    if not levels:
        return
    *inner, level = levels
    within = set(inside)
    for index, group in enumerate(level.groups):
        if within.issuperset(group):
            names = sorted({hosts[rank] for rank in group})
            on = names[0] if len(names) == 1 else counted(len(names), "host")
            cores = len(frozenset().union(*(affinity[rank] for rank in group)))
            shown = f", {counted(cores, 'core')}" if len(names) == 1 else ""
            ranks = f"{plural(len(group), 'rank')} {ranges(group)}"
            yield f"{indent}{level.name} {index}: {ranks} on {on}{shown}{_links(level)}"
            yield from _groups(inner, group, indent + "  ", hosts, affinity)


def _links(level: Level) -> str:
    """What the file says of links beyond a group of this level."""
    known = [
        f"{value:g} {unit}"
        for value, unit in ((level.gbytes_per_s, "GB/s"), (level.latency_us, "us"))
        if value is not None
    ]
    return f"; links: {', '.join(known)}" if known else ""
