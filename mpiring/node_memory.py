"""Memory that the ranks of a node share: arrays in it, where ranks meet, a stage for other arrays.

All of it lies in MPI-3 shared windows (MPI_Win_allocate_shared): a part for each rank, written
first by its owner, so that its pages are near its core.

**Order.** Ranks meet at flags: each counts how often it has come, and waits until the others have
come as often. A rank calls MPI_Win_sync before it raises its flag, and after it has seen those of
the others, so that what it stored before is there for what they load afterwards. MPI promises this
for accesses to the window of the flags, in the unified memory model, which is checked. That it
holds for all memory is because MPICH, Open MPI and Intel MPI make it a fence of the processor; and
on x86 stores are seen in their order anyway. A flag is an aligned 8-byte integer, which one rank
alone writes and the others read by one load. While ranks wait they let others run, and let MPI
progress: a peer may first need a message of this rank's to come at all.

**Release.** To free a window takes all ranks, but arrays go when Python drops them, on each rank at
another time. So windows whose arrays are gone everywhere are freed when the next array is made on
the communicator, or it is freed, and what is left when MPI ends.
"""

import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from time import sleep
from typing import Any

import numpy as np
from mpi4py import MPI

from mpiring.agreement import agree
from mpiring.arrays import LINE, Array, DType
from mpiring.errors import UsageError
from mpiring.memory import SHM, free_shared_memory
from mpiring.units import format_amount

BLOCK = 128 << 10
"""Bytes of ordinary arrays that a rank stages at a time: on few ranks that stays in cache."""
LEAST_SHARE = 4 << 10
"""Of a block, for each rank of a large node."""
POLLS = 200
"""Times that a rank looks for its peers before it lets other processes run."""
YIELDS = 2000
"""Times that it lets them run before it sleeps in between."""
NAP_S = 20e-6
ELSEWHERE, FOREIGN = -1, -2
"""Where arrays are that are in no shared window, and in one of another communicator."""


class NodeMemory:
    """A shared window with a part for each rank of `comm`. Collective over it."""

    def __init__(self, comm: MPI.Intracomm, nbytes: int) -> None:
        """Allocate `nbytes` on this rank, all 0. Raises UsageError where that cannot be."""
        needed = comm.allreduce(nbytes)
        error: Exception | None = None
        if (free := free_shared_memory()) is not None and needed > free:
            error = UsageError(
                f"the ranks of a node need {format_amount(needed)} of shared memory, {SHM} has"
                f" {format_amount(free)}"
            )
        agree(comm, error)
        # Else parts follow each other without a gap, and pages near one core are another's.
        apart = MPI.Info.Create({"alloc_shared_noncontig": "true"})
        try:
            self.win = MPI.Win.Allocate_shared(nbytes, 1, info=apart, comm=comm)
            if self.win.model != MPI.WIN_UNIFIED:
                error = UsageError("this MPI's shared windows need a copy to be seen")
        except MPI.Exception as raised:
            error = UsageError(f"MPI can allocate no shared memory: {raised}")
        apart.Free()
        agree(comm, error)
        self.win.Lock_all(MPI.MODE_NOCHECK)
        self.parts = [self._part(rank) for rank in range(comm.size)]
        self.mine = self.parts[comm.rank]
        self.mine.fill(0)
        comm.Barrier()  # nobody stores anything into it before

    def _part(self, rank: int) -> Array:
        memory, _ = self.win.Shared_query(rank)
        return np.asarray(memory.cast("B"))

    def free(self) -> None:
        """Give the memory back. Collective; no array may be left in it."""
        self.parts.clear()
        del self.mine
        self.win.Unlock_all()
        self.win.Free()


@dataclass
class SharedArray:
    """A window, with an array of each rank of a node."""

    memory: NodeMemory
    number: int
    """Which one of its communicator it is, the same on all ranks."""
    dropped: bool = False
    """Whether this rank's array is gone."""

    def place(self, array: Array) -> int | None:
        """Return at which byte of this rank's part an array begins; None if it is elsewhere."""
        begin = int(array.ctypes.data - self.memory.mine.ctypes.data)
        inside = not self.dropped and 0 <= begin <= self.memory.mine.nbytes - array.nbytes
        return begin if inside else None


class SharedArrays:
    """The arrays in shared memory that were made on one communicator."""

    def __init__(self, comm: MPI.Intracomm, ranks: Sequence[int]) -> None:
        """`comm` has the ranks of this node; `ranks` are those of the user's communicator."""
        self.comm = comm
        self.ranks = ranks
        self.kept: list[SharedArray] = []
        self.numbers = count()
        _EVERY.add(self)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return an array of zeros in a new window. Collective over the node."""
        self._release()
        nbytes = prod(shape) * dtype.itemsize
        memory = NodeMemory(self.comm, -(-max(nbytes, 1) // LINE) * LINE)
        window = SharedArray(memory, next(self.numbers))
        owner = _Owner(memory.mine[:nbytes])
        weakref.finalize(owner, setattr, window, "dropped", True).atexit = False
        self.kept.append(window)
        return np.asarray(owner).view(dtype).reshape(shape)

    def view(self, rank: int, where: Sequence[int], like: Array) -> Array:
        """Return the array of a rank at what `place_of` returned there, as `like` one's own."""
        number, place = where
        (window,) = (window for window in self.kept if window.number == number)
        part = window.memory.parts[self.ranks.index(rank)]
        return part[place : place + like.nbytes].view(like.dtype)

    def free(self) -> None:
        """Free what no array is in. Collective over the node."""
        self._release()
        if not self.kept:
            self.comm.Free()

    def _release(self) -> None:
        """Free the windows whose arrays are gone on every rank of the node."""
        dropped = np.array([window.dropped for window in self.kept], np.int8)
        self.comm.Allreduce(MPI.IN_PLACE, dropped, MPI.MIN)
        for window, gone in zip(list(self.kept), dropped, strict=True):
            if gone:
                self.kept.remove(window)
                window.memory.free()


_EVERY: weakref.WeakSet[SharedArrays] = weakref.WeakSet()


def place_of(array: Any, windows: SharedArrays | None) -> tuple[int, int]:
    """Return the number of an array's window, and its place there; else ELSEWHERE or FOREIGN twice.

    `windows` are those of the communicator in use, if it has any. What is not contiguous counts as
    elsewhere: it is copied first.
    """
    reached = isinstance(array, np.ndarray) and array.flags.c_contiguous
    for every in list(_EVERY) if reached and _EVERY else ():
        for window in every.kept:
            place = window.place(array)
            if place is not None:
                return (window.number, place) if every is windows else (FOREIGN, FOREIGN)
    return ELSEWHERE, ELSEWHERE


class _Owner:
    """Holds the memory of an array, and is dropped with the last array that looks at it."""

    def __init__(self, memory: Array) -> None:
        self.__array_interface__ = memory.__array_interface__


class NodeBarrier:
    """Where the ranks of a group wait for each other, with a stage of memory for each of them.

    A stage has a half that its rank fills for the others to reduce (`given`), and one for what it
    has reduced (`reduced`). Each is two blocks, which take turns: while a rank fills one, its peers
    may still read the other.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        """`comm` has the ranks that meet, which share memory. Collective over it.

        Raises UsageError where the node has too little shared memory.
        """
        self.comm = comm
        self.block = max(BLOCK, LEAST_SHARE * comm.size)
        self.memory = NodeMemory(comm, LINE)  # flags of two ranks never lie in one
        self.stage: NodeMemory | None = None
        flags = [part[:8].data.cast("q") for part in self.memory.parts]
        self.mine = flags[comm.rank]
        self.others = [flag for rank, flag in enumerate(flags) if rank != comm.rank]
        self.times = 0
        self.turn = 0
        """Which block of each half comes next: 0 or 1."""
        self.freed = False
        self.sync: Callable[[], object] = self.memory.win.Sync
        """What a meeting begins and ends with; `check` where the memory is gone."""

    def make_stage(self) -> None:
        """Allocate the stage, 4 blocks for each rank. Collective at its first use.

        Raises UsageError where the node has too little shared memory.
        """
        if self.stage is None:
            self.stage = NodeMemory(self.comm, 4 * self.block)

    def given(self, rank: int, turn: int) -> Array:
        """Return what a rank of the group gives the others to reduce."""
        return self._block(rank, turn)

    def reduced(self, rank: int, turn: int) -> Array:
        """Return what a rank of the group has reduced for the others."""
        return self._block(rank, 2 + turn)

    def _block(self, rank: int, number: int) -> Array:
        assert self.stage is not None
        return self.stage.parts[rank][number * self.block : (number + 1) * self.block]

    def check(self) -> None:
        """Raise RuntimeError where its memory is gone, with the communicator."""
        if self.freed:
            raise RuntimeError("the communicator of this plan was freed")

    def __call__(self) -> None:
        """Return when all ranks have come as often as this one."""
        sync = self.sync
        sync()
        self.times = self.mine[0] = times = self.times + 1
        for flag in self.others:
            if flag[0] < times:
                self._wait(flag, times)
        sync()

    def _wait(self, flag: memoryview, times: int) -> None:
        for _ in range(POLLS):
            if flag[0] >= times:
                return
        yields = 0
        while flag[0] < times:
            self.comm.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG)
            os.sched_yield()
            yields += 1
            if yields > YIELDS:
                sleep(NAP_S)

    def tell(self, numbers: Sequence[int]) -> list[list[int]]:
        """Return what each rank of the group tells, as many numbers as this one. Collective."""
        everyone = np.empty((self.comm.size, len(numbers)), np.int64)
        self.comm.Allgather(np.array(numbers, np.int64), everyone)
        return [list(map(int, row)) for row in everyone]

    def free(self) -> None:
        """Give its memory back. Collective."""
        self.freed = True
        self.sync = self.check
        for flag in (self.mine, *self.others):
            flag.release()
        self.memory.free()
        if self.stage:
            self.stage.free()
