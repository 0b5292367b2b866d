"""Levels above the nodes: which switches a host is below, by Slurm's files or addresses.

A switch that has nodes is of height 0, and any other is one higher than the highest below it. That
is how Slurm counts for the address that it gives a task, such as `spine.leaf2.n7`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from typing import TypeAlias

from mpiring.errors import UsageError
from mpiring.hosts import meant
from mpiring.switch_files import Switch
from mpiring.topology import Level, Topology, grouped

ADDRESS = "SLURM_TOPOLOGY_ADDR"
"""The variable that says which switches a task is below."""

Branch: TypeAlias = tuple[str, ...]
"""What a host is below at each height, innermost first."""


def places(switches: Sequence[Switch], hosts: Sequence[str], source: str) -> list[Branch]:
    """Return the place of each of the `hosts`, which are those of each rank.

    Raises UsageError where a host is below no switch, where a switch is described twice, nowhere or
    as below itself, and where two of a height share some of the hosts, but not all.
    """
    described: dict[str, Switch] = {}
    for switch in switches:
        if switch.name in described:
            other = described[switch.name].where
            raise UsageError(f"{switch.where}: {switch.name} is described already, by {other}")
        described[switch.name] = switch
    above = _above(described)
    try:
        names = meant(hosts, above)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    for rank, host in enumerate(hosts):
        if host not in names:
            raise UsageError(f"{source}: host {host} of rank {rank} is below no switch")
    _refuse_overlaps([(host, above[name]) for host, name in names.items()], described)
    height = 1 + max(map(max, above.values()))
    return [
        _filled([",".join(above[name].get(h, ())) for h in range(height)], name)
        for name in map(names.__getitem__, hosts)
    ]


def above_nodes(
    nodes: Level, switches: Sequence[Switch], hosts: Sequence[str], source: str
) -> Topology:
    """Return the topology of `nodes` and of the levels above them that a file describes.

    `hosts` are those of each rank. Raises UsageError where a host is below no switch, where a node
    lies below two, and for the faults of the description that these hosts can notice.
    """
    found = places(switches, hosts, source)
    try:
        levels = _levels(["switch"] * len(found[0]), found, source)
        return Topology(len(hosts), (nodes,), source).with_above(levels)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def with_addresses(
    topology: Topology, hosts: Sequence[str], addresses: Sequence[tuple[str, str]]
) -> Topology:
    """Return the topology with the levels above nodes that Slurm's addresses of the ranks give.

    Each is an address and its pattern, or empty. Nobody asked for them, so where they can only do
    harm they are left out, and `left_out` says so: where they contradict each other, the hosts or
    the nodes, as after a launcher that gives all ranks its own environment; or where a tree would
    press what a large group has through the few nodes of a small one.
    """
    first = next((rank for rank, (address, _) in enumerate(addresses) if address), None)
    if first is None:
        return topology
    try:
        host_of: dict[str, str] = {}
        for rank, (address, pattern) in enumerate(addresses):
            if not address or pattern != addresses[first][1]:
                one, other = (" ".join(addresses[r]).strip() or "not there" for r in (first, rank))
                raise UsageError(f"it is {one} on rank {first}, and {other} on rank {rank}")
            host = host_of.setdefault(address, hosts[rank])
            if host != hosts[rank]:
                raise UsageError(f"{host} and {hosts[rank]} have the same, {address}")
        words = addresses[first][1].split(".")[-2::-1]
        found = [read_address(*told) for told in addresses]
        whole = topology.with_above(_levels(words, found, ADDRESS))
        for inner, outer in pairwise(whole.levels):
            _refuse_uneven(inner, outer)
        return whole
    except UsageError as error:
        return replace(topology, left_out=(f"{ADDRESS} is left out: {error}",))


def _levels(words: Sequence[str], places: Sequence[Branch], source: str) -> list[Level]:
    """Return a level for each height of the places of the ranks."""
    return [
        Level(name, grouped(place[height] for place in places), source=source)
        for height, name in enumerate(level_names(words))
    ]


def _refuse_uneven(inner: Level, outer: Level) -> None:
    group_of = {rank: index for index, group in enumerate(outer.groups) for rank in group}
    sizes = Counter(group_of[group[0]] for group in inner.groups).values()
    if max(sizes) > 2 * min(sizes):
        raise UsageError(
            f'one group of level "{outer.name}" has {max(sizes)} of level "{inner.name}", another'
            f" {min(sizes)}"
        )


def read_address(text: str, pattern: str) -> Branch:
    """Return the place that an address such as `spine.leaf2.n7` gives, by its pattern.

    That is `switch.switch.node` here. Raises UsageError where the two do not fit.
    """
    *words, last = pattern.split(".")
    *levels, node = text.split(".", len(words))  # what a node is called may have dots
    if last != "node" or len(levels) != len(words):
        raise UsageError(f"{text} does not fit the pattern {pattern}")
    return _filled(levels[::-1], node)


def level_names(words: Iterable[str]) -> Iterator[str]:
    """Yield what levels of these kinds are called, innermost first: switch, switch2, switch3."""
    times: Counter[str] = Counter()
    for word in words:
        times[word] += 1
        yield word if times[word] == 1 else f"{word}{times[word]}"


def _filled(levels: Sequence[str], node: str) -> Branch:
    """Return a place in which what is inside stands in for a switch of a height that has none."""
    place = [node]
    for level in levels:
        place.append(level or place[-1])
    return tuple(place[1:])


def _above(described: Mapping[str, Switch]) -> dict[str, dict[int, list[str]]]:
    """Return for each node the switches that it is below, by their height."""
    for switch in described.values():
        for name in switch.below:
            if name not in described:
                raise UsageError(
                    f"{switch.where}: {name} is below {switch.name}, and described nowhere"
                )
    graph = {switch.name: switch.below for switch in described.values()}
    try:
        upwards = [*TopologicalSorter(graph).static_order()]
    except CycleError as error:
        loop: list[str] = error.args[1]
        raise UsageError(f"{described[loop[0]].where}: {' is below '.join(loop)}") from None
    height: dict[str, int] = {}
    nodes: dict[str, dict[str, None]] = {}
    above: dict[str, dict[int, list[str]]] = {}
    for name in upwards:
        switch = described[name]
        height[name] = 1 + max((height[child] for child in switch.below), default=-1)
        below = chain(switch.nodes, *(nodes[child] for child in switch.below))
        nodes[name] = dict.fromkeys(below)
        for node in nodes[name]:
            above.setdefault(node, {}).setdefault(height[name], []).append(name)
    return above


def _refuse_overlaps(
    hosts: Sequence[tuple[str, dict[int, list[str]]]], described: Mapping[str, Switch]
) -> None:
    """Raise UsageError for switches of a height that are not above the same hosts.

    Those above the same ones are one to us, as the spines that all leaves are connected to.
    """
    seen: dict[str, tuple[str, list[str]]] = {}
    for host, above in hosts:
        for here in above.values():
            for name in here:
                other, there = seen.setdefault(name, (host, here))
                both, alone, beside = host, other, [x for x in here if x not in there]
                if not beside:
                    both, alone, beside = other, host, [x for x in there if x not in here]
                if beside:
                    raise UsageError(
                        f"{described[name].where}: {both} and {alone} are below {name}, and only"
                        f" {both} is below {beside[0]} as well ({described[beside[0]].where})"
                    )
