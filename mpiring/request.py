"""What one rank asks for, checked as far as it can alone, and the plan that all ranks settle on."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from mpi4py import MPI

from mpiring import executor, native, operations
from mpiring.agreement import agree, together
from mpiring.arrays import Buffers, Combine, DType
from mpiring.communicator import Private
from mpiring.errors import Unsupported
from mpiring.node_rounds import Direct, NodeRounds, Staged
from mpiring.options import DEFAULTS, Options
from mpiring.plan import Plan

Prepared: TypeAlias = executor.Prepared | native.Prepared


class Request(NamedTuple):
    """What one rank asks for."""

    prepared: Prepared
    terms: Mapping[str, str]
    """What all ranks have to have in common."""
    options: Options = DEFAULTS
    why: str = ""
    """What was picked and by which rule, where that was left to `auto`."""
    places: Sequence[int] = ()
    """Where in shared memory the buffers are, two numbers each (see `place_of`)."""


def terms(collective: str, algorithm: str, buffers: Buffers, **others: str) -> dict[str, str]:
    """Return what ranks have to have in common in any collective, and the `others` of this one."""
    return {
        "collective": collective,
        "algorithm": algorithm,
        "dtype": _dtype_in_words(buffers.work.dtype),
        "count": str(buffers.work.size),
        **others,
    }


def reduction(op: Any, dtype: DType) -> tuple[Combine, bool]:
    """Return what combines arrays by `op`, and whether that commutes. Raises Unsupported."""
    if not isinstance(op, MPI.Op):
        raise Unsupported(f"op is of type {type(op).__name__}, not an MPI operation")
    combine = operations.combine_for(op, dtype)  # first: what is no operation cannot be asked
    return combine, op.Is_commutative()


def settled(ours: Private, make: Callable[[], Request]) -> Plan:
    """Return the plan of what `make` asks for on this rank, once all ranks agree. Collective.

    What is wrong on any rank is raised on all of them (see `agree`).
    """
    try:
        request = make()
        pieces = request.prepared.pieces  # which walks all rounds
    except Exception as error:
        agree(ours.comm, error)
        raise AssertionError("an error on this rank was agreed on as none") from error
    pieces = agree(ours.comm, None, request.terms, pieces)
    tag = next(ours.tags)
    plan = together(ours.comm, lambda: _bound(ours, request, tag, pieces))
    plan.options = request.options
    plan.remark = "; ".join(filter(None, (request.why, plan.remark)))
    return plan


def _bound(ours: Private, request: Request, tag: int, pieces: int) -> Plan:
    prepared = request.prepared
    if isinstance(prepared, native.Prepared):
        return prepared.bind(ours.comm, tag, pieces)
    node = _node_rounds(ours, prepared, request.places)
    return prepared.bind(ours.comm, tag, pieces, node)


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


@cache
def _dtype_in_words(dtype: DType) -> str:
    return dtype.name + ("" if dtype.isnative else ", bytes swapped")
