"""What is kept for each communicator: a private duplicate, so that messages cannot be mixed up.

It hangs on the communicator as an MPI attribute and is freed with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any

from mpi4py import MPI

from mpiring import machine
from mpiring.errors import Unsupported, UsageError
from mpiring.topology import Topology

# MPI guarantees tags up to 32767. Two plans share a tag only after that many others, and even then
# get each other's messages only if both are under way at once.
_TAGS = 32767


@dataclass(frozen=True)
class Private:
    """The duplicate of a user's communicator, its detected topology, and the tags of its plans."""

    comm: MPI.Intracomm
    topology: Topology
    tags: Iterator[int] = field(default_factory=lambda: (n % _TAGS for n in count()))


def private(comm: Any) -> Private:
    """Return what belongs to `comm`. Collective over `comm` at its first use.

    Raises Unsupported or UsageError for what is no communicator of a group that this rank is in.
    """
    if not isinstance(comm, MPI.Comm):
        raise Unsupported(f"comm is a {type(comm).__name__}, it has to be an MPI communicator")
    if comm == MPI.COMM_NULL:
        raise UsageError("comm is COMM_NULL: this rank is not in the group")
    if not isinstance(comm, MPI.Intracomm):
        raise Unsupported("comm is an intercommunicator, it has to be an intracommunicator")
    kept = comm.Get_attr(_keyval())
    if isinstance(kept, Private):
        return kept
    duplicate = comm.Dup()
    made = Private(duplicate, machine.detect_topology(duplicate))
    comm.Set_attr(_keyval(), made)
    return made


@cache
def _keyval() -> int:
    return MPI.Comm.Create_keyval(delete_fn=lambda comm, keyval, kept: kept.comm.Free())
