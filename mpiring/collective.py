"""`allreduce` and `allreduce_init`: what a program calls."""

from typing import Any

from mpi4py import MPI

from mpiring import executor, native, operations
from mpiring.agreement import agree
from mpiring.algorithms import find
from mpiring.arrays import buffers
from mpiring.chunks import Split
from mpiring.communicator import Private, private
from mpiring.errors import MpiringError, Unsupported, UsageError
from mpiring.executor import Plan, pieces, segments
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
    Raises, on all ranks together, `Disagreement` where ranks ask for different things,
    `Unsupported` (a TypeError) for an array, dtype or operation that cannot be reduced, and
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
    kept = private(comm)
    request: _Request | None = None
    error: MpiringError | None = None
    try:
        request = _Request(sendbuf, recvbuf, op, kept, algorithm, topology)
    except MpiringError as raised:
        error = raised
    agreed = agree(
        kept.comm, request.terms if request else {}, error, request.segments if request else 0
    )
    assert request is not None  # otherwise agree() has raised
    return request.plan(agreed)


class _Request:
    """The arguments of one rank, checked as far as it can without the others."""

    def __init__(
        self,
        sendbuf: Any,
        recvbuf: Any,
        op: MPI.Op,
        kept: Private,
        algorithm: str,
        topology: Topology | None,
    ) -> None:
        self.op = op
        self.kept = kept
        self.algorithm = find(algorithm)
        self.topology = topology or kept.topology
        if self.topology.size != kept.comm.size:
            raise UsageError(
                f"the topology has {self.topology.size} ranks, comm has {kept.comm.size}"
            )
        self.buffers = buffers(None if sendbuf is MPI.IN_PLACE else sendbuf, recvbuf)
        if not isinstance(op, MPI.Op):
            raise Unsupported(f"op is a {type(op).__name__}, it has to be an MPI operation")
        dtype, count = self.buffers.work.dtype, self.buffers.work.size
        self.combine = operations.combine_for(op, dtype)
        whole = not op.Is_commutative()
        if whole and self.algorithm.commutative:
            raise UsageError(f"{algorithm} needs an operation that commutes")
        self.terms = {
            "algorithm": algorithm,
            "op": operations.describe(op),
            "dtype": dtype.str if dtype.kind != "V" else dtype.name,
            "count": str(count),
            "topology": str(topology.levels) if topology else "detected",
        }
        self.segments = 1
        if self.algorithm.schedule is None:
            native.check(op, dtype)
            return
        self.rounds = tuple(self.algorithm.schedule(kept.comm.rank, self.topology))
        self.split = Split(count, self.algorithm.chunks(self.topology))
        if not whole:  # an operation that does not commute may act on more than one element
            self.segments = segments(self.rounds, self.split, dtype.itemsize)

    def plan(self, agreed_segments: int) -> Plan:
        """Bind what all ranks agreed on."""
        comm, tag = self.kept.comm, next(self.kept.tags)
        if self.algorithm.schedule is None:
            return native.bind(self.buffers, self.op, comm)
        return executor.bind(
            self.algorithm.name,
            self.algorithm.remark(self.topology),
            self.rounds,
            pieces(self.split, agreed_segments),
            self.buffers,
            self.combine,
            comm,
            tag,
        )
