"""Ranks that ask for different things, or of which one cannot go on, all learn it together."""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import NoReturn, TypeAlias, TypeVar, cast

import numpy as np
from mpi4py import MPI

from mpiring.errors import Disagreement, MpiringError, UsageError
from mpiring.units import plural, shortened

T = TypeVar("T")
Told: TypeAlias = tuple[type[MpiringError], str] | None
"""An error as the other ranks hear of it: what they raise."""

NO_TERMS: Mapping[str, str] = {}


def agree(
    comm: MPI.Intracomm,
    error: Exception | None,
    terms: Mapping[str, str] = NO_TERMS,
    number: int = 0,
) -> int:
    """Return the largest `number`, if all hold the same `terms` and none an `error`.

    One small allreduce settles it where all is well. Otherwise every rank raises: its own error, or
    what the lowest rank with an error has to tell, or Disagreement with what differs and where. An
    error that is none of ours counts most: where one rank has such, the others raise MpiringError
    itself, so that what is caught on one rank is caught on all.
    Collective: also a rank on which something failed has to come here.
    """
    fingerprint = _fingerprint(terms)
    # As long for every caller: ranks that call different things meet here, too.
    mine = np.array([fingerprint, -fingerprint, error is not None, number], np.int64)
    largest = np.empty_like(mine)
    comm.Allreduce(mine, largest, MPI.MAX)
    high, minus_low, failed, highest = map(int, largest)
    if failed or high != -minus_low:
        _raise_together(comm, terms, error)
    return highest


def together(
    comm: MPI.Intracomm, action: Callable[[], T], terms: Mapping[str, str] = NO_TERMS
) -> T:
    """Return what `action` returns here, if it succeeds on all ranks; otherwise raise on all.

    Also where the ranks do not hold the same `terms`.
    """
    result: T | None = None
    error: Exception | None = None
    try:
        result = action()
    except Exception as raised:
        error = raised
    agree(comm, error, terms)
    return cast(T, result)


def on_rank_zero(comm: MPI.Intracomm, action: Callable[[], T]) -> T:
    """Return on every rank what `action` returns on rank 0; what it raises there, all raise.

    An OSError that names a file counts as the user's: it is missing, unreadable or in the way.
    """
    result: T | None = None
    error: Exception | None = None
    if comm.rank == 0:
        try:
            result = action()
        except OSError as raised:
            named = raised.filename is not None
            error = UsageError(f"{raised.filename}: {raised.strerror}") if named else raised
        except Exception as raised:
            error = raised
    result, told = comm.bcast((result, _tell(error)))
    if error is not None:
        raise error
    if told is not None:
        kind, text = told
        raise kind(text)
    return cast(T, result)


def _fingerprint(terms: Mapping[str, str]) -> int:
    """Return a number that differs with the terms, in 7 bytes, so that it has a negative."""
    if not terms:
        return 0
    text = repr(sorted(terms.items())).encode()
    return int.from_bytes(blake2b(text, digest_size=7).digest())


def _raise_together(
    comm: MPI.Intracomm, terms: Mapping[str, str], error: Exception | None
) -> NoReturn:
    everyone: list[tuple[dict[str, str], Told]] = comm.allgather((dict(terms), _tell(error)))
    failed = {rank: told for rank, (_, told) in enumerate(everyone) if told is not None}
    strange = {rank: told for rank, told in failed.items() if told[0] is MpiringError}
    failed = strange or failed
    if error is not None and comm.rank in failed:
        raise error
    for rank, (kind, text) in failed.items():
        raise kind(f"rank {rank}: {text}")
    for name in dict.fromkeys(name for held, _ in everyone for name in held):
        ranks: dict[str, list[int]] = {}
        for rank, (held, _) in enumerate(everyone):
            ranks.setdefault(held.get(name, "not given"), []).append(rank)
        if len(ranks) > 1:
            parts = (f"{shortened(value, 60)} on {_ranks(who)}" for value, who in ranks.items())
            raise Disagreement(f"the ranks disagree: {name} is {', '.join(parts)}")
    raise AssertionError("fingerprints differ, but no term does")


def _tell(error: Exception | None) -> Told:
    if error is None:
        return None
    if isinstance(error, MpiringError):
        return type(error), str(error)
    return MpiringError, f"{type(error).__name__}: {error}"


def _ranks(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    return f"{plural(len(ranks), 'rank')} {shown}"
