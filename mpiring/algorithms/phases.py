"""Collectives that heed the number of ranks alone, by name: what others are put together from.

In a reduce-scatter and an allgather rank r owns chunk r of as many chunks as there are ranks. A
broadcast has one chunk, an allreduce as many as its algorithm says.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TypeAlias

from mpiring.algorithms.binomial_tree import binomial_bcast, binomial_tree
from mpiring.algorithms.double_binary_tree import double_binary_tree
from mpiring.algorithms.naive import naive
from mpiring.algorithms.parameter_server import flat_bcast
from mpiring.algorithms.rabenseifner import rabenseifner
from mpiring.algorithms.recursive_doubling import recursive_doubling
from mpiring.algorithms.reduce_scatter import collect, distribute, reduce_scatter
from mpiring.algorithms.ring import owning, ring, ring_allgather, ring_reduce_scatter
from mpiring.algorithms.swing import swing
from mpiring.schedule import Rounds, Schedule

Maker: TypeAlias = Callable[..., Schedule]
"""Makes a schedule from the number of ranks, and a root where there is one."""

_kept = lru_cache(maxsize=32)
"""Lets a maker return one schedule each time, so that plans find its rounds walked already."""


def _over(rounds: Callable[..., Rounds], chunks: int | None = None) -> Maker:
    """Return the maker of what yields rounds, over as many chunks as ranks if no number is given.

    `rounds` takes the rank, and then what the maker is given.
    """

    @_kept
    def make(size: int, *root: int) -> Schedule:
        return Schedule(size, chunks or size, lambda rank: rounds(rank, size, *root))

    return make


ALLREDUCES: Mapping[str, Maker] = MappingProxyType(
    {
        "naive": _over(naive, chunks=1),
        "reduce_scatter": _over(reduce_scatter),
        "ring": _over(ring),
        "binomial_tree": _over(binomial_tree, chunks=1),
        "double_binary_tree": _over(double_binary_tree, chunks=2),
        "recursive_doubling": _kept(recursive_doubling),
        "rabenseifner": _kept(rabenseifner),
        "swing": _kept(swing),
    }
)
REDUCE_SCATTERS: Mapping[str, Maker] = MappingProxyType(
    {
        "ring": _over(partial(owning, ring_reduce_scatter)),
        "direct": _over(lambda rank, size: collect(rank, size, owners=size)),
    }
)
ALLGATHERS: Mapping[str, Maker] = MappingProxyType(
    {
        "ring": _over(partial(owning, ring_allgather)),
        "direct": _over(lambda rank, size: distribute(rank, size, owners=size)),
    }
)
BCASTS: Mapping[str, Maker] = MappingProxyType(
    {"binomial_tree": _over(binomial_bcast, chunks=1), "flat": _over(flat_bcast, chunks=1)}
)
