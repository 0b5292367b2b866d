"""Tree of two levels: reduce inside the nodes first, so that little crosses between them.

With P ranks in each of G nodes:

1. reduce-scatter in the node: each rank owns 1/P of its node's sum;
2. corresponding ranks of the nodes exchange their share and add: each owns 1/P of the global sum;
3. allgather in the node.

Rounds: 4, or 3 for two nodes, where the whole shares are swapped in one round: as many bytes as
reduce-scatter and allgather among two. Bytes sent per rank: 2(P-1)/P n inside the node and
2(G-1)/G n/P between nodes.
Cost: 2(P-1)(alpha + n/P beta) + 2(G-1)(alpha' + n/(P G) beta') + the additions.

Nodes of unequal size: the smallest node sets the number of shares S. In each node the first S
ranks own a share; the further ranks contribute to it and take the result, and do not talk to other
nodes. With S in place of P above, an owner sends up to (S-1)/S n + (P-1)/S n inside its node.
"""

from collections.abc import Iterator, Sequence

from mpiring.algorithms.naive import naive
from mpiring.algorithms.reduce_scatter import collect, distribute, reduce_scatter
from mpiring.schedule import Round, relabel


def tree(rank: int, nodes: Sequence[Sequence[int]]) -> Iterator[Round]:
    """Yield the rounds of `rank` among the ranks of `nodes`, over `shares * len(nodes)` chunks."""
    index = next(i for i, node in enumerate(nodes) if rank in node)
    node = nodes[index]
    place = node.index(rank)
    shares = tree_shares(nodes)
    width = len(nodes)  # chunks in a share: one for each node, so that the nodes can divide it up

    yield from relabel(collect(place, len(node), shares), node, width=width)
    if place < shares:
        column = [node[place] for node in nodes]
        yield from _across(index, column, place * width)
    yield from relabel(distribute(place, len(node), shares), node, width=width)


def tree_shares(nodes: Sequence[Sequence[int]]) -> int:
    """Return the number of shares that a node's sum is divided into."""
    return min(len(node) for node in nodes)


def _across(index: int, column: Sequence[int], first: int) -> Iterator[Round]:
    """Phase 2, for the share that begins at chunk `first`, among the ranks of `column`."""
    if len(column) == 2:
        return relabel(naive(index, 2), column, first, width=2)
    return relabel(reduce_scatter(index, len(column)), column, first)
