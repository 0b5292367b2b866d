"""Ranks that ask for different things, or of which one cannot go on, all learn it together."""

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import NoReturn, TypeVar, cast

import numpy as np
from mpi4py import MPI

from mpiring.errors import Disagreement, MpiringError, UsageError

T = TypeVar("T")


def agree(
    comm: MPI.Intracomm, terms: Mapping[str, str], error: MpiringError | None, largest: int
) -> int:
    """Return the largest `largest` of all ranks, if all hold the same `terms` and none an error.

    One small allreduce where all is well. Otherwise every rank raises: its own error, or the error
    of the lowest rank that has one, or Disagreement with what differs and on which ranks.
    Collective; to be called where something failed as well.
    """
    text = json.dumps(terms, sort_keys=True).encode()
    fingerprint = int.from_bytes(blake2b(text, digest_size=7).digest())
    mine = np.array([fingerprint, -fingerprint, error is not None, largest], np.int64)
    most = np.empty_like(mine)
    comm.Allreduce(mine, most, MPI.MAX)
    high, minus_low, failed, largest = map(int, most)
    if high != -minus_low or failed:
        _raise_together(comm, terms, error)
    return largest


def _raise_together(
    comm: MPI.Intracomm, terms: Mapping[str, str], error: MpiringError | None
) -> NoReturn:
    everyone = comm.allgather((dict(terms), error))
    if error is not None:
        raise error
    for rank, (_, theirs) in enumerate(everyone):
        if theirs is not None:
            raise type(theirs)(f"rank {rank}: {theirs}")
    for name in terms:
        ranks: dict[str, list[int]] = {}
        for rank, (held, _) in enumerate(everyone):
            ranks.setdefault(held[name], []).append(rank)
        if len(ranks) > 1:
            parts = (f"{_short(value)} on {_ranks(who)}" for value, who in ranks.items())
            raise Disagreement(f"the ranks disagree: {name} is {', '.join(parts)}")
    raise AssertionError("fingerprints differ, but no term does")


def on_rank_zero(comm: MPI.Intracomm, action: Callable[[], T]) -> T:
    """Return on every rank what `action` returns on rank 0, or raise the MpiringError it raises.

    An OSError counts as the user's: a file that is missing, unreadable or in the way.
    """
    result: T | None = None
    error: MpiringError | None = None
    if comm.rank == 0:
        try:
            result = action()
        except MpiringError as raised:
            error = raised
        except OSError as raised:
            error = UsageError(f"{raised.filename}: {raised.strerror}")
    result, error = comm.bcast((result, error))
    if error is not None:
        raise error
    return cast(T, result)


def _short(value: str) -> str:
    return value if len(value) <= 60 else value[:57] + "..."


def _ranks(ranks: list[int]) -> str:
    """Name ranks in a line of bearable length."""
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"
