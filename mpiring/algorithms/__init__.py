"""The registry: each algorithm by name, with what it needs, as data."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType

from mpiring.algorithms.algorithm import (
    NATIVE,
    NATIVE_PERSISTENT,
    PIPELINED,
    STAGGERED,
    Algorithm,
    named,
)
from mpiring.algorithms.hierarchical_ring import hierarchical_ring
from mpiring.algorithms.multi_leader import LEADERS, multi_leader
from mpiring.algorithms.parameter_server import parameter_server
from mpiring.algorithms.phases import ALLREDUCES
from mpiring.algorithms.recursive_multiplying import recursive_multiplying
from mpiring.algorithms.segmented_ring import SEGMENT
from mpiring.algorithms.shared import shared
from mpiring.algorithms.torus_ring import torus_ring
from mpiring.algorithms.tree import BETWEEN_NODES, tree
from mpiring.options import Options
from mpiring.schedule import Schedule, reordered
from mpiring.topology import Topology

__all__ = ["ALGORITHMS", "Algorithm", "find"]


def _registry(*algorithms: Algorithm) -> Mapping[str, Algorithm]:
    names = [algorithm.name for algorithm in algorithms]
    if len(set(names)) < len(names):
        raise ValueError(f"a name is registered twice: {names}")
    known = {field.name for field in fields(Options)}
    for algorithm in algorithms:
        if unknown := algorithm.heeds - known:
            raise ValueError(f"{algorithm.name} heeds what is no option: {sorted(unknown)}")
    return MappingProxyType({algorithm.name: algorithm for algorithm in algorithms})


def _plain(name: str) -> Callable[[Topology, Options], Schedule]:
    """Return the schedule of an algorithm that heeds the number of ranks alone."""
    return lambda topology, options: ALLREDUCES[name](topology.size)


def _ring(topology: Topology, options: Options) -> Schedule:
    """Return the schedule of a ring in the order that is chosen."""
    return reordered(ALLREDUCES["ring"](topology.size), topology.ring_order(options.ring_order))


def _crossings(topology: Topology, options: Options) -> str:
    if len(topology.nodes) == 1:
        return ""
    chosen = topology.crossings(topology.ring_order(options.ring_order))
    by_rank = topology.crossings(range(topology.size))
    beside = f", {by_rank} in rank order" if by_rank != chosen else ""
    return (
        f"neighbours by {options.ring_order}: {chosen} of {topology.size} messages of a round cross"
        f" nodes{beside}"
    )


def _on_nodes(topology: Topology, options: Options) -> str:
    if len(topology.nodes) == 1:
        return "one node, so the phase between nodes is empty; a topology file can divide it"
    return _in_nodes(topology, options)


def _in_nodes(topology: Topology, options: Options) -> str:
    if len(topology.nodes) > 1 and all(len(node) == 1 for node in topology.nodes):
        return "one rank per node, so the phases inside the nodes are empty"
    return ""


_TREE = Algorithm(
    "tree",
    "reduce in the node, exchange shares between nodes, gather in the node",
    lambda topology, options: tree(topology, dict(options.tree), options.leaders),
    rounds="2 min(P-1,1) + min(G-1,2)",
    messages="L-1 + P-1 + (G-1) min(G-1,2)",
    bytes_sent="(P+L-2)/L n + 2(G-1)/G n/L",
    scratch="max(P-1, (G-1)/G, 2 min(G-1,1)/G)/L n",
    heeds=frozenset({"tree", "leaders"}),
    segment=lambda topology: BETWEEN_NODES if len(topology.nodes) > 1 else None,
    cut=STAGGERED,
    remark=_on_nodes,
)
_RING = Algorithm(
    "ring",
    "chunks go round a ring, first to be added up, then to be shared",
    _ring,
    rounds="2(N-1)",
    messages="2(N-1)",
    bytes_sent="2(N-1)/N n",
    heeds=frozenset({"ring_order"}),
    remark=_crossings,
)
_RABENSEIFNER = Algorithm(
    "rabenseifner",
    "pairs exchange halves, then halves of those, and the same way back",
    _plain("rabenseifner"),
    rounds="2 floor(lg(N)) + 2 fold(N)",
    messages="2 floor(lg(N)) + fold(N)",
    bytes_sent="(2 - 2/power(N) + fold(N)) n",
)

ALGORITHMS = _registry(
    Algorithm(
        "naive",
        "each rank takes every other rank's buffer and adds them up",
        _plain("naive"),
        rounds="1",
        messages="N-1",
        bytes_sent="(N-1) n",
        scratch="(N-1) n",
        commutative=False,
    ),
    Algorithm(
        "reduce_scatter",
        "each rank adds up one chunk, and sends it to all",
        _plain("reduce_scatter"),
        rounds="2",
        messages="2(N-1)",
        bytes_sent="2(N-1)/N n",
    ),
    _TREE,
    _RING,
    replace(
        _RING,
        name="segmented_ring",
        summary="a ring of segments, two in flight: one is reduced while the other one moves",
        segment=lambda topology: SEGMENT,
    ),
    Algorithm(
        "hierarchical_ring",
        "rings in the nodes, and rings of corresponding ranks between them",
        lambda topology, options: hierarchical_ring(
            topology.arranged(topology.ring_order(options.ring_order))
        ),
        rounds="2(P-1) + 2(G-1)",
        messages="2(P-1) + 2(G-1)",
        bytes_sent="2(P-1)/P n + 2(G-1)/G n/P",
        heeds=frozenset({"ring_order"}),
        remark=_on_nodes,
    ),
    Algorithm(
        "torus_ring",
        "rings along the rows and the columns of a grid, both at a time",
        lambda topology, options: reordered(
            torus_ring(topology.size, options.torus), topology.ring_order(options.ring_order)
        ),
        rounds="2(X-1) + 2(Y-1)",
        messages="(2(X-1) + 2(Y-1)) min(X,Y,2)",
        bytes_sent="2(N-1)/N n",
        heeds=frozenset({"torus", "ring_order"}),
    ),
    Algorithm(
        "multi_leader",
        "a few ranks of each node add up shares, and reduce them between nodes",
        lambda topology, options: multi_leader(topology, options.leaders or LEADERS),
        rounds="2 min(P-1,1) + 2 floor(lg(G)) + 2 fold(G)",
        messages="L-1 + P-1 + 2 floor(lg(G)) + fold(G)",
        bytes_sent="(P+L-2)/L n + (2 - 2/power(G) + fold(G)) n/L",
        scratch="max(1,(P-1)/L) n",
        heeds=frozenset({"leaders"}),
        leaders=LEADERS,
        remark=_on_nodes,
    ),
    Algorithm(
        "parameter_server",
        "one rank takes every other rank's buffer, adds them up, and sends the result",
        lambda topology, options: parameter_server(topology.size, options.root),
        rounds="2",
        messages="N-1",
        bytes_sent="(N-1) n",
        scratch="(N-1) n",
        heeds=frozenset({"root"}),
        commutative=False,
    ),
    Algorithm(
        "binomial_tree",
        "half of the ranks send all they have to the other half, and so on, and back",
        _plain("binomial_tree"),
        rounds="2 ceil(lg(N))",
        messages="ceil(lg(N))",
        bytes_sent="ceil(lg(N)) n",
        cut=PIPELINED,
        commutative=False,
    ),
    Algorithm(
        "double_binary_tree",
        "each half of the buffer up and down a tree of its own, segment by segment",
        _plain("double_binary_tree"),
        rounds="2 ceil(lg(N))",
        messages="min(N,4)",
        bytes_sent="min(N,4)/2 n",
        segment=lambda topology: SEGMENT,
        cut=PIPELINED,
    ),
    Algorithm(
        "recursive_doubling",
        "pairs exchange all they have, then pairs of pairs, and so on",
        _plain("recursive_doubling"),
        rounds="floor(lg(N)) + 2 fold(N)",
        messages="floor(lg(N)) + fold(N)",
        bytes_sent="(floor(lg(N)) + fold(N)) n",
        commutative=False,
    ),
    Algorithm(
        "recursive_multiplying",
        "groups of k exchange all they have, then k groups of those, and so on",
        lambda topology, options: recursive_multiplying(topology.size, options.radix),
        rounds="levels(N,k) + 2 fold(N,k)",
        messages="peers(N,k) + fold(N,k)",
        bytes_sent="(peers(N,k) + fold(N,k)) n",
        scratch="max(1,min(N,k)-1) n",
        heeds=frozenset({"radix"}),
        commutative=False,
    ),
    _RABENSEIFNER,
    replace(
        _RABENSEIFNER,
        name="swing",
        summary="as rabenseifner, with peers that are near each other on a ring",
        schedule=_plain("swing"),
    ),
    replace(
        _TREE,
        name="shared",
        summary="tree, with loads and stores inside the nodes in place of messages",
        schedule=lambda topology, options: shared(topology, dict(options.tree), options.leaders),
        scratch="max((G-1)/G, 2 min(G-1,1)/G)/L n",
        remark=_in_nodes,
    ),
    Algorithm(
        "auto",
        "whatever was fastest where it was measured, by a table of rules",
        schedule=None,
        rounds="as picked",
        bytes_sent="as picked",
        commutative=False,
    ),
    Algorithm(
        NATIVE_PERSISTENT,
        "the MPI library's own MPI_Allreduce_init, made once and started again and again",
        schedule=None,
        rounds="the library's",
        bytes_sent="the library's",
        commutative=False,
    ),
    Algorithm(
        NATIVE,
        "the MPI library's own MPI_Allreduce",
        schedule=None,
        rounds="the library's",
        bytes_sent="the library's",
        commutative=False,
    ),
)
"""Every algorithm by name, in the order in which they are listed and measured."""


def find(name: str) -> Algorithm:
    """Return the algorithm called `name`, or raise UsageError with the nearest name."""
    return named(name, ALGORITHMS)
