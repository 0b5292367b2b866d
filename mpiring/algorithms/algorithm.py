"""What the registry keeps of an algorithm, as data."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import TypeVar

from mpiring.errors import UsageError
from mpiring.options import DEFAULTS, Options
from mpiring.schedule import Schedule, pipelined, segmented, staggered
from mpiring.topology import Topology

T = TypeVar("T")

MOST_SEGMENTS = 4096
"""Of a chunk. Each has requests of its own, which take longer to make than all else."""

NATIVE, NATIVE_PERSISTENT = OF_THE_LIBRARY = ("native", "native_persistent")
"""The MPI library's own allreduce, by the names in the registry: called, and as a request."""

ALWAYS_HEEDED = frozenset({"segment", "rendezvous"})
"""Options that belong to how a schedule is run, whichever it is."""


@dataclass(frozen=True)
class Cut:
    """How a schedule runs over segments of its chunks."""

    over: Callable[[Schedule, int], Schedule]
    """Lets a schedule run over so many segments of each chunk."""
    multiple: int = 1
    """What their number is a multiple of, where there are several."""
    overlapped: bool = False
    """Whether each takes one round more, and not all rounds once more."""

    def __call__(self, schedule: Schedule, segments: int) -> Schedule:
        """Return the schedule over so many segments of each chunk."""
        return self.over(schedule, segments)

    def number(self, needed: int) -> int:
        """Return how many segments are cut where so many are needed."""
        return needed if needed == 1 else -(-needed // self.multiple) * self.multiple


IN_PAIRS = Cut(partial(segmented, in_flight=2), multiple=2)
PIPELINED = Cut(pipelined, overlapped=True)
STAGGERED = Cut(staggered)


@dataclass(frozen=True)
class Algorithm:
    """An allreduce algorithm.

    Those of the MPI library have no schedule: its call is their one step. Nor has `auto`, which
    picks another one.
    """

    name: str
    summary: str
    schedule: Callable[[Topology, Options], Schedule] | None
    """Gives the rounds of all ranks. Raises UsageError where a precondition is not met."""
    rounds: str = ""
    """How many there are, in closed form (see `formula`): N ranks, P in each of G nodes, k radix, X
    x Y torus, L leaders. For one segment, as the two forms that follow. In words where there is
    no schedule."""
    messages: str = ""
    """What the busiest rank sends."""
    bytes_sent: str = ""
    """What the busiest rank sends, of n bytes."""
    scratch: str = "n"
    """At most what the busiest rank needs in a round; beyond n, a buffer runs in pieces."""
    heeds: frozenset[str] = frozenset()
    """The options that it heeds, beside those that every schedule does."""
    segment: Callable[[Topology], int | None] = lambda topology: None
    """Bytes of a segment where none is chosen; None leaves chunks whole."""
    leaders: int | None = None
    """Ranks of a node that talk to others where no number is chosen; None lets all do."""
    cut: Cut = IN_PAIRS
    commutative: bool = True
    """Whether the operation has to commute."""
    remark: Callable[[Topology, Options], str] = lambda topology, options: ""
    """What a reader has to know where a topology leaves only part of the algorithm."""

    @property
    def heeded(self) -> frozenset[str]:
        """All options that it heeds."""
        return self.heeds | ALWAYS_HEEDED if self.schedule else frozenset()

    def check_heeds(self, options: Options) -> None:
        """Raise UsageError for an option that is chosen in vain."""
        vain = [name for name in options.chosen if name not in self.heeded]
        if vain:
            raise UsageError(f"{self.name} has no {' and no '.join(vain)} to choose")

    @property
    def needs(self) -> str:
        """The preconditions in words."""
        return "an operation that commutes" if self.commutative else "nothing"

    @property
    def description(self) -> str:
        """What the module of the algorithm says of it."""
        module = sys.modules.get(f"{__package__}.{self.name}")
        return ((module and module.__doc__) or "").strip()

    def scheduled(
        self, topology: Topology, options: Options = DEFAULTS, count: int = 0, itemsize: int = 1
    ) -> Schedule:
        """Return the schedule for `count` elements, in segments if they are wanted.

        Raises UsageError where a precondition is not met.
        """
        assert self.schedule is not None
        whole = self.schedule(topology, options)
        return self.cut(whole, self.segments(whole.chunks, topology, options, count, itemsize))

    def segments(
        self, chunks: int, topology: Topology, options: Options, count: int, itemsize: int
    ) -> int:
        """Return in how many segments each of the `chunks` of a buffer is sent."""
        segment = options.segment or self.segment(topology)
        if segment is None:
            return 1
        if segment < itemsize:
            raise UsageError(f"a segment of {segment} B is smaller than an element of {itemsize} B")
        longest = -(-count // chunks)
        needed = max(1, -(-longest // (segment // itemsize)))
        if needed > MOST_SEGMENTS and options.segment:
            raise UsageError(
                f"segments of {segment} B would be {needed} of a chunk, at most {MOST_SEGMENTS} are"
                " possible"
            )
        return self.cut.number(min(needed, MOST_SEGMENTS))


def named(name: str, known: Mapping[str, T]) -> T:
    """Return what is known by that name, or raise UsageError with the nearest one."""
    if isinstance(name, str) and name in known:
        return known[name]
    near = get_close_matches(str(name), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    raise UsageError(f"unknown algorithm {name!r}: {hint}")
