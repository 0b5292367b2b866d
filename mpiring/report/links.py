"""Measured links as text: a table of levels, and lines for what is slow."""

from collections.abc import Iterator, Sequence
from typing import Any

from mpiring.clusters import LinkLevel
from mpiring.links import Figure, Links
from mpiring.outliers import Outlier
from mpiring.report.plain import plain_table, render
from mpiring.topology import Topology
from mpiring.units import counted, format_size, plural

MOST_LINES = 20
"""Of outliers, the worst of which come first."""


def header(links: Links) -> str:
    """Return the line that says what was measured."""
    measured = len(links.links)
    pairs = counted(links.pairs, "pair")
    return (
        f"{links.environment['mpi_library']}, {counted(links.size, 'rank')} on"
        f" {counted(len(links.nodes), 'node')},"
        f" {f'{measured} of ' if measured < links.pairs else ''}{pairs},"
        f" latency of 8 B, rate of {format_size(links.nbytes)}"
    )


def level_table(levels: Sequence[LinkLevel], names: Sequence[str]) -> str:
    """Return the levels, each with its groups and figures. `names` are those of their groups."""
    table = plain_table(
        *("links", "groups", "pairs\nmeasured"),
        *("latency\n(us)", "95 %\ninterval", "rate\n(GB/s)", "95 %\ninterval"),
        left=("links", "groups"),
        narrow=True,
    )
    for name, level in zip(names, levels, strict=True):
        latency, rate = level.latency_us, level.gbytes_per_s
        table.add_row(
            name,
            _groups(level),
            str(len(level.links)),
            *(_short(latency.median), _interval(latency)),
            *(_short(rate.median), _interval(rate)),
        )
    return render(table)


def link_names(levels: Sequence[LinkLevel], topology: Topology) -> list[str]:
    """Return what to call the links of each level: within the groups of one of the topology."""
    names = {level.groups: level.name for level in topology.levels}
    found = [names.get(level.groups) for level in levels[:-1]]
    if not found:
        return ["all"] * len(levels)
    return [f"within {found[0]}", *(f"beyond {name}" for name in found)]


def outlier_lines(outliers: Sequence[Outlier], hosts: Sequence[str]) -> Iterator[str]:
    """Yield a line for each outlier, the worst first, up to some."""
    for outlier in outliers[:MOST_LINES]:
        yield outlier_line(outlier, hosts)
    if len(outliers) > MOST_LINES:
        yield f"and {len(outliers) - MOST_LINES} more, less far off"


def outlier_line(outlier: Outlier, hosts: Sequence[str]) -> str:
    """Return `rank 3 on node07: 4.1 of 11.9 GB/s`, or of which pair and direction."""
    first, *second = (f"rank {rank} on {hosts[rank]}" for rank in outlier.ranks)
    if second:
        who = f"{first} {'and' if outlier.way == 'both' else 'to'} {second[0]}"
    else:
        who = first if outlier.way == "both" else f"{first}, {outlier.way}"
    figure, level = _short(outlier.figure), _short(outlier.level)
    if outlier.quantity == "us":
        return f"{who}: {figure} us instead of {level} us"
    return f"{who}: {figure} of {level} {outlier.quantity}"


def analysis(
    levels: Sequence[LinkLevel], names: Sequence[str], outliers: Sequence[Outlier]
) -> dict[str, Any]:
    """Return what was found in the links, as it stands in a JSON file."""
    return {
        "levels": [
            {
                "links": name,
                "groups": [list(group) for group in level.groups],
                "pairs": len(level.links),
                "latency_us": level.latency_us.document(),
                "GBps": level.gbytes_per_s.document(),
            }
            for name, level in zip(names, levels, strict=True)
        ],
        "outliers": [
            {
                "ranks": list(outlier.ranks),
                "way": outlier.way,
                "unit": outlier.quantity,
                "figure": outlier.figure,
                "level": outlier.level,
            }
            for outlier in outliers
        ],
    }


def _groups(level: LinkLevel) -> str:
    """Write the groups by their sizes: `4 x 8 ranks`."""
    sizes = sorted({len(group) for group in level.groups})
    of = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"{len(level.groups)} x {of} {plural(sizes[-1], 'rank')}"


def _short(number: float) -> str:
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def _interval(figure: Figure) -> str:
    return "-" if figure.interval is None else "..".join(map(_short, figure.interval))
