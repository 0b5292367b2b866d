"""`allreduce`, and the collectives that its phases are: what a program calls.

Each call has a form with `_init`, which prepares it to be run again and again.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy.typing as npt
from mpi4py import MPI

from mpiring import arrays, built_in, executor, native, operations
from mpiring.agreement import agree, together
from mpiring.algorithms import find
from mpiring.algorithms.algorithm import Algorithm, named
from mpiring.algorithms.phases import ALLGATHERS, BCASTS, REDUCE_SCATTERS
from mpiring.arrays import Buffers, Combine, DType
from mpiring.communicator import Private, private
from mpiring.decision import (
    AUTO,
    NATIVE_PICK,
    NODE_SHARED,
    ORDINARY,
    Pick,
    Situation,
    Table,
    choose,
)
from mpiring.errors import MpiringError, Unsupported, UsageError
from mpiring.executor import Plan
from mpiring.machine import library_name, thread_level
from mpiring.node_memory import FOREIGN, place_of
from mpiring.node_rounds import Direct, NodeRounds, Staged
from mpiring.options import DEFAULTS, Options, whole_number
from mpiring.schedule import Schedule
from mpiring.topology import Topology

Prepared: TypeAlias = executor.Prepared | native.Prepared

STAND_INS = (NATIVE_PICK, Pick("ring"), Pick("recursive_doubling"))
"""For a pick that cannot run. The library lacks some dtypes; ring needs an operation that commutes.
"""


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
    ours = private(comm)
    kind = _kind(ours, sendbuf, recvbuf) if algorithm == AUTO else ORDINARY
    asked = (sendbuf, recvbuf, op, algorithm, topology, options, decision)
    return _plan(ours, lambda ours: _allreduce(ours, kind, *asked))


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
    terms = {"collective": "empty"}
    shape, dtype = together(ours.comm, lambda: arrays.shape_and_dtype(shape, dtype), terms)
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

    def request(ours: Private) -> _Request:
        rank, size = ours.comm.rank, ours.comm.size
        schedule = named(algorithm, REDUCE_SCATTERS)(size)
        buffers = arrays.reduce_scatter_buffers(sendbuf, recvbuf, rank, size)
        combine, commutes = _reduction(op, buffers.work.dtype)
        if not commutes:
            raise UsageError("reduce_scatter needs an operation that commutes")
        prepared = executor.Prepared(
            algorithm, schedule, rank, buffers, combine, wanted=(rank,), whole=True
        )
        return _Request(
            prepared, _terms("reduce_scatter", algorithm, buffers, op=operations.describe(op))
        )

    return _plan(private(comm), request)


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

    def request(ours: Private) -> _Request:
        rank, size = ours.comm.rank, ours.comm.size
        schedule = named(algorithm, ALLGATHERS)(size)
        in_place = sendbuf is MPI.IN_PLACE
        buffers = arrays.allgather_buffers(sendbuf, recvbuf, in_place, rank, size)
        prepared = executor.Prepared(algorithm, schedule, rank, buffers)
        return _Request(prepared, _terms("allgather", algorithm, buffers))

    return _plan(private(comm), request)


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

    def request(ours: Private) -> _Request:
        rank, size = ours.comm.rank, ours.comm.size
        number = whole_number(root)
        if number is None:
            raise Unsupported(f"root is of type {type(root).__name__}, not a whole number")
        if not 0 <= number < size:
            raise UsageError(f"root is {number}, the job has ranks 0 to {size - 1}")
        schedule = named(algorithm, BCASTS)(size, number)
        buffers = arrays.bcast_buffers(buffer)
        prepared = executor.Prepared(algorithm, schedule, rank, buffers)
        return _Request(prepared, _terms("bcast", algorithm, buffers, root=str(number)))

    return _plan(private(comm), request)


class _Request(NamedTuple):
    """The arguments of one rank, checked as far as it can without the others."""

    prepared: Prepared | None
    """None where this rank cannot: then `refusal` says why."""
    terms: Mapping[str, str]
    """What all ranks have to have in common."""
    options: Options = DEFAULTS
    why: str = ""
    """What was picked and by which rule, where that was left to `auto`."""
    places: Sequence[int] = ()
    """Where in shared memory the buffers are, two numbers each (see `place_of`)."""
    refusal: MpiringError | None = None
    otherwise: "Callable[[Exception, Private], _Request] | None" = None
    """What is asked for instead where `auto` has picked what is impossible, on any rank."""

    @property
    def pieces(self) -> int:
        """In how many pieces this rank needs the buffer."""
        return self.prepared.pieces if self.prepared else 0


def _kind(ours: Private, *given: Any) -> str:
    """Return the kind of buffers that `auto` goes by: node-shared only if they are so on all ranks.

    Collective where there are such arrays at all.
    """
    if ours.windows is None:
        return ORDINARY
    elsewhere = any(
        min(place_of(array, ours.windows)) < 0 for array in given if array is not MPI.IN_PLACE
    )
    terms = {"collective": "allreduce", "algorithm": AUTO}
    anywhere, _ = agree(ours.comm, None, terms, (elsewhere, 0))
    return ORDINARY if anywhere else NODE_SHARED


def _plan(ours: Private, make: Callable[[Private], _Request]) -> Plan:
    """Return the plan of what this rank asks for, once all ranks have agreed on it."""
    try:
        request = make(ours)
        numbers = (request.pieces, request.prepared is None)  # which walks all rounds
    except Exception as error:
        agree(ours.comm, error)
        raise AssertionError("an error on this rank was agreed on as none") from error
    pieces, refused = agree(ours.comm, None, request.terms, numbers)
    if refused and request.otherwise:
        refusals = ours.comm.allgather(request.refusal)
        return _plan(ours, partial(request.otherwise, next(filter(None, refusals))))
    prepared = request.prepared
    assert prepared is not None
    tag = next(ours.tags)

    def bind() -> Plan:
        if isinstance(prepared, native.Prepared):
            return prepared.bind(ours.comm, tag, pieces)
        node = _node_rounds(ours, prepared, request.places)
        return prepared.bind(ours.comm, tag, pieces, node)

    try:
        plan = together(ours.comm, bind)
    except Exception as raised:  # on all ranks, as where a node has too little shared memory
        if request.otherwise is None:
            raise
        return _plan(ours, partial(request.otherwise, raised))
    plan.options = request.options
    plan.remark = "; ".join(filter(None, (request.why, plan.remark)))
    return plan


def _node_rounds(
    ours: Private, prepared: executor.Prepared, places: Sequence[int]
) -> NodeRounds | None:
    """Return what carries out the rounds inside this rank's node, if messages do not. Collective.

    That is direct where the buffers of all its ranks are in shared windows; `places` says where
    those of this rank are.
    """
    groups = prepared.schedule.memory
    if not groups:
        return None
    barrier, buffers, windows = ours.barrier(groups), prepared.buffers, ours.windows
    group = prepared.schedule.group_of(ours.comm.rank)
    told = barrier.tell(places) if windows else []
    if windows is None or min(map(min, told)) < 0:
        if len(group) > 1:
            barrier.make_stage()
        return Staged(barrier, group, buffers, prepared.combine)
    contributions, works = (
        [
            windows.view(rank, numbers[which : which + 2], buffers.work)
            for rank, numbers in zip(group, told, strict=True)
        ]
        for which in (0, 2)
    )
    return Direct(barrier, group, contributions, works, prepared.combine)


def _allreduce(
    ours: Private,
    kind: str,
    sendbuf: Any,
    recvbuf: Any,
    op: Any,
    name: str,
    topology: Topology | None,
    options: Options,
    decision: Table | None,
    refusal: Exception | None = None,
) -> _Request:
    """Read the arguments; with `refusal`, why what `auto` would pick is impossible."""
    given = topology is not None
    topology = topology if topology is not None else ours.topology
    if not isinstance(topology, Topology):
        raise Unsupported(f"topology is of type {type(topology).__name__}, not a Topology")
    if not isinstance(options, Options):
        raise Unsupported(f"options is of type {type(options).__name__}, not Options")
    if topology.size != ours.comm.size:
        raise UsageError(f"the topology has {topology.size} ranks, comm has {ours.comm.size}")
    find(name).check_heeds(options)
    buffers = arrays.buffers(sendbuf, recvbuf, in_place=sendbuf is MPI.IN_PLACE)
    combine, commutes = _reduction(op, buffers.work.dtype)
    places = [
        number
        for array in (buffers.contribution, buffers.work)
        for number in place_of(array, ours.windows)
    ]

    def prepare(pick: Pick) -> Prepared:
        algorithm, work = find(pick.algorithm), buffers.work
        if algorithm.commutative and not commutes:
            raise UsageError(f"{algorithm.name} needs an operation that commutes")
        if pick.options.segment and not commutes:
            raise UsageError("segments need an operation that commutes")
        if algorithm.schedule is None:
            return native.FORMS[algorithm.name](op, buffers)
        schedule = _scheduled(algorithm, topology, pick.options, work.size, work.itemsize)
        if group := schedule.group_of(ours.comm.rank):
            if FOREIGN in places:
                raise UsageError("an array is in shared memory of another communicator")
            _check_memory(ours.topology, group)
        return executor.Prepared(
            algorithm.name,
            schedule,
            ours.comm.rank,
            buffers,
            combine,
            whole=not commutes,
            rendezvous=pick.options.rendezvous,
            remark=algorithm.remark(topology, pick.options),
        )

    prepared: Prepared | None = None
    refused: MpiringError | None = None
    if name == AUTO:
        tables = _tables(decision if decision is not None else ours.decision)
        work = buffers.work
        situation = Situation.of(topology, library_name(), work.itemsize, kind, thread_level())
        pick, reason = choose(tables, situation, work.nbytes)
        why = f"{pick}, {reason}"
        if refusal is None:
            try:
                prepared = prepare(pick)
            except MpiringError as error:
                refused = error
        else:
            stand_in, prepared = _stand_in(prepare, refusal)
            why = f"{stand_in}, since {why}, cannot run: {refusal}"
            pick = stand_in
        # Some picks need all ranks to be alike in this, so that they are is no matter of the size.
        of_the_pick = {"in place": str(buffers.in_place)}
    else:
        pick, why = Pick(name, options), ""
        prepared = prepare(pick)
        of_the_pick = dict(prepared.terms)
    terms = _terms(
        "allreduce",
        f"{AUTO}: {pick}" if name == AUTO else name,
        buffers,
        op=operations.describe(op),
        topology=str(topology.levels) if given else "detected",
        tour=str(topology.tour) if given else "detected",
        options=str(options) or "the defaults",
        **of_the_pick,
    )
    request = _Request(prepared, terms, pick.options, why, places, refused)
    if name != AUTO or refusal is not None:
        return request
    asked = (sendbuf, recvbuf, op, name, topology if given else None, options, decision)
    return request._replace(otherwise=lambda error, ours: _allreduce(ours, kind, *asked, error))


@lru_cache(maxsize=32)
def _scheduled(
    algorithm: Algorithm, topology: Topology, options: Options, count: int, itemsize: int
) -> Schedule:
    """Return a schedule: the same one to each plan of a kind, as `allreduce` makes them."""
    return algorithm.scheduled(topology, options, count, itemsize)


def _check_memory(detected: Topology, group: Sequence[int]) -> None:
    """Raise UsageError where this rank's group has ranks that share no memory with each other."""
    node = next(node for node in detected.nodes if group[0] in node)
    for rank in group:
        if rank not in node:
            raise UsageError(
                f"ranks {group[0]} and {rank} are on one node by the topology, and share no memory"
            )


def _tables(decision: Any) -> tuple[Table, ...]:
    """Return the tables that `auto` goes by, or raise what is wrong with the one to begin with."""
    if decision is None:
        return (built_in.table(),)
    if isinstance(decision, MpiringError):
        raise decision
    if not isinstance(decision, Table):
        raise Unsupported(f"decision is of type {type(decision).__name__}, not a Table")
    return decision, built_in.table()


def _stand_in(prepare: Callable[[Pick], Prepared], refusal: Exception) -> tuple[Pick, Prepared]:
    """Return what stands in for a pick that cannot run. Raises the refusal where nothing can."""
    for pick in STAND_INS:
        with suppress(MpiringError):
            return pick, prepare(pick)
    raise refusal


def _reduction(op: Any, dtype: DType) -> tuple[Combine, bool]:
    """Return what combines arrays by `op`, and whether that commutes. Raises Unsupported."""
    if not isinstance(op, MPI.Op):
        raise Unsupported(f"op is of type {type(op).__name__}, not an MPI operation")
    combine = operations.combine_for(op, dtype)  # first: what is no operation cannot be asked
    return combine, op.Is_commutative()


@cache
def _dtype_in_words(dtype: DType) -> str:
    return dtype.name + ("" if dtype.isnative else ", bytes swapped")


def _terms(collective: str, algorithm: str, buffers: Buffers, **others: str) -> dict[str, str]:
    dtype = buffers.work.dtype
    return {
        "collective": collective,
        "algorithm": algorithm,
        "dtype": _dtype_in_words(dtype),
        "count": str(buffers.work.size),
        **others,
    }
