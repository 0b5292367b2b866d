"""Shared: tree, with what goes on inside the nodes by loads and stores in place of messages.

The rounds are those of `tree`. Inside a node, which shares memory, each rank reduces its share
straight from its peers' memory, and stores the result into theirs: nothing is sent, received and
put down in between. Arrays have to be where the others can reach them, as those of `mpiring.empty`
are; then ranks wait for each other twice in all. Other arrays go through blocks of shared memory,
and ranks wait for each other after each block.

Rounds: as `tree`. Bytes sent per rank: as `tree`; those inside the node are loaded and stored.
Cost: inside a node, each rank loads n bytes and stores n, and waits twice for the others.
Source: Hashmi et al., Designing Efficient Shared Address Space Reduction Collectives for
Multi-/Many-cores, IPDPS 2018, on XPMEM; here on the shared windows of MPI-3.

Levels inside a node are left out: all its ranks reach each other's memory. With two leaders and
rabenseifner at the top it is `multi_leader` in memory.
"""

from collections.abc import Mapping
from dataclasses import replace

from mpiring.algorithms.tree import tree
from mpiring.errors import UsageError
from mpiring.schedule import Schedule
from mpiring.topology import Topology


def shared(topology: Topology, chosen: Mapping[str, str], leaders: int | None) -> Schedule:
    """Return the schedule of the ranks of `topology`, with up to `leaders` in each node.

    `chosen` is as in `tree`, but for the nodes, where nothing else is possible: UsageError.
    """
    outer = topology.without_inside()
    node = outer.levels[0].name
    if node in chosen:
        raise UsageError(f"shared, level {node}: memory is used there, and no algorithm to choose")
    return replace(tree(outer, chosen, leaders), memory=outer.nodes)
