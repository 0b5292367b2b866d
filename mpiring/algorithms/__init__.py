"""The registry: each algorithm by name, with what it needs, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from mpiring.algorithms.naive import naive
from mpiring.algorithms.reduce_scatter import reduce_scatter
from mpiring.algorithms.ring import ring
from mpiring.algorithms.tree import tree, tree_shares
from mpiring.errors import UsageError
from mpiring.schedule import Rounds
from mpiring.topology import Topology


@dataclass(frozen=True)
class Algorithm:
    """An allreduce algorithm.

    `rounds` and `bytes_sent` are closed forms for the reader, in n bytes per rank, N ranks, P ranks
    per node and G nodes. `schedule(rank, topology)` yields the rounds of a rank over
    `chunks(topology)` chunks. `native` has no schedule: its one step is the MPI library's own call.
    """

    name: str
    summary: str
    rounds: str
    bytes_sent: str
    schedule: Callable[[int, Topology], Rounds] | None
    chunks: Callable[[Topology], int] = lambda topology: topology.size
    commutative: bool = True
    """Whether the operation has to commute."""
    remark: Callable[[Topology], str] = lambda topology: ""
    """What a reader has to know where a topology leaves only part of the algorithm."""

    @property
    def needs(self) -> str:
        """The preconditions in words."""
        return "an operation that commutes" if self.commutative else "nothing"


def _registry(*algorithms: Algorithm) -> Mapping[str, Algorithm]:
    names = [algorithm.name for algorithm in algorithms]
    if len(set(names)) < len(names):
        raise ValueError(f"a name is registered twice: {names}")
    return MappingProxyType({algorithm.name: algorithm for algorithm in algorithms})


def _tree_remark(topology: Topology) -> str:
    if len(topology.nodes) == 1:
        return "one node, so the phase between nodes is empty; a topology file can divide it"
    if all(len(node) == 1 for node in topology.nodes):
        return "one rank per node, so the phases inside the nodes are empty"
    return ""


ALGORITHMS = _registry(
    Algorithm(
        "naive",
        "each rank takes every other rank's buffer and adds them up",
        rounds="1, up to N-1 if long",
        bytes_sent="(N-1) n",
        schedule=lambda rank, topology: naive(rank, topology.size),
        chunks=lambda topology: 1,
        commutative=False,
    ),
    Algorithm(
        "reduce_scatter",
        "each rank adds up one chunk, and sends it to all",
        rounds="2",
        bytes_sent="2(N-1)/N n",
        schedule=lambda rank, topology: reduce_scatter(rank, topology.size),
    ),
    Algorithm(
        "tree",
        "reduce in the node, exchange shares between nodes, gather in the node",
        rounds="4 (3 if G = 2, 2 if G = 1)",
        bytes_sent="2(P-1)/P n + 2(G-1)/G n/P",
        schedule=lambda rank, topology: tree(rank, topology.nodes),
        chunks=lambda topology: tree_shares(topology.nodes) * len(topology.nodes),
        remark=_tree_remark,
    ),
    Algorithm(
        "ring",
        "chunks go round a ring, first to be added up, then to be shared",
        rounds="2(N-1)",
        bytes_sent="2(N-1)/N n",
        schedule=lambda rank, topology: ring(rank, topology.size),
    ),
    Algorithm(
        "native",
        "the MPI library's own MPI_Allreduce",
        rounds="the library's",
        bytes_sent="the library's",
        schedule=None,
        commutative=False,
    ),
)
"""Every algorithm by name, in the order in which they are listed and measured."""


def find(name: str) -> Algorithm:
    """Return the algorithm called `name`, or raise UsageError with the nearest name."""
    if isinstance(name, str) and name in ALGORITHMS:
        return ALGORITHMS[name]
    near = get_close_matches(str(name), ALGORITHMS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(ALGORITHMS)}"
    raise UsageError(f"unknown algorithm {name!r}: {hint}")
