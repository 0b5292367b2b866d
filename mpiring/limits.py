"""What the machine can do at best, measured beside the algorithms: copies, and links between nodes.

In a node, all ranks copy their buffer at once: an allreduce has to read and write as much. Between
nodes, every rank sends its share of the node's data to the corresponding rank of the next node, all
at once; an allreduce has to move 2(G-1)/G times as much over the same links.
"""

from collections.abc import Callable, Mapping
from functools import partial

from mpi4py import MPI

from mpiring.arrays import Array, copy, copying, raw
from mpiring.chunks import Split
from mpiring.sampling import Timed
from mpiring.topology import Groups

# The C library's copy and numpy's loop. The faster one is the limit.
COPIES: Mapping[str, Callable[[Array, Array], Timed]] = {
    "copy": partial(partial, copy),
    "vector copy": copying,
}
LINK = "link"


def limit_calls(
    comm: MPI.Intracomm, nodes: Groups, source: Array, target: Array
) -> dict[str, Timed]:
    """Return what is timed to know the limit, on the buffers of a measurement."""
    calls: dict[str, Timed] = {
        name: copying_by(target, source) for name, copying_by in COPIES.items()
    }
    if len(nodes) > 1:
        calls[LINK] = _link_call(comm, nodes, source, target)
    return calls


def limit_s(medians_s: Mapping[str, float], nodes: Groups) -> float:
    """Return the seconds that an allreduce takes at best, from the medians of `limit_calls`."""
    groups = len(nodes)
    in_node = min(medians_s[name] for name in COPIES)
    return max(in_node, medians_s.get(LINK, 0.0) * 2 * (groups - 1) / groups)


def _link_call(comm: MPI.Intracomm, nodes: Groups, source: Array, target: Array) -> Timed:
    """Send the share of this rank to the next node, and take one from the node before."""
    shares = min(map(len, nodes))
    index = next(i for i, node in enumerate(nodes) if comm.rank in node)
    place = nodes[index].index(comm.rank)
    if place >= shares:  # of a larger node: it has no counterpart
        return lambda: None
    share = Split(source.size, shares).slice(place)
    return partial(
        comm.Sendrecv,
        (raw(source[share]), MPI.BYTE),
        nodes[(index + 1) % len(nodes)][place],
        0,
        (raw(target[share]), MPI.BYTE),
        nodes[index - 1][place],
        0,
    )
