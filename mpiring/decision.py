"""What `auto` picks where: a table of rules, and which of its rows is for a situation.

A row is for one number of nodes and of ranks per node, one width of elements, one kind of buffers,
one thread level, and one MPI library, since it is that library which ours are faster or slower
than. Its rules go by size: each holds up to its own, and the last one for all that is larger.

Where no row is for a situation itself, the nearest one is taken: that with the least distance, the
sum of |log2| of the ratios of nodes, of ranks per node and of widths, and 1 where one of the two is
at thread level multiple and the other is not. One node and several never stand for each other, nor
do kinds of buffers or libraries; and a row further than `FARTHEST` says nothing. Then the built-in
table is asked, and at last the pick is `native`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import inf, log2
from operator import itemgetter
from typing import Any, NamedTuple

from mpiring.algorithms import find
from mpiring.algorithms.algorithm import NATIVE
from mpiring.errors import UsageError
from mpiring.options import DEFAULTS, Options
from mpiring.topology import Topology
from mpiring.units import counted, format_size

AUTO = "auto"
THREAD_LEVELS = ("single", "funneled", "serialized", "multiple")
"""What MPI lets the threads of a program do, as it is called in files and options."""
MULTIPLE = THREAD_LEVELS[-1]
"""Any thread may call MPI at any time, so that libraries take locks. mpi4py asks for it."""
ORDINARY, NODE_SHARED = BUFFERS = ("ordinary", "node-shared")
"""Kinds of buffers: a program's own arrays, and those in windows that the ranks of a node share."""
FARTHEST = 2.0
"""A row is for situations up to a factor of four away, in all."""
RUNS = "runs"
"""In `measured`: how many runs the rules are from, where these are several."""
VARIABLE = "MPIRING_DECISION"
"""Names the file with a table in the environment."""


@dataclass(frozen=True)
class Pick:
    """An algorithm with its options. Raises UsageError for one that does not heed these."""

    algorithm: str
    options: Options = DEFAULTS

    def __post_init__(self) -> None:
        find(self.algorithm).check_heeds(self.options)

    def __str__(self) -> str:
        return f"{self.algorithm} {self.options}".rstrip()


NATIVE_PICK = Pick(NATIVE)


class Situation(NamedTuple):
    """What a row is for, beside the size."""

    mpi_library: str
    """Name of the MPI library, without its version."""
    nodes: int
    ranks_per_node: int
    """Of the largest node."""
    itemsize: int
    """Bytes of an element."""
    buffers: str = ORDINARY
    thread_level: str = MULTIPLE

    @classmethod
    def of(
        cls,
        topology: Topology,
        mpi_library: str,
        itemsize: int,
        buffers: str,
        thread_level: str = MULTIPLE,
    ) -> "Situation":
        """Return the situation of a job with this topology."""
        nodes, largest = len(topology.nodes), max(map(len, topology.nodes))
        return cls(mpi_library, nodes, largest, itemsize, buffers, thread_level)

    def distance(self, other: "Situation") -> float:
        """Return how far the other is; infinity where it says nothing of this one."""
        alike = (self.mpi_library, self.buffers, self.nodes == 1)
        if alike != (other.mpi_library, other.buffers, other.nodes == 1):
            return inf
        ratios = (
            self.nodes / other.nodes,
            self.ranks_per_node / other.ranks_per_node,
            self.itemsize / other.itemsize,
        )
        locks = (self.thread_level == MULTIPLE) != (other.thread_level == MULTIPLE)
        return locks + sum(abs(log2(ratio)) for ratio in ratios)

    def __str__(self) -> str:
        return (
            f"{counted(self.nodes, 'node')} with {counted(self.ranks_per_node, 'rank')}"
            f"{' each' if self.nodes > 1 else ''}, {self.itemsize}-byte elements,"
            f" {self.buffers} arrays, {self.mpi_library}"
            f"{f' at thread level {self.thread_level}' if self.thread_level != MULTIPLE else ''}"
        )


class Rule(NamedTuple):
    """What is picked up to a size in bytes; without one, for all that is larger."""

    up_to: int | None
    pick: Pick


@dataclass(frozen=True)
class Row:
    """The rules of one situation, by size. Raises UsageError unless one holds at each size."""

    situation: Situation
    rules: tuple[Rule, ...]
    measured: Mapping[str, Any] = field(default_factory=dict)
    """When, on what and how it was measured, and the times."""

    def __post_init__(self) -> None:
        if not self.rules:
            raise UsageError("rules is empty")
        if any(rule.pick.algorithm == AUTO for rule in self.rules):
            raise UsageError("auto cannot pick itself")
        if self.rules[-1].up_to is not None:
            raise UsageError(
                f"a gap: no rule is for sizes above {format_size(self.rules[-1].up_to)};"
                " the last one has to be without up_to"
            )
        least = -1
        for number, rule in enumerate(self.rules[:-1], start=1):
            if rule.up_to is None:
                raise UsageError(f"rule {number} is for all that is larger, and is not the last")
            if rule.up_to <= least:
                raise UsageError(
                    f"rule {number} is up to {format_size(rule.up_to)}, and so is nothing:"
                    f" the one before is up to {format_size(least)}"
                )
            least = rule.up_to

    def pick(self, nbytes: int) -> Pick:
        """Return what the rules pick at a size."""
        return next(r.pick for r in self.rules if r.up_to is None or nbytes <= r.up_to)

    def sentence(self) -> str:
        """Say it in words."""
        *bounded, last = self.rules
        parts = [f"up to {format_size(rule.up_to or 0)} {rule.pick}" for rule in bounded]
        parts.append(f"above, {last.pick}" if bounded else f"at any size {last.pick}")
        return f"On {self.situation}: {'; '.join(parts)}."

    @property
    def origin(self) -> str:
        """When and on what it was measured, where that is known, in words."""
        m = self.measured
        if not m.keys() >= {"started", "mpi_library", "thread_level", "cpu_model", "dtype", "op"}:
            return ""
        runs = f", the last of {m[RUNS]} runs," if m.get(RUNS, 1) != 1 else ""
        return (
            f"Measured {m['started']}{runs} with {m['mpi_library']} at thread level"
            f" {m['thread_level']}, {m['dtype']} {m['op']}, on {m['cpu_model']}."
        )


@dataclass(frozen=True)
class Table:
    """Rows, and where they come from. Raises UsageError where two are for the same situation."""

    rows: tuple[Row, ...]
    source: str

    def __post_init__(self) -> None:
        situations = [row.situation for row in self.rows]
        for number, situation in enumerate(situations):
            if situation in situations[:number]:
                raise UsageError(f"two situations are the same: {situation}")

    def row(self, situation: Situation) -> Row | None:
        """Return the row for exactly this situation, if there is one."""
        return self._by_situation.get(situation)

    def nearest(self, situation: Situation) -> Row | None:
        """Return the row for a situation, or else the nearest; of equally near ones the first."""
        if (exact := self.row(situation)) is not None:
            return exact
        near = [(situation.distance(row.situation), row) for row in self.rows]
        distance, row = min(near, key=itemgetter(0), default=(inf, None))
        return row if distance <= FARTHEST else None

    @cached_property
    def _by_situation(self) -> dict[Situation, Row]:
        return {row.situation: row for row in self.rows}

    def with_row(self, row: Row) -> "Table":
        """Return the table with this row, in place of the one for the same situation."""
        others = [known for known in self.rows if known.situation != row.situation]
        rows = sorted((*others, row), key=lambda known: known.situation)
        return Table(tuple(rows), self.source)


class Choice(NamedTuple):
    """What is picked, and by which rule, in words."""

    pick: Pick
    reason: str


def choose(tables: Sequence[Table], situation: Situation, nbytes: int) -> Choice:
    """Return what the first table that has a row for the situation, or one near it, picks."""
    silent = ""
    for table in tables:
        row = table.nearest(situation)
        if row is None:
            silent = f", since {table.source} has no rule near this job"
            continue
        reason = f"by {table.source}{silent}"
        if row.situation != situation:
            reason += f"; its nearest rules are for {_differing(row.situation, situation)}"
        return Choice(row.pick(nbytes), reason)
    sources = [table.source for table in tables]
    lacking = (
        f"neither {' nor '.join(sources)} has a" if len(sources) > 1 else f"{sources[0]} has no"
    )
    return Choice(NATIVE_PICK, f"since {lacking} rule near {situation}")


def merged(picks: Sequence[tuple[int, Pick]]) -> tuple[Rule, ...]:
    """Return the rules for picks by ascending size; neighbours with the same pick become one."""
    ends = [Rule(n, pick) for (n, pick), (_, larger) in pairwise(picks) if pick != larger]
    return (*ends, Rule(None, picks[-1][1]))


def _differing(row: Situation, situation: Situation) -> str:
    """Say what a row that stands in for a situation is for, where they differ."""
    words = {
        "nodes": counted(row.nodes, "node"),
        "ranks_per_node": f"{counted(row.ranks_per_node, 'rank')} per node",
        "itemsize": f"{row.itemsize}-byte elements",
        "thread_level": f"thread level {row.thread_level}",
    }
    return ", ".join(
        text for name, text in words.items() if getattr(row, name) != getattr(situation, name)
    )
