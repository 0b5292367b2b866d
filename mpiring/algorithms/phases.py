"""Collectives that heed the number of ranks alone, by name: what others are put together from.

In a reduce-scatter and an allgather rank r owns chunk r of as many chunks as there are ranks. A
broadcast has one chunk, an allreduce as many as its algorithm says.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from mpiring.algorithms.binomial_tree import binomial_bcast, binomial_tree
from mpiring.algorithms.double_binary_tree import double_binary_tree
from mpiring.algorithms.naive import naive
from mpiring.algorithms.parameter_server import flat_bcast
from mpiring.algorithms.rabenseifner import rabenseifner
from mpiring.algorithms.recursive_doubling import recursive_doubling
from mpiring.algorithms.reduce_scatter import collect, distribute, reduce_scatter
from mpiring.algorithms.ring import owning, ring, ring_allgather, ring_reduce_scatter
from mpiring.algorithms.swing import swing
from mpiring.schedule import Schedule

ALLREDUCES: Mapping[str, Callable[[int], Schedule]] = MappingProxyType(
    {
        "naive": lambda size: Schedule(size, 1, partial(naive, size=size)),
        "reduce_scatter": lambda size: Schedule(size, size, partial(reduce_scatter, size=size)),
        "ring": lambda size: Schedule(size, size, partial(ring, size=size)),
        "binomial_tree": lambda size: Schedule(size, 1, partial(binomial_tree, size=size)),
        "double_binary_tree": lambda size: Schedule(
            size, 2, partial(double_binary_tree, size=size)
        ),
        "recursive_doubling": recursive_doubling,
        "rabenseifner": rabenseifner,
        "swing": swing,
    }
)
REDUCE_SCATTERS: Mapping[str, Callable[[int], Schedule]] = MappingProxyType(
    {
        "ring": lambda size: Schedule(
            size, size, lambda rank: owning(ring_reduce_scatter, rank, size)
        ),
        "direct": lambda size: Schedule(size, size, lambda rank: collect(rank, size, size)),
    }
)
ALLGATHERS: Mapping[str, Callable[[int], Schedule]] = MappingProxyType(
    {
        "ring": lambda size: Schedule(size, size, lambda rank: owning(ring_allgather, rank, size)),
        "direct": lambda size: Schedule(size, size, lambda rank: distribute(rank, size, size)),
    }
)
BCASTS: Mapping[str, Callable[[int, int], Schedule]] = MappingProxyType(
    {
        "binomial_tree": lambda size, root: Schedule(
            size, 1, lambda rank: binomial_bcast(rank, size, root)
        ),
        "flat": lambda size, root: Schedule(size, 1, lambda rank: flat_bcast(rank, size, root)),
    }
)
