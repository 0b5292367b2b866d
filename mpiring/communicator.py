"""What is kept for each communicator: a private duplicate, so that messages cannot be mixed up.

It hangs on the communicator as an MPI attribute and is freed with it.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any, cast

from mpi4py import MPI

from mpiring.agreement import on_rank_zero
from mpiring.decision import VARIABLE, Table
from mpiring.decision_file import read
from mpiring.detection import detect_topology
from mpiring.errors import MpiringError, Unsupported, UsageError
from mpiring.machine import is_crowded
from mpiring.node_memory import NodeBarrier, SharedArrays
from mpiring.schedule import MOST_MESSAGES
from mpiring.texts import read_text
from mpiring.topology import Groups, Topology

# MPI guarantees tags up to 32767. Two plans share tags only after some thousand others, and even
# then get each other's messages only if both are under way at once.
_TAGS = 32768


@dataclass
class Private:
    """The duplicate of a user's communicator, its detected topology, and its plans' first tags.

    And the decision table that MPIRING_DECISION names on rank 0, or what is wrong with it: that is
    raised by those who need the table.
    """

    comm: MPI.Intracomm
    topology: Topology
    crowded: bool = False
    """Whether its ranks outnumber the cores they may use, on some node."""
    decision: Table | MpiringError | None = None
    tags: Iterator[int] = field(
        default_factory=lambda: (tag % _TAGS for tag in count(0, MOST_MESSAGES))
    )
    groups: dict[Groups, MPI.Intracomm] = field(default_factory=dict)
    """This rank's group, of groups whose ranks share memory."""
    barriers: dict[Groups, NodeBarrier] = field(default_factory=dict)
    windows: SharedArrays | None = None
    """The arrays that were made in shared memory, if any were."""

    def make_windows(self) -> SharedArrays:
        """Return where arrays are made in shared memory. Collective at its first use."""
        if self.windows is None:
            node = self.comm.Split_type(MPI.COMM_TYPE_SHARED, key=self.comm.rank)
            ranks = next(node for node in self.topology.nodes if self.comm.rank in node)
            self.windows = SharedArrays(cast(MPI.Intracomm, node), ranks)
        return self.windows

    def barrier(self, groups: Groups) -> NodeBarrier:
        """Return where the ranks of this rank's group meet. Collective at the first use of it.

        Raises UsageError on the ranks of a node that has too little shared memory for it.
        """
        if groups not in self.groups:
            color = next(index for index, group in enumerate(groups) if self.comm.rank in group)
            place = groups[color].index(self.comm.rank)
            self.groups[groups] = cast(MPI.Intracomm, self.comm.Split(color, place))
        if groups not in self.barriers:
            self.barriers[groups] = NodeBarrier(self.groups[groups])
        return self.barriers[groups]

    def free(self) -> None:
        """Give back what can be: arrays that are still in use keep their memory. Collective."""
        for barrier in self.barriers.values():
            barrier.free()
        for group in self.groups.values():
            group.Free()
        if self.windows:
            self.windows.free()
        self.comm.Free()


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
    topology = detect_topology(duplicate)
    crowded = is_crowded(duplicate, topology.nodes)
    made = Private(duplicate, topology, crowded, _decision(duplicate))
    comm.Set_attr(_keyval(), made)
    return made


def read_decision(comm: MPI.Intracomm, path: str | None) -> Table | None:
    """Return the decision table in a file, if one is named. Collective.

    Rank 0 alone reads it, and what is named there counts: an environment may differ on each rank.
    """
    named, text = on_rank_zero(comm, lambda: (path, read_text(path) if path else ""))
    return read(text, named) if named else None


def _decision(comm: MPI.Intracomm) -> Table | MpiringError | None:
    """Return the table of the file that the variable names, or what is wrong with it."""
    try:
        return read_decision(comm, os.environ.get(VARIABLE))
    except MpiringError as error:
        return error


@cache
def _keyval() -> int:
    return MPI.Comm.Create_keyval(delete_fn=lambda comm, keyval, kept: kept.free())
