"""Which ranks are close to each other: nested levels of groups, such as nodes below switches."""

import operator
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, SupportsIndex, TypeAlias

from mpiring.errors import UsageError
from mpiring.options import whole_number
from mpiring.units import counted

Groups: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Level:
    """One level of the machine: its groups of ranks, and what links beyond them give, where known.

    Those are the links between two of its groups that lie in one group of the next level. Raises
    UsageError where the name is no text, or a group no sequence of one or more ranks.
    """

    name: str
    groups: Groups
    gbytes_per_s: float | None = None
    latency_us: float | None = None
    source: str | None = field(default=None, compare=False, repr=False)
    """Where the groups were found, if not where the whole topology was."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise UsageError(f"level {self.name!r}: its name has to be a text")
        try:
            groups = tuple(_ranks(group) for group in self.groups)
        except TypeError:
            raise UsageError(
                f'level "{self.name}": groups is {self.groups!r}, it has to be lists of ranks'
            ) from None
        if () in groups:
            raise UsageError(f'level "{self.name}": group {groups.index(())} is empty')
        object.__setattr__(self, "groups", groups)


@dataclass(frozen=True)
class Topology:
    """`size` ranks in levels, innermost first. Each level covers every rank, and they nest.

    Raises UsageError where they do not, or where `tour` is not each of the ranks once.
    """

    size: int
    levels: tuple[Level, ...]
    source: str = "given"
    tour: tuple[int, ...] | None = None
    """The ranks in the order of a ring over the best links, where links were measured."""
    left_out: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """What was found and contradicts what is known better, each as a sentence."""

    def __post_init__(self) -> None:
        self._normalise()
        if not self.levels:
            raise UsageError("topology: there is no level")
        for level in self.levels:
            _check_cover(level, self.size)
        for inner, outer in zip(self.levels, self.levels[1:], strict=False):
            _check_nesting(inner, outer)
        if self.tour is not None and sorted(self.tour) != list(range(self.size)):
            missing = sorted(set(range(self.size)) - set(self.tour))
            wrong = f"rank {missing[0]} is missing" if missing else "some are there twice"
            raise UsageError(f"topology: tour is not each of the ranks once: {wrong}")

    def _normalise(self) -> None:
        """Let what was given in other kinds of sequences and numbers be hashable, as plans need."""
        size = whole_number(self.size)
        if size is None:
            raise UsageError(f"topology: size is {self.size!r}, it has to be a number")
        listed = isinstance(self.levels, Sequence)
        if not listed or not all(isinstance(level, Level) for level in self.levels):
            raise UsageError(f"topology: levels is {self.levels!r}, it has to be a list of Level")
        try:
            tour = None if self.tour is None else _ranks(self.tour)
        except TypeError:
            raise UsageError(
                f"topology: tour is {self.tour!r}, it has to be a list of ranks"
            ) from None
        plain = {"levels": tuple(self.levels), "left_out": tuple(self.left_out)}
        for name, value in (plain | {"size": size, "tour": tour}).items():
            object.__setattr__(self, name, value)

    def document(self) -> dict[str, Any]:
        """Return the topology as it stands in a JSON file."""
        return {
            "source": self.source,
            "levels": [{**asdict(level), "source": self.origin(level)} for level in self.levels],
            "left_out": list(self.left_out),
        }

    def origin(self, level: Level) -> str:
        """Return where a level was found."""
        return level.source or self.source

    def with_inside(self, levels: Iterable[Level]) -> "Topology":
        """Return the topology with levels inside its nodes: those that tell something, and nest.

        Of levels with the same groups the last one is kept.
        """
        made = self
        for level in sorted(levels, key=lambda level: len(level.groups)):
            with suppress(UsageError):  # it lies across a node, or a level that divides it less
                made = replace(made, levels=(level, *made.levels))
        return replace(made, levels=_telling(made.levels, self.size))

    def with_above(self, levels: Iterable[Level]) -> "Topology":
        """Return the topology with levels above its outermost: those that tell something.

        Raises UsageError where they do not nest.
        """
        whole = replace(self, levels=(*self.levels, *levels))
        return replace(whole, levels=_telling(whole.levels, self.size))

    @cached_property
    def nodes(self) -> Groups:
        """The groups that share memory: of the level "node", or else of the innermost one."""
        named = (level.groups for level in self.levels if level.name == "node")
        return next(named, self.innermost)

    @property
    def inside_nodes(self) -> tuple[Level, ...]:
        """The levels inside those nodes."""
        names = [level.name for level in self.levels]
        return self.levels[: names.index("node")] if "node" in names else ()

    def without_inside(self) -> "Topology":
        """Return the topology from its nodes on."""
        inside = self.inside_nodes
        return replace(self, levels=self.levels[len(inside) :]) if inside else self

    @property
    def innermost(self) -> Groups:
        """The groups of the innermost level."""
        return self.levels[0].groups

    def ring_order(self, choice: str) -> tuple[int, ...]:
        """Return the ranks in the order of a ring: by `rank`, by `topology`, or as `measured`.

        By topology those of a group follow each other, at every level. Raises UsageError where
        nothing was measured.
        """
        if choice == "measured":
            if self.tour is None:
                raise UsageError("no order was measured: the topology has no tour")
            return self.tour
        if choice == "rank":
            return tuple(range(self.size))
        place: dict[int, tuple[int, ...]] = dict.fromkeys(range(self.size), ())
        for level in reversed(self.levels):
            for index, group in enumerate(level.groups):
                for rank in group:
                    place[rank] += (index,)
        return tuple(sorted(place, key=lambda rank: (place[rank], rank)))

    def arranged(self, order: Sequence[int]) -> "Topology":
        """Return the same levels, with groups and the ranks in them as they come in `order`."""
        place = {rank: index for index, rank in enumerate(order)}

        def sorted_groups(groups: Groups) -> Groups:
            inside = (tuple(sorted(group, key=place.__getitem__)) for group in groups)
            return tuple(sorted(inside, key=lambda group: place[group[0]]))

        levels = (replace(level, groups=sorted_groups(level.groups)) for level in self.levels)
        return replace(self, levels=tuple(levels))

    def crossings(self, order: Sequence[int]) -> int:
        """Return how many steps of a ring lead to another node."""
        node_of = {rank: index for index, node in enumerate(self.nodes) for rank in node}
        return sum(node_of[a] != node_of[b] for a, b in pairwise((*order, order[0])))

    def above(self) -> "Topology":
        """Return the levels above the innermost, in which each of its groups is one rank."""
        index_of = {rank: index for index, group in enumerate(self.innermost) for rank in group}
        levels = (
            replace(
                level,
                groups=tuple(
                    tuple(dict.fromkeys(index_of[rank] for rank in group)) for group in level.groups
                ),
            )
            for level in self.levels[1:]
        )
        return Topology(len(self.innermost), tuple(levels), self.source)


def flat(size: int) -> Topology:
    """All ranks in one node: what algorithms that heed no topology run on."""
    return Topology(size, (Level("node", (tuple(range(size)),)),), source="flat")


def blocks(size: int, nodes: int) -> Topology:
    """Ranks in `nodes` nodes, block by block, as evenly as can be."""
    if nodes > size:
        raise UsageError(f"{counted(nodes, 'node')} for {counted(size, 'rank')}")
    edges = [size * node // nodes for node in range(nodes + 1)]
    groups = tuple(tuple(range(first, last)) for first, last in pairwise(edges))
    return Topology(size, (Level("node", groups),))


def grouped(keys: Iterable[Hashable]) -> Groups:
    """Group the ranks, each with its key, by equal keys."""
    groups: dict[Hashable, list[int]] = {}
    for rank, key in enumerate(keys):
        groups.setdefault(key, []).append(rank)
    return tuple(tuple(group) for group in groups.values())


def by_hostname(hosts: Sequence[str]) -> Groups:
    """Group the ranks by the host they run on; two names are one host only if they are equal."""
    return grouped(hosts)


def _ranks(given: Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return numbers of any kind, numpy's too, as plain ones. Raises TypeError for others."""
    return tuple(map(operator.index, given))


def _telling(levels: Iterable[Level], size: int) -> tuple[Level, ...]:
    """Return the nodes, and of the other levels those that tell something.

    None do where each group is one rank, where one is all ranks, or where they are there already.
    """
    levels = tuple(levels)
    said = [grouped(range(size)), grouped([0] * size)]
    said += [level.groups for level in levels if level.name == "node"]
    known = {_partition(groups) for groups in said}
    kept = []
    for level in levels:
        if level.name == "node" or _partition(level.groups) not in known:
            known.add(_partition(level.groups))
            kept.append(level)
    return tuple(kept)


def _partition(groups: Groups) -> frozenset[frozenset[int]]:
    return frozenset(map(frozenset, groups))


def _check_cover(level: Level, size: int) -> None:
    seen: dict[int, int] = {}
    for index, group in enumerate(level.groups):
        for rank in group:
            if not 0 <= rank < size:
                raise UsageError(
                    f'level "{level.name}": group {index} names rank {rank}, the job has'
                    f" {counted(size, 'rank')}"
                )
            if rank in seen:
                where = "twice" if seen[rank] == index else f"and in group {seen[rank]}"
                raise UsageError(f'level "{level.name}": rank {rank} is in group {index} {where}')
            seen[rank] = index
    missing = sorted(set(range(size)) - set(seen))
    if missing:
        raise UsageError(
            f'level "{level.name}": rank {missing[0]} is in no group, the job has'
            f" {counted(size, 'rank')}"
        )


def _check_nesting(inner: Level, outer: Level) -> None:
    group_of = {rank: index for index, group in enumerate(outer.groups) for rank in group}
    for index, (first, *others) in enumerate(inner.groups):
        for rank in others:
            if group_of[rank] != group_of[first]:
                raise UsageError(
                    f'level "{inner.name}": ranks {first} and {rank} are in group {index}, but in'
                    f' groups {group_of[first]} and {group_of[rank]} of level "{outer.name}"'
                )
