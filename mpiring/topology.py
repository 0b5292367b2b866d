"""Which ranks are close to each other: nested levels of groups, from a file or from MPI's nodes.

A topology file is TOML:

    version = 1
    [[level]]                                    # innermost first: groups nest, level by level
    name = "node"
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]        # or: by = "hostname"
    gbytes_per_s = 8.0                           # optional, as is latency_us
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from mpiring.errors import UsageError

Groups: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Level:
    """One level of the machine: its groups of ranks, and what its links give, where known."""

    name: str
    groups: Groups
    gbytes_per_s: float | None = None
    latency_us: float | None = None


@dataclass(frozen=True)
class Topology:
    """`size` ranks in levels, innermost first. Each level covers every rank, and they nest."""

    size: int
    levels: tuple[Level, ...]
    source: str = "given"

    def __post_init__(self) -> None:
        if not self.levels:
            raise UsageError("topology: there is no level")
        for level in self.levels:
            _check_cover(level, self.size)
        for inner, outer in zip(self.levels, self.levels[1:], strict=False):
            _check_nesting(inner, outer)

    def document(self) -> dict[str, Any]:
        """Return the topology as it stands in a JSON file."""
        return {"source": self.source, "levels": [asdict(level) for level in self.levels]}

    @property
    def nodes(self) -> Groups:
        """The groups of the innermost level."""
        return self.levels[0].groups


def flat(size: int) -> Topology:
    """All ranks in one node: what algorithms that heed no topology run on."""
    return Topology(size, (Level("node", (tuple(range(size)),)),), source="flat")


def by_hostname(hosts: Sequence[str]) -> Groups:
    """Group the ranks by the host they run on; two names are one host only if they are equal."""
    groups: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        groups.setdefault(host, []).append(rank)
    return tuple(tuple(group) for group in groups.values())


def read(text: str, hosts: Sequence[str], source: str) -> Topology:
    """Return the topology that a file's `text` describes for the ranks that run on `hosts`.

    `source` names the file in errors. Raises UsageError with the file and the key.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{source}: not TOML: {error}") from None
    try:
        if document.get("version") != 1:
            raise UsageError(f"version is {document.get('version')!r}, this program reads 1")
        _refuse_unknown(document, ("version", "level"))
        levels = document.get("level")
        if not isinstance(levels, list) or not levels:
            raise UsageError("no [[level]] table")
        return Topology(len(hosts), tuple(_read_level(level, hosts) for level in levels), source)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def _read_level(table: Any, hosts: Sequence[str]) -> Level:
    if not isinstance(table, dict):
        raise UsageError("a level is not a table")
    _refuse_unknown(table, ("name", "groups", "by", "gbytes_per_s", "latency_us"))
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("a level has no name")
    if ("groups" in table) == ("by" in table):
        raise UsageError(f'level "{name}": give either groups or by')
    if "by" in table:
        if table["by"] != "hostname":
            raise UsageError(f'level "{name}": by is {table["by"]!r}, it can be "hostname"')
        groups = by_hostname(hosts)
    else:
        groups = _read_groups(name, table["groups"])
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
    if not groups or not all(groups):
        raise UsageError(f'level "{name}": a group is empty')
    return tuple(tuple(group) for group in groups)


def _read_positive(name: str, table: dict[str, Any], key: str) -> float | None:
    value = table.get(key)
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 < value < float("inf"):
        raise UsageError(f'level "{name}": {key} is {value!r}, it has to be a positive number')
    return float(value)


def _refuse_unknown(table: dict[str, Any], known: Iterable[str]) -> None:
    for key in table:
        if key not in known:
            raise UsageError(f"unknown key {key!r}, there are {', '.join(known)}")


def _check_cover(level: Level, size: int) -> None:
    seen: dict[int, int] = {}
    for index, group in enumerate(level.groups):
        for rank in group:
            if not 0 <= rank < size:
                raise UsageError(
                    f'level "{level.name}": group {index} names rank {rank}, the job has {size}'
                    f" rank{'s' if size > 1 else ''}"
                )
            if rank in seen:
                where = "twice" if seen[rank] == index else f"and in group {seen[rank]}"
                raise UsageError(f'level "{level.name}": rank {rank} is in group {index} {where}')
            seen[rank] = index
    missing = sorted(set(range(size)) - set(seen))
    if missing:
        raise UsageError(
            f'level "{level.name}": rank {missing[0]} is in no group, the job has {size} ranks'
        )


def _check_nesting(inner: Level, outer: Level) -> None:
    group_of = {rank: index for index, group in enumerate(outer.groups) for rank in group}
    for group in inner.groups:
        if len({group_of[rank] for rank in group}) > 1:
            raise UsageError(
                f'level "{inner.name}": group {list(group)} lies in several groups of'
                f' level "{outer.name}"'
            )
