"""Links that are far worse than the others of their level, and the rank they have in common."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import NamedTuple, TypeAlias

from mpiring.clusters import OFF, LinkLevel
from mpiring.links import Figure

Direction: TypeAlias = tuple[int, int]
"""From a rank to another."""


class Outlier(NamedTuple):
    """A rank, or a pair of ranks, whose links are slow."""

    ranks: tuple[int, ...]
    way: str
    """`both`, or where one direction alone is slow `sending` or `receiving`, from the first rank's
    side."""
    quantity: str
    """`GB/s` or `us`."""
    figure: float
    level: float
    """What the other links of the level have."""

    @property
    def factor(self) -> float:
        """How many times as bad it is."""
        ratio = self.figure / self.level
        return ratio if self.quantity == "us" else 1 / ratio


def find_outliers(levels: Iterable[LinkLevel]) -> list[Outlier]:
    """Return what is more than 20 % worse than its level, the worst first.

    A link counts only if even its best sample is that far off, which nothing disturbed. Where all
    links of a rank are slow, and it has more than one, the rank is named, and otherwise each pair.
    """
    found: list[Outlier] = []
    for level in levels:
        rates: dict[Direction, Figure] = {}
        latencies: dict[Direction, Figure] = {}
        for (a, b), latency, (there, back) in level.links:
            rates[a, b], rates[b, a] = there, back
            latencies[a, b] = latencies[b, a] = latency
        found += _outliers(rates, "GB/s", level.gbytes_per_s.median)
        found += _outliers(latencies, "us", level.latency_us.median)
    return sorted(found, key=lambda outlier: -outlier.factor)


def _is_slow(figure: Figure, quantity: str, level: float) -> bool:
    if quantity == "us":
        return figure.best > (1 + OFF) * level
    return figure.best < (1 - OFF) * level


def _outliers(
    figures: Mapping[Direction, Figure], quantity: str, level: float
) -> Iterator[Outlier]:
    """Yield the outliers among figures of directions, each from a rank to another."""
    slow = {pair: f.median for pair, f in figures.items() if _is_slow(f, quantity, level)}
    explained: set[Direction] = set()
    sent_by, received_by = defaultdict(list), defaultdict(list)
    for pair in figures:
        sent_by[pair[0]].append(pair)
        received_by[pair[1]].append(pair)
    for rank in sorted({rank for pair in slow for rank in pair}):
        sent, received = sent_by[rank], received_by[rank]
        all_slow = [len(pairs) > 1 and slow.keys() >= set(pairs) for pairs in (sent, received)]
        if any(all_slow):
            way = "both" if all(all_slow) else "sending" if all_slow[0] else "receiving"
            pairs = sent * all_slow[0] + received * all_slow[1]
            explained.update(pairs)
            yield Outlier((rank,), way, quantity, median(slow[p] for p in pairs), level)
    others = slow.keys() - explained
    for a, b in sorted(others):
        both = (b, a) in others
        if a < b or not both:
            way = "both" if both else "sending"
            worst = median([slow[a, b], slow[b, a]]) if both else slow[a, b]
            yield Outlier((a, b), way, quantity, worst, level)
