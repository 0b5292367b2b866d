"""What was measured of the links between ranks, and the versioned document it is kept in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mpiring.arrays import Array
from mpiring.documents import load
from mpiring.errors import UsageError
from mpiring.fields import MAPPING, NUMBER, POSITIVE, SEQUENCE, TEXT, WHOLE
from mpiring.stats import Interval
from mpiring.topology import Groups

SCHEMA = "mpiring.links/1"


class Figure(NamedTuple):
    """What samples say: the median, the interval that holds it with 95 % confidence, the best."""

    median: float
    interval: Interval | None
    """None with fewer than 6 samples."""
    best: float

    def document(self) -> dict[str, Any]:
        """Return the figure as it stands in a JSON file."""
        interval = self.interval and list(self.interval)
        return {"median": self.median, "interval95": interval, "best": self.best}

    @classmethod
    def from_document(cls, document: Any, name: str) -> "Figure":
        """Return the figure in a JSON document. Raises ValueError where it is damaged."""
        entry = MAPPING.check(document, name)
        interval = SEQUENCE.or_none().read(entry, "interval95")
        if interval is not None and len(interval) != 2:
            raise ValueError(f"{name}: interval95 is not two numbers")
        median, best = (NUMBER.read(entry, key) for key in ("median", "best"))
        if not median or not best:
            raise ValueError(f"{name} is 0")
        bounds = [NUMBER.check(bound, f"{name}: interval95") for bound in interval or ()]
        return cls(median, (bounds[0], bounds[1]) if bounds else None, best)


def _median(figure: Figure) -> float:
    return figure.median


def best(figure: Figure) -> float:
    """Return the best sample, which nothing disturbed."""
    return figure.best


Statistic: TypeAlias = Callable[[Figure], float]
"""What of a figure goes into a matrix."""


class Link(NamedTuple):
    """What was measured of one pair of ranks, the lower first."""

    ranks: tuple[int, int]
    latency_us: Figure
    """Half of a round trip, so the same in both directions."""
    gbytes_per_s: tuple[Figure, Figure]
    """From the lower rank to the higher one, and back."""


@dataclass(frozen=True)
class Links:
    """The links between ranks, or a sample of them."""

    hosts: tuple[str, ...]
    """Host of each rank."""
    nodes: Groups
    """The ranks that share memory, as MPI says."""
    nbytes: int
    """Of the messages that gave the rates."""
    links: tuple[Link, ...]
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.hosts)

    @property
    def pairs(self) -> int:
        """The number of pairs that there are, measured or not."""
        return self.size * (self.size - 1) // 2

    def latencies(self, of: Statistic = _median) -> Array:
        """Return the latency of each pair in us, shape (size, size); nan where not measured."""
        matrix = np.full((self.size, self.size), np.nan)
        for (a, b), latency, _ in self.links:
            matrix[a, b] = matrix[b, a] = of(latency)
        return matrix

    def rates(self, of: Statistic = _median) -> Array:
        """Return the rates in GB/s, shape (from, to); nan where not measured."""
        matrix = np.full((self.size, self.size), np.nan)
        for (a, b), _, (there, back) in self.links:
            matrix[a, b], matrix[b, a] = of(there), of(back)
        return matrix

    def document(self) -> dict[str, Any]:
        """Return what stands in a JSON file."""
        return {
            "schema": SCHEMA,
            "environment": dict(self.environment),
            "hosts": list(self.hosts),
            "nodes": [list(node) for node in self.nodes],
            "nbytes": self.nbytes,
            "links": [
                {
                    "ranks": list(link.ranks),
                    "latency_us": link.latency_us.document(),
                    "GBps": [figure.document() for figure in link.gbytes_per_s],
                }
                for link in self.links
            ],
        }


def parse(text: str, source: str) -> Links:
    """Return the links that a JSON document holds. `source` names it in errors.

    Raises UsageError for what is not JSON, not ours, of a newer schema, or damaged.
    """
    document = load(text, source, SCHEMA, "links of mpiring topology measure")
    try:
        hosts = tuple(TEXT.check(host, "hosts") for host in SEQUENCE.read(document, "hosts"))
        if not hosts:
            raise ValueError("hosts is empty")
        nodes = [_ranks(n, "nodes", len(hosts)) for n in SEQUENCE.read(document, "nodes")]
        if sorted(chain.from_iterable(nodes)) != list(range(len(hosts))):
            raise ValueError("nodes is not each rank once")
        links = SEQUENCE.read(document, "links")
        return Links(
            hosts,
            tuple(nodes),
            POSITIVE.read(document, "nbytes"),
            tuple(_link(link, f"links[{i}]", len(hosts)) for i, link in enumerate(links)),
            MAPPING.read(document, "environment"),
        )
    except ValueError as error:
        raise UsageError(f"{source}: damaged: {error}") from None


def _link(entry: Any, place: str, size: int) -> Link:
    document = MAPPING.check(entry, place)
    ranks = _ranks(document.get("ranks"), f"{place}: ranks", size)
    rates = SEQUENCE.read(document, "GBps")
    if len(ranks) != 2 or len(rates) != 2 or ranks[0] >= ranks[1]:
        raise ValueError(f"{place} is not of two ranks, the lower first, with two rates")
    latency = Figure.from_document(document.get("latency_us"), f"{place}: latency_us")
    there, back = (Figure.from_document(rate, f"{place}: GBps") for rate in rates)
    return Link((ranks[0], ranks[1]), latency, (there, back))


def _ranks(entry: Any, name: str, size: int) -> tuple[int, ...]:
    return tuple(
        WHOLE._replace(most=size - 1).check(rank, name) for rank in SEQUENCE.check(entry, name)
    )
