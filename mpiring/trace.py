"""Record what each rank does in one run of a plan, and when, on a clock that all ranks share."""

from mpi4py import MPI

from mpiring.arrays import copy, short_copy, vector_loop
from mpiring.chunks import Split
from mpiring.clock import GlobalClock
from mpiring.node_memory import NodeBarrier
from mpiring.node_rounds import Relay
from mpiring.plan import Call, Plan
from mpiring.schedule import Step, messages
from mpiring.timeline import RankTrace, Span

_OF_THE_LIBRARY = ("Allreduce", "Start", "Wait")
_KINDS = {
    MPI.Prequest.Startall: "start",
    MPI.Prequest.Waitall: "wait",
    copy: "copy",
    short_copy: "copy",
    vector_loop: "copy",
}


def record(comm: MPI.Intracomm, plan: Plan, count: int, clock: GlobalClock) -> list[RankTrace]:
    """Run the plan, of `count` elements, once. Return what each rank did: on rank 0, else nothing.

    Collective.
    """
    rounds = _busy_rounds(plan, comm.rank, count)
    comm.Barrier()
    begin = clock.local()
    timed = plan.traced(clock.local)
    end = clock.local()

    spans: list[Span] = []
    started = waited = -1
    for call, before, after in timed:
        kind = kind_of(call)
        started += kind == "start"
        waited += kind == "wait"
        number = started if kind == "start" else max(0, waited)
        spans.append(Span(kind, number, clock.to_global(before), clock.to_global(after)))
    trace = RankTrace(clock.to_global(begin), clock.to_global(end), tuple(spans), rounds)
    return comm.gather(trace) or []


def _busy_rounds(plan: Plan, rank: int, count: int) -> tuple[tuple[tuple[Step, int], ...], ...]:
    """Return the messages of each round in which the rank sends or receives some."""
    if plan.schedule is None:
        return ()
    split = Split(count, plan.schedule.chunks)
    rounds = (tuple(messages(steps, split)) for steps in plan.schedule.by_message(rank))
    return tuple(moving for moving in rounds if moving)


def kind_of(call: Call) -> str:
    """Return what a call of a plan does, by the function that it calls."""
    if isinstance(call, NodeBarrier | Relay):
        return "memory"
    function = getattr(call, "func", call)
    if getattr(function, "__name__", "") in _OF_THE_LIBRARY:
        return "library"
    return _KINDS.get(function, "reduction")
