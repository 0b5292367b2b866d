"""Topology files, which say which ranks are close to each other.

In TOML a file says all:

    version = 1
    [[level]]                                    # innermost first: groups nest, level by level
    name = "node"
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]        # or: by = "hostname"
    gbytes_per_s = 8.0                           # of links beyond a group; optional, as latency_us
    [[level]]
    name = "switch"
    hosts = ["n[1-4,7]", "n[5-6]"]               # groups by their hosts

and, before the first level, `tour = [0, 4, 5, 1, ...]`: the ranks in a ring over the best links.
With the ending .conf, .yaml or .yml it is Slurm's topology.conf or topology.yaml, and says what is
above the nodes.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from mpiring import toml
from mpiring.errors import UsageError
from mpiring.hosts import expand, meant
from mpiring.switch_files import FORMS
from mpiring.switches import above_nodes
from mpiring.topology import Groups, Level, Topology, by_hostname, grouped


def is_slurms(path: str) -> bool:
    """Whether a file of this name is Slurm's, by its ending."""
    return PurePath(path).suffix.lower() in FORMS


def read(
    text: str, hosts: Sequence[str | None], source: str, detected: Topology | None = None
) -> Topology:
    """Return the topology that a file's `text` describes for the ranks that run on `hosts`.

    None stands for a host that is not known, as outside of a job. `source` names the file, and its
    ending says in which form it is. Those of Slurm leave the nodes to what is `detected`, or else
    to the names of the hosts. Raises UsageError with the file, and the line or the key.
    """
    form = FORMS.get(PurePath(source).suffix.lower())
    if form:
        known = _known(hosts, f"{source}: ")
        nodes = Level("node", by_hostname(known), source="hostnames")
        if detected:
            nodes = next(level for level in detected.levels if level.name == "node")
        return above_nodes(nodes, form(text, source), known, source)
    document = toml.load(text, source)
    try:
        if document.get("version") != 1:
            raise UsageError(f"version is {document.get('version')!r}, this program reads 1")
        toml.refuse_unknown(document, ("version", "tour", "level"))
        levels = document.get("level")
        if not isinstance(levels, list) or not levels:
            raise UsageError("no [[level]] table")
        read_levels = tuple(_read_level(level, hosts) for level in levels)
        _refuse_same_names(read_levels)
        return Topology(len(hosts), read_levels, source, _read_tour(document.get("tour")))
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def to_toml(topology: Topology) -> str:
    """Return the text that `read` reads back as these levels and this tour."""
    lines = ["# Which ranks are close to each other; levels go from the inside to the outside."]
    lines.append("version = 1")
    if topology.tour is not None:
        lines.append(f"tour = {list(topology.tour)}")
    for level in topology.levels:
        lines += ["", "[[level]]", f"name = {toml.written(level.name)}"]
        lines.append(f"groups = {toml.written(level.groups)}")
        if level.gbytes_per_s is not None:
            lines.append(f"gbytes_per_s = {level.gbytes_per_s!r}")
        if level.latency_us is not None:
            lines.append(f"latency_us = {level.latency_us!r}")
    return "\n".join(lines) + "\n"


def _known(hosts: Sequence[str | None], where: str) -> list[str]:
    known = [host for host in hosts if host is not None]
    if len(known) < len(hosts):
        raise UsageError(f"{where}hostnames are known in a job alone")
    return known


def _read_tour(tour: Any) -> tuple[int, ...] | None:
    if tour is None:
        return None
    if not isinstance(tour, list) or not all(type(rank) is int for rank in tour):
        raise UsageError("tour is not a list of ranks")
    return tuple(tour)


def _read_level(table: Any, hosts: Sequence[str | None]) -> Level:
    if not isinstance(table, dict):
        raise UsageError("a level is not a table")
    toml.refuse_unknown(table, ("name", "groups", "hosts", "by", "gbytes_per_s", "latency_us"))
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("a level has no name")
    if name == "top" or not name.isprintable() or set(name) & set("=,"):
        raise UsageError(
            f"level {json.dumps(name)}: a name is printable, without = and comma, and not top,"
            " which means what is above the last level"
        )
    if sum(key in table for key in ("groups", "hosts", "by")) != 1:
        raise UsageError(f'level "{name}": give one of groups, hosts and by')
    if "groups" in table:
        groups = _read_groups(name, table["groups"])
    elif "hosts" in table:
        groups = _read_hosts(name, table["hosts"], _known(hosts, f'level "{name}": '))
    elif table["by"] == "hostname":
        groups = by_hostname(_known(hosts, f'level "{name}": '))
    else:
        raise UsageError(f'level "{name}": by is {table["by"]!r}, it can be "hostname"')
    return Level(
        name,
        groups,
        _read_positive(name, table, "gbytes_per_s"),
        _read_positive(name, table, "latency_us"),
    )


def _read_groups(name: str, groups: Any) -> Groups:
    lists = isinstance(groups, list) and all(isinstance(group, list) for group in groups)
    if not lists or not all(type(rank) is int for group in groups for rank in group):
        raise UsageError(f'level "{name}": groups is not a list of lists of ranks')
    if not groups:
        raise UsageError(f'level "{name}": groups is empty')
    return tuple(tuple(group) for group in groups)


def _read_hosts(name: str, lists: Any, hosts: Sequence[str]) -> Groups:
    if not isinstance(lists, list) or not all(isinstance(text, str) for text in lists):
        raise UsageError(f'level "{name}": hosts is not a list of texts such as "n[1-3,7],m2"')
    try:
        group_of: dict[str, int] = {}
        for index, text in enumerate(lists):
            for host in expand(text):
                if host in group_of:
                    raise UsageError(
                        f"host {host} is in group {index} and in group {group_of[host]}"
                    )
                group_of[host] = index
        names = meant(hosts, group_of)
        for rank, host in enumerate(hosts):
            if host not in names:
                raise UsageError(f"host {host} of rank {rank} is in no group")
        for host, index in group_of.items():
            if host not in names.values():
                raise UsageError(f"group {index} names host {host}, which no rank runs on")
    except UsageError as error:
        raise UsageError(f'level "{name}": {error}') from None
    return grouped(group_of[names[host]] for host in hosts)


def _read_positive(name: str, table: dict[str, Any], key: str) -> float | None:
    value = table.get(key)
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 < value <= sys.float_info.max:
        raise UsageError(f'level "{name}": {key} is {value!r}, it has to be a positive number')
    return float(value)


def _refuse_same_names(levels: Sequence[Level]) -> None:
    for name, times in Counter(level.name for level in levels).items():
        if times > 1:
            raise UsageError(f'{times} levels are called "{name}"')
