"""Hierarchical ring: a ring in each node, and rings between corresponding ranks of the nodes.

The phases are those of `tree`, each by a ring; further levels of the topology get rings too.

Rounds, with P ranks in each of G nodes: 2(P-1) + 2(G-1). Bytes sent per rank: 2(P-1)/P n inside the
node and 2(G-1)/G n/P between nodes, together the lower bound.
Cost: 2(P-1)(alpha + n/P beta) + 2(G-1)(alpha' + n/(P G) beta') + the additions.
Source: Jia et al., Highly Scalable Deep Learning Training System with Mixed-Precision (2018), who
put one rank of each node in the outer ring; here all are.

In nodes larger than the smallest, the further ranks first add their buffer to an owner's.
"""

from collections.abc import Iterator

from mpiring.algorithms.hierarchy import Inside, hierarchy
from mpiring.algorithms.phases import ALLREDUCES
from mpiring.algorithms.ring import owning, ring_allgather, ring_reduce_scatter
from mpiring.schedule import Recv, Round, Schedule, Send, back
from mpiring.topology import Topology


def hierarchical_ring(topology: Topology) -> Schedule:
    """Return the schedule of the ranks of `topology`."""
    rings = [RINGS for _ in topology.levels]
    return hierarchy(topology, rings, ALLREDUCES["ring"])


def _reduce_scatter(place: int, size: int, owners: int) -> Iterator[Round]:
    yield from _help(place, size, owners)
    if place < owners:
        yield from owning(ring_reduce_scatter, place, owners)


def _allgather(place: int, size: int, owners: int) -> Iterator[Round]:
    if place < owners:
        yield from owning(ring_allgather, place, owners)
    yield from back(_help(place, size, owners))


def _help(place: int, size: int, owners: int) -> Iterator[Round]:
    """Add the buffers of the further ranks to those of the owners."""
    if place >= owners:
        yield (Send(place % owners, 0, owners),)
    elif owners < size:
        further = range(place + owners, size, owners)
        yield tuple(Recv(other, 0, owners, reduce=True) for other in further)


RINGS = Inside(_reduce_scatter, _allgather)
