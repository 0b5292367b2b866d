"""Multi-leader: a few ranks of each node share the work between nodes.

The ranks of a node hand each of its L leaders a share to add up; leaders of the same share in
different nodes reduce it by Rabenseifner's algorithm; and they hand the result back.

Rounds: 2, and 2 floor(lg G), and 2 to fold. Bytes sent by a leader: (P+L-2)/L n inside its node,
and what Rabenseifner's algorithm takes for n/L among G; by another rank n.
Cost: 2(P-1) alpha + 2 lg(G) alpha' + 2(P-1)/L n beta + 2(G-1)/G n/L beta' + the additions.
A long buffer runs in (P-1)/L pieces where that is more than 1, which bound a leader's scratch.
Source: Bayatpour et al., Scalable Reduction Collectives with Data Partitioning-based Multi-Leader
Design, SC 2017.

With as many leaders as ranks in a node it is `tree` with another algorithm between the nodes; with
one leader, the usual scheme of a reduction to one rank per node. It pays where more leaders than a
few would only compete for the link.
"""

from mpiring.algorithms.hierarchy import Inside, hierarchy
from mpiring.algorithms.rabenseifner import rabenseifner
from mpiring.algorithms.reduce_scatter import collect, distribute
from mpiring.schedule import Schedule
from mpiring.topology import Topology

LEADERS = 2
"""In each node, unless another number is chosen."""


def multi_leader(topology: Topology, leaders: int) -> Schedule:
    """Return the schedule of the ranks of `topology`, with up to `leaders` in each node."""
    direct = [Inside(collect, distribute) for _ in topology.levels]
    return hierarchy(topology, direct, rabenseifner, leaders)
