"""Tree: reduce inside the nodes first, so that little crosses between them.

With P ranks in each of G nodes:

1. reduce-scatter in the node: each rank owns 1/P of its node's sum;
2. corresponding ranks of the nodes exchange their share and add: each owns 1/P of the global sum;
3. allgather in the node.

A topology with further levels does the same with the nodes of a switch, and so on upwards. What the
groups of a level do can be chosen, and so can what goes on above the last level, the top.

Rounds: 4, or 3 for two nodes, where the whole shares are swapped in one round: as many bytes as
reduce-scatter and allgather among two. Bytes sent per rank: 2(P-1)/P n inside the node and
2(G-1)/G n/P between nodes.
Cost: 2(P-1)(alpha + n/P beta) + 2(G-1)(alpha' + n/(P G) beta') + the additions.
Source: the scheme of Horovod's hierarchical allreduce (reduce-scatter in the node, allreduce
across, allgather in the node), for machines whose links inside a node are the faster ones.

All ranks of a node drive its link; with L leaders, as many as that, and P becomes L in the share
that each of them sends. With nodes of unequal size and S ranks in the smallest, an owner sends up
to (S-1)/S n + (P-1)/S n inside its node.

Long buffers go in segments, each a round behind the one before it: while one is between the nodes,
the next is reduced inside them and the last is gathered, so that the slow link is never idle.
"""

from collections.abc import Mapping
from typing import TypeVar

from mpiring.algorithms.algorithm import named
from mpiring.algorithms.hierarchical_ring import RINGS
from mpiring.algorithms.hierarchy import Inside, hierarchy
from mpiring.algorithms.phases import ALLREDUCES
from mpiring.algorithms.reduce_scatter import collect, distribute
from mpiring.errors import UsageError
from mpiring.schedule import Schedule
from mpiring.topology import Topology

T = TypeVar("T")

TOP = "top"

BETWEEN_NODES = 512 << 10
"""Bytes of a segment: long enough for a link's rate, short enough that several follow each other.
"""

INSIDE: Mapping[str, Inside] = {"reduce_scatter": Inside(collect, distribute), "ring": RINGS}
"""What the groups of a level can do."""


def tree(topology: Topology, chosen: Mapping[str, str], leaders: int | None) -> Schedule:
    """Return the schedule of the ranks of `topology`, with up to `leaders` in each group.

    `chosen` has the names of algorithms by the names of levels. By default the ranks of a group
    exchange directly. Raises UsageError for a level that is not there, or an algorithm that it
    cannot have.
    """
    levels = [level.name for level in topology.levels]
    for level in chosen:
        if level not in (*levels, TOP):
            raise UsageError(
                f"tree has no level {level!r}: the topology has {', '.join(levels)}, and {TOP} is"
                " what is above"
            )
    inside = [_named(level, chosen.get(level, "reduce_scatter"), INSIDE) for level in levels]
    top = _named(TOP, chosen[TOP], ALLREDUCES) if TOP in chosen else _across
    return hierarchy(topology, inside, top, leaders)


def _named(level: str, name: str, known: Mapping[str, T]) -> T:
    try:
        return named(name, known)
    except UsageError as error:
        raise UsageError(f"tree, level {level}: {error}") from None


def _across(size: int) -> Schedule:
    return ALLREDUCES["naive" if size == 2 else "reduce_scatter"](size)
