"""The plan of an allreduce: of the algorithm that is named, or of what `auto` picks by a table.

A pick is a wish: an algorithm may be impossible here, for a reason that shows on one rank alone, or
only when the plan is made. Then all ranks go on with the first stand-in that is possible on all.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

from mpi4py import MPI

from mpiring import arrays, built_in, executor, native, operations
from mpiring.agreement import agree
from mpiring.algorithms import find
from mpiring.algorithms.algorithm import Algorithm
from mpiring.communicator import Private
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
from mpiring.implementation import library_name, thread_level
from mpiring.node_memory import FOREIGN, place_of
from mpiring.options import Options
from mpiring.plan import Plan
from mpiring.request import Prepared, Request, reduction, settled, terms
from mpiring.schedule import Schedule
from mpiring.topology import Topology

STAND_INS = (NATIVE_PICK, Pick("ring"), Pick("recursive_doubling"))
"""For a pick that cannot run. The library lacks some dtypes; ring needs an operation that commutes.
"""
CROWDED = Table((), f"{built_in.NAME} for ranks that outnumber their cores")
"""Which has nothing: they wait for each other's turn rather than for bytes."""
LONGER_THAN_A_TURN = 16 << 20
"""From so many bytes on they wait for bytes, too: moving these takes more than the milliseconds
that a scheduler lets each of them run."""
REFUSALS = (UsageError, Unsupported)
"""What an algorithm that cannot run raises."""


class Asked(NamedTuple):
    """The arguments of `allreduce` on one rank, not looked at yet."""

    sendbuf: Any
    recvbuf: Any
    op: Any
    algorithm: Any
    topology: Any
    options: Any
    decision: Any


def plan_of(ours: Private, asked: Asked) -> Plan:
    """Return the plan of this allreduce, the same one on all ranks. Collective.

    What is wrong on any rank is raised on all of them (see `agree`).
    """
    if asked.algorithm != AUTO:
        return settled(ours, partial(_named, ours, asked))
    request = partial(_picked, ours, asked, _kind(ours, asked))
    try:
        return settled(ours, request)
    except REFUSALS as refusal:  # on all ranks alike
        # If it is the arguments that are wrong, all stand-ins are refused as well.
        for stand_in in STAND_INS:
            with suppress(*REFUSALS):
                return settled(ours, partial(request, stand_in, refusal))
        raise


def _named(ours: Private, asked: Asked) -> Request:
    """Ask for the algorithm that is named."""
    checked = _Checked(ours, asked)
    pick = Pick(asked.algorithm, asked.options)
    prepared = checked.prepared(pick)
    return checked.request(prepared, pick, asked.algorithm, **prepared.terms)


def _picked(
    ours: Private,
    asked: Asked,
    kind: str,
    stand_in: Pick | None = None,
    refusal: Exception | None = None,
) -> Request:
    """Ask for what the table picks for this `kind` of buffers, or for the `stand_in` of it."""
    checked = _Checked(ours, asked)
    decision = asked.decision if asked.decision is not None else ours.decision
    work = checked.buffers.work
    waits = ours.crowded and work.nbytes < LONGER_THAN_A_TURN
    tables = _tables(decision, CROWDED if waits else built_in.table())
    situation = Situation.of(checked.topology, library_name(), work.itemsize, kind, thread_level())
    pick, reason = choose(tables, situation, work.nbytes)
    why = f"{pick}, {reason}"
    if stand_in is not None:
        why = f"{stand_in}, since {why}, cannot run: {refusal}"
    # Some picks need all ranks to be alike in this, so that they are is no matter of the size.
    alike = {"in place": str(checked.buffers.in_place)}
    runs = stand_in or pick
    request = checked.request(checked.prepared(runs), runs, f"{AUTO}: {pick}", **alike)
    return request._replace(why=why)


class _Checked:
    """Arguments with which one rank could run some algorithm, as far as it knows."""

    def __init__(self, ours: Private, asked: Asked) -> None:
        """Raise UsageError or Unsupported where no algorithm could."""
        self.ours = ours
        self.asked = asked
        topology, options = asked.topology, asked.options
        topology = topology if topology is not None else ours.topology
        if not isinstance(topology, Topology):
            raise Unsupported(f"topology is of type {type(topology).__name__}, not a Topology")
        if not isinstance(options, Options):
            raise Unsupported(f"options is of type {type(options).__name__}, not Options")
        if topology.size != ours.comm.size:
            raise UsageError(f"the topology has {topology.size} ranks, comm has {ours.comm.size}")
        find(asked.algorithm).check_heeds(options)
        in_place = asked.sendbuf is MPI.IN_PLACE
        self.topology = topology
        self.buffers = arrays.buffers(asked.sendbuf, asked.recvbuf, in_place=in_place)
        self.combine, self.commutes = reduction(asked.op, self.buffers.work.dtype)

    @cached_property
    def places(self) -> Sequence[int]:
        """Where the buffers are in shared memory, two numbers each."""
        both = (self.buffers.contribution, self.buffers.work)
        return [number for array in both for number in place_of(array, self.ours.windows)]

    def prepared(self, pick: Pick) -> Prepared:
        """Return what runs the pick. Raises UsageError or Unsupported where it cannot run."""
        algorithm, work = find(pick.algorithm), self.buffers.work
        if algorithm.commutative and not self.commutes:
            raise UsageError(f"{algorithm.name} needs an operation that commutes")
        if pick.options.segment and not self.commutes:
            raise UsageError("segments need an operation that commutes")
        if algorithm.schedule is None:
            return native.FORMS[algorithm.name](self.asked.op, self.buffers)
        schedule = _scheduled(algorithm, self.topology, pick.options, work.size, work.itemsize)
        if group := schedule.group_of(self.ours.comm.rank):
            if FOREIGN in self.places:
                raise UsageError("an array is in shared memory of another communicator")
            _check_memory(self.ours.topology, group)
        return executor.Prepared(
            algorithm.name,
            schedule,
            self.ours.comm.rank,
            self.buffers,
            self.combine,
            whole=not self.commutes,
            rendezvous=pick.options.rendezvous,
            remark=algorithm.remark(self.topology, pick.options),
        )

    def request(self, prepared: Prepared, pick: Pick, algorithm: str, **alike: str) -> Request:
        """Return the request for what is prepared: in all of this ranks have to be `alike`."""
        given = self.asked.topology is not None
        in_common = terms(
            "allreduce",
            algorithm,
            self.buffers,
            op=operations.describe(self.asked.op),
            topology=str(self.topology.levels) if given else "detected",
            tour=str(self.topology.tour) if given else "detected",
            options=str(self.asked.options) or "the defaults",
            **alike,
        )
        in_memory = isinstance(prepared, executor.Prepared) and prepared.schedule.memory
        return Request(prepared, in_common, pick.options, places=self.places if in_memory else ())


def _kind(ours: Private, asked: Asked) -> str:
    """Return the kind of buffers that `auto` goes by: node-shared only if they are so on all ranks.

    Collective where there are such arrays at all.
    """
    if ours.windows is None:
        return ORDINARY
    given = (array for array in (asked.sendbuf, asked.recvbuf) if array is not MPI.IN_PLACE)
    elsewhere = any(min(place_of(array, ours.windows)) < 0 for array in given)
    in_common = {"collective": "allreduce", "algorithm": AUTO}
    return ORDINARY if agree(ours.comm, None, in_common, elsewhere) else NODE_SHARED


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


def _tables(decision: Any, last: Table) -> tuple[Table, ...]:
    """Return the tables that `auto` goes by, or raise what is wrong with the one to begin with."""
    if decision is None:
        return (last,)
    if isinstance(decision, MpiringError):
        raise decision
    if not isinstance(decision, Table):
        raise Unsupported(f"decision is of type {type(decision).__name__}, not a Table")
    return decision, last
