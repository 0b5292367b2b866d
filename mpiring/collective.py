"""`allreduce` and `allreduce_init`: what a program calls."""

from typing import Any

from mpi4py import MPI

from mpiring import executor, native, operations
from mpiring.agreement import agree, together
from mpiring.algorithms import find
from mpiring.arrays import buffers
from mpiring.communicator import Private, private
from mpiring.errors import Unsupported, UsageError
from mpiring.executor import Plan
from mpiring.topology import Topology


def allreduce(
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op = MPI.SUM,
    *,
    comm: MPI.Intracomm = MPI.COMM_WORLD,
    algorithm: str = "ring",
    topology: Topology | None = None,
) -> None:
    """Reduce `sendbuf` of all ranks by `op`, and leave the result in `recvbuf` of every rank.

    `sendbuf` and `recvbuf` are numpy arrays of the same number of elements and the same dtype on
    all ranks: integers, floats, complex numbers, truth values, or an ml_dtypes type. They may have
    any shape and strides; elements correspond in C order. `sendbuf` is not changed; it may be
    `MPI.IN_PLACE` or `recvbuf` itself to reduce in place.

    `op` is a predefined operation, with numpy's results, or a user-defined one, which acts element
    by element if it commutes; one that does not commute gets whole buffers in rank order, from the
    algorithms that allow it. All ranks end bitwise equal; results on other numbers of ranks, or of
    other algorithms, may differ in the last bits.

    `algorithm` is a name in `mpiring.ALGORITHMS`; `topology` by default the nodes that MPI finds.

    Collective over `comm`. In a loop over the same buffers, `allreduce_init` saves the preparation.
    What is wrong on any rank is raised on all of them: `Disagreement` where ranks ask for different
    things, `Unsupported` (a TypeError) for an array, dtype or operation that cannot be reduced,
    `UsageError` (a ValueError) for any other unmet precondition.
    """
    with allreduce_init(
        sendbuf, recvbuf, op, comm=comm, algorithm=algorithm, topology=topology
    ) as plan:
        plan()


def allreduce_init(
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op = MPI.SUM,
    *,
    comm: MPI.Intracomm = MPI.COMM_WORLD,
    algorithm: str = "ring",
    topology: Topology | None = None,
) -> Plan:
    """Prepare an `allreduce` of these buffers; the plan can be run as often as wanted.

    Each run reads what is then in `sendbuf`. The plan holds at most one buffer, or one page, of
    scratch, and a contiguous copy of each buffer that is not contiguous; `naive` with an operation
    that does not commute holds the buffers of all other ranks. Arguments and errors are those of
    `allreduce`; that all ranks agree is checked here, not in each run.
    """
    ours = private(comm)
    request: _Request | None = None
    error: Exception | None = None
    try:
        request = _Request(sendbuf, recvbuf, op, ours, algorithm, topology)
    except Exception as raised:
        error = raised
    if request is None:
        agree(ours.comm, error)
        raise AssertionError("an error on this rank was agreed on as none")
    pieces = agree(ours.comm, None, request.terms, request.prepared.pieces)
    tag = next(ours.tags)
    return together(ours.comm, lambda: request.prepared.bind(ours.comm, tag, pieces))


class _Request:
    """The arguments of one rank, checked as far as it can without the others.

    `terms` is what all ranks have to have in common.
    """

    def __init__(
        self,
        sendbuf: Any,
        recvbuf: Any,
        op: Any,
        ours: Private,
        name: str,
        topology: Topology | None,
    ) -> None:
        algorithm = find(name)
        given = topology is not None
        topology = topology if topology is not None else ours.topology
        if not isinstance(topology, Topology):
            raise Unsupported(f"topology is of type {type(topology).__name__}, not a Topology")
        if topology.size != ours.comm.size:
            raise UsageError(f"the topology has {topology.size} ranks, comm has {ours.comm.size}")
        if not isinstance(op, MPI.Op):
            raise Unsupported(f"op is of type {type(op).__name__}, not an MPI operation")
        arrays = buffers(sendbuf, recvbuf, in_place=sendbuf is MPI.IN_PLACE)
        dtype = arrays.work.dtype
        combine = operations.combine_for(op, dtype)
        commutes = op.Is_commutative()
        if algorithm.commutative and not commutes:
            raise UsageError(f"{name} needs an operation that commutes")

        self.prepared: executor.Prepared | native.Prepared
        if algorithm.schedule is None:
            self.prepared = native.Prepared(op, arrays)
        else:
            self.prepared = executor.Prepared(
                algorithm, topology, ours.comm.rank, arrays, combine, whole=not commutes
            )
        self.terms = {
            "algorithm": name,
            "op": operations.describe(op),
            "dtype": dtype.name + ("" if dtype.isnative else ", bytes swapped"),
            "count": str(arrays.work.size),
            "topology": str(topology.levels) if given else "detected",
            **self.prepared.terms,
        }
