"""`allreduce`, and the collectives that its phases are: what a program calls.

Each call has a form with `_init`, which prepares it to be run again and again.
"""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from mpi4py import MPI

from mpiring import arrays, choice, executor, operations
from mpiring.agreement import together
from mpiring.algorithms.algorithm import named
from mpiring.algorithms.phases import ALLGATHERS, BCASTS, REDUCE_SCATTERS
from mpiring.communicator import private
from mpiring.decision import Table
from mpiring.errors import Unsupported, UsageError
from mpiring.options import DEFAULTS, Options, whole_number
from mpiring.plan import Plan
from mpiring.request import Request, reduction, settled, terms
from mpiring.topology import Topology


def allreduce(
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op = MPI.SUM,
    *,
    comm: MPI.Intracomm = MPI.COMM_WORLD,
    algorithm: str = "ring",
    topology: Topology | None = None,
    options: Options = DEFAULTS,
    decision: Table | None = None,
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

    `algorithm` is a name in `mpiring.ALGORITHMS`; `topology` by default the nodes that MPI finds;
    `options` what else the algorithm lets one choose. `auto` picks one by `decision`, by default
    the table in the file that the variable MPIRING_DECISION names, which rank 0 reads when `comm`
    is first used here; where that has no rule, or there is none, by the built-in table. It wants
    all ranks to reduce in place, or none.

    Collective over `comm`. In a loop over the same buffers, `allreduce_init` saves the preparation.
    What is wrong on any rank is raised on all of them: `Disagreement` where ranks ask for different
    things, `Unsupported` (a TypeError) for an array, dtype or operation that cannot be reduced,
    `UsageError` (a ValueError) for any other unmet precondition.
    """
    with allreduce_init(
        sendbuf,
        recvbuf,
        op,
        comm=comm,
        algorithm=algorithm,
        topology=topology,
        options=options,
        decision=decision,
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
    options: Options = DEFAULTS,
    decision: Table | None = None,
) -> Plan:
    """Prepare an `allreduce` of these buffers; the plan can be run as often as wanted.

    Each run reads what is then in `sendbuf`. The plan holds at most one buffer, or one page, of
    scratch, and a contiguous copy of each buffer that is not contiguous; with an operation that
    does not commute, as many buffers as a rank takes in one round. Arguments and errors are those
    of `allreduce`; that all ranks agree is checked here, not in each run.
    """
    asked = choice.Asked(sendbuf, recvbuf, op, algorithm, topology, options, decision)
    return choice.plan_of(private(comm), asked)


def empty(
    shape: int | Sequence[int], dtype: Any = float, *, comm: MPI.Intracomm = MPI.COMM_WORLD
) -> npt.NDArray[Any]:
    """Return an array that the other ranks of this node reach, for `allreduce` by `shared`.

    It begins as zeros, lies in an MPI-3 shared window, each rank's part near its core, and can be
    used and sliced as any numpy array. Its memory is given back after the last rank of the node has
    dropped it, when the next one is made on `comm`, or that is freed, or MPI ends.

    Collective over `comm`, on which ranks may ask for different shapes. Raises UsageError on all
    ranks where the node has too little shared memory, or a shape or dtype means nothing, and
    Unsupported for a dtype whose elements are not numbers.
    """
    ours = private(comm)
    in_common = {"collective": "empty"}
    shape, dtype = together(ours.comm, lambda: arrays.shape_and_dtype(shape, dtype), in_common)
    windows = ours.make_windows()
    return together(ours.comm, lambda: windows.empty(shape, dtype))


def reduce_scatter(
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op = MPI.SUM,
    *,
    comm: MPI.Intracomm = MPI.COMM_WORLD,
    algorithm: str = "ring",
) -> None:
    """Reduce `sendbuf` of all ranks by `op`, and leave one of its equal parts on each rank.

    `sendbuf` has as many parts of the size of `recvbuf` as there are ranks; rank r gets part r, as
    from MPI_Reduce_scatter_block. `op` has to commute. `algorithm` is `ring` or `direct`. Arrays
    and errors are as those of `allreduce`.
    """
    with reduce_scatter_init(sendbuf, recvbuf, op, comm=comm, algorithm=algorithm) as plan:
        plan()


def reduce_scatter_init(
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op = MPI.SUM,
    *,
    comm: MPI.Intracomm = MPI.COMM_WORLD,
    algorithm: str = "ring",
) -> Plan:
    """Prepare a `reduce_scatter`; the plan holds scratch of up to twice the size of `sendbuf`."""

    ours = private(comm)
    rank, size = ours.comm.rank, ours.comm.size

    def request() -> Request:
        schedule = named(algorithm, REDUCE_SCATTERS)(size)
        buffers = arrays.reduce_scatter_buffers(sendbuf, recvbuf, rank, size)
        combine, commutes = reduction(op, buffers.work.dtype)
        if not commutes:
            raise UsageError("reduce_scatter needs an operation that commutes")
        prepared = executor.Prepared(
            algorithm, schedule, rank, buffers, combine, wanted=(rank,), whole=True
        )
        in_common = terms("reduce_scatter", algorithm, buffers, op=operations.describe(op))
        return Request(prepared, in_common)

    return settled(ours, request)


def allgather(
    sendbuf: Any,
    recvbuf: Any,
    *,
    comm: MPI.Intracomm = MPI.COMM_WORLD,
    algorithm: str = "ring",
) -> None:
    """Leave `sendbuf` of all ranks in `recvbuf` of every rank, one after the other.

    `recvbuf` has as many parts of the size of `sendbuf` as there are ranks. With `MPI.IN_PLACE` for
    `sendbuf`, each rank's part is where it belongs already. `algorithm` is `ring` or `direct`.
    Arrays and errors are as those of `allreduce`.
    """
    with allgather_init(sendbuf, recvbuf, comm=comm, algorithm=algorithm) as plan:
        plan()


def allgather_init(
    sendbuf: Any,
    recvbuf: Any,
    *,
    comm: MPI.Intracomm = MPI.COMM_WORLD,
    algorithm: str = "ring",
) -> Plan:
    """Prepare an `allgather`."""

    ours = private(comm)
    rank, size = ours.comm.rank, ours.comm.size

    def request() -> Request:
        schedule = named(algorithm, ALLGATHERS)(size)
        in_place = sendbuf is MPI.IN_PLACE
        buffers = arrays.allgather_buffers(sendbuf, recvbuf, in_place, rank, size)
        prepared = executor.Prepared(algorithm, schedule, rank, buffers)
        return Request(prepared, terms("allgather", algorithm, buffers))

    return settled(ours, request)


def bcast(
    buffer: Any,
    root: int = 0,
    *,
    comm: MPI.Intracomm = MPI.COMM_WORLD,
    algorithm: str = "binomial_tree",
) -> None:
    """Leave what is in `buffer` of rank `root` in `buffer` of every rank.

    `algorithm` is `binomial_tree` or `flat`. Arrays and errors are as those of `allreduce`.
    """
    with bcast_init(buffer, root, comm=comm, algorithm=algorithm) as plan:
        plan()


def bcast_init(
    buffer: Any,
    root: int = 0,
    *,
    comm: MPI.Intracomm = MPI.COMM_WORLD,
    algorithm: str = "binomial_tree",
) -> Plan:
    """Prepare a `bcast`."""

    ours = private(comm)
    rank, size = ours.comm.rank, ours.comm.size

    def request() -> Request:
        number = whole_number(root)
        if number is None:
            raise Unsupported(f"root is of type {type(root).__name__}, not a whole number")
        if not 0 <= number < size:
            raise UsageError(f"root is {number}, the job has ranks 0 to {size - 1}")
        schedule = named(algorithm, BCASTS)(size, number)
        buffers = arrays.bcast_buffers(buffer)
        prepared = executor.Prepared(algorithm, schedule, rank, buffers)
        return Request(prepared, terms("bcast", algorithm, buffers, root=str(number)))

    return settled(ours, request)
