"""What can be chosen of an algorithm, beside the algorithm itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import index
from typing import SupportsIndex

from mpiring.errors import UsageError

RING_ORDERS = ("rank", "topology", "measured")


@dataclass(frozen=True)
class Options:
    """Choices that an algorithm may heed; which it does, the registry says.

    Raises UsageError for values that mean nothing to any algorithm.
    """

    segment: int | None = None
    """Bytes of a segment: the part of a chunk that is sent at a time. By default the algorithm's
    own; most do not cut their chunks."""
    radix: int = 4
    """How many groups meet in a round of `recursive_multiplying`."""
    torus: tuple[int, int] | None = None
    """Rows and columns of `torus_ring`; by default as near to a square as can be."""
    root: int = 0
    """The server of `parameter_server`."""
    leaders: int | None = None
    """How many ranks of a node talk to other nodes, at most. By default all of them in `tree`, two
    in `multi_leader`."""
    tree: tuple[tuple[str, str], ...] = ()
    """Names of levels, each with the algorithm of its groups in `tree`; `top` is above the last."""
    ring_order: str = "topology"
    """How ranks are neighbours in a ring: by rank, by `topology`, or as `measured`."""
    rendezvous: bool = False
    """Complete no send before its receive has begun (MPI_Ssend), whatever the message's size."""

    def __post_init__(self) -> None:
        if self.ring_order not in RING_ORDERS:
            known = ", ".join(RING_ORDERS)
            raise UsageError(f"ring_order is {self.ring_order!r}, it can be {known}")
        least = {"segment": 1, "radix": 2, "root": 0, "leaders": 1}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is None and name in ("segment", "leaders"):
                continue
            number = whole_number(value)
            if number is None or number < bound:
                raise UsageError(f"{name} is {value!r}, it has to be a number from {bound} on")
            object.__setattr__(self, name, number)
        if self.torus is not None:
            listed = isinstance(self.torus, Sequence)
            sides = tuple(map(whole_number, self.torus)) if listed else ()
            if len(sides) != 2 or not all(side and side > 0 for side in sides):
                raise UsageError(f"torus is {self.torus!r}, it has to be two positive numbers")
            object.__setattr__(self, "torus", sides)
        object.__setattr__(self, "tree", _pairs(self.tree))
        if type(self.rendezvous) is not bool:
            raise UsageError(f"rendezvous is {self.rendezvous!r}, it has to be True or False")

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """The names of what differs from the default."""
        return tuple(name for name, default in _FIELDS if getattr(self, name) != default)

    def only(self, heeded: frozenset[str]) -> "Options":
        """Return these options without those that are not heeded."""
        kept = {name: getattr(self, name) for name in self.chosen if name in heeded}
        return Options(**kept)

    def __str__(self) -> str:
        return " ".join(f"{name}={_written(getattr(self, name))}" for name in self.chosen)


_FIELDS = [(field.name, field.default) for field in fields(Options)]


def _pairs(tree: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    """Return levels with their algorithms as pairs of words, if that is what they are."""
    try:
        pairs = [(level, name) for level, name in tree]
        if not all(type(word) is str for pair in pairs for word in pair):
            raise ValueError
    except (TypeError, ValueError):
        raise UsageError(f"tree is {tree!r}, it has to be pairs of a level and a name") from None
    levels = [level for level, _ in pairs]
    for level in levels:
        if levels.count(level) > 1:
            raise UsageError(f"tree has level {level!r} twice")
    return tuple(pairs)


def _written(value: object) -> str:
    if isinstance(value, tuple):
        pairs = (":".join(part) if isinstance(part, tuple) else str(part) for part in value)
        return ",".join(pairs)
    return str(value)


def whole_number(value: object) -> int | None:
    """Return an integer of any kind, numpy's too, as a plain one; None for anything else."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return index(value)
    return None


DEFAULTS = Options()
