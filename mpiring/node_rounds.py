"""Carry out the tasks of a rank inside its node by loads and stores, in place of messages.

An owner loads what it reduces straight from its peers' memory, and stores what it hands out into
theirs. Each element is reduced by one rank, in rank order, as by messages.

`Direct` works where all arrays are in shared windows: ranks meet before the first load and after
the last store. `Staged` works on arrays that are anywhere, through blocks of shared memory: while
owners reduce one block, all ranks fill the next one, and take over what has become of the one
before; then they meet.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from mpiring.arrays import Array, Buffers, Combine, combining, copying, empty, overlap
from mpiring.node_memory import NodeBarrier
from mpiring.node_tasks import Task
from mpiring.plan import Call

TILE = 256 << 10
"""Bytes that are reduced and handed out at a time: few enough to stay in an L2 cache, and many
enough for the calls not to matter."""


class Direct:
    """On arrays in shared windows."""

    remark = ""

    def __init__(
        self,
        barrier: NodeBarrier,
        group: Sequence[int],
        contributions: Sequence[Array],
        works: Sequence[Array],
        combine: Combine,
    ) -> None:
        """`contributions` and `works` are those of each rank of the group, in its order."""
        mine = barrier.comm.rank
        self.contributions = contributions
        self.works = works
        self.work = works[mine]
        in_place = overlap(contributions[mine], self.work)
        self.reduction = _Reduction(combine, group, mine if in_place else None)
        self.unfinished = empty(0, self.work.dtype)
        self.ends: tuple[Call, ...] = (barrier,)
        """What a run begins and ends with."""

    @property
    def scratch_nbytes(self) -> int:
        """Bytes beside the arrays."""
        return self.unfinished.nbytes

    def calls(self, task: Task) -> Iterator[Call]:
        """Yield what a run calls for a task."""
        tiles = _tiles(task.owned, TILE // self.work.itemsize)
        if task.reduced and self.reduction.leaves_unfinished:
            longest = max((tile.stop - tile.start for tile in tiles), default=0)
            if longest > self.unfinished.size:
                self.unfinished = empty(longest, self.work.dtype)
        for tile in tiles:
            if task.reduced:
                operands = [contribution[tile] for contribution in self.contributions]
                result = self.work[tile]
                unfinished = self.unfinished[: result.size]
                yield from self.reduction.calls(operands, result, unfinished)
            for place, _ in task.handed:
                yield copying(self.works[place][tile], self.work[tile])


class Staged:
    """On arrays that are anywhere, through the stage of a barrier."""

    ends: tuple[Call, ...] = ()
    remark = ""
    scratch_nbytes = 0
    """Bytes beside the arrays and the stage, which belongs to the communicator."""

    def __init__(
        self, barrier: NodeBarrier, group: Sequence[int], buffers: Buffers, combine: Combine
    ) -> None:
        self.barrier = barrier
        self.buffers = buffers
        mine = barrier.comm.rank if buffers.in_place else None
        self.reduction = _Reduction(combine, group, mine)

    def calls(self, task: Task) -> Iterator[Call]:
        """Yield what a run calls for a task."""
        if task.shares:
            self.remark = "contiguous arrays of mpiring.empty would need no copies in between"
            yield Relay(self, task)


NodeRounds: TypeAlias = Direct | Staged


class Relay:
    """The blocks of one task, one after the other.

    Block i of each share is given in step i, reduced in the next one, and taken in the one after
    that. A block's place in the stage is free for the next but one, since all have met in between.
    """

    def __init__(self, staged: Staged, task: Task) -> None:
        self.barrier = barrier = staged.barrier
        self.reduction = staged.reduction
        self.contribution, self.work = staged.buffers.contribution, staged.buffers.work
        self.itemsize = self.work.itemsize
        # Each owner has its part of a block; they are the first ranks of the group.
        self.most = barrier.block // (len(task.shares) * self.itemsize)
        blocks = max(-(-(end - begin) // self.most) for begin, end in task.shares)
        self.odd = blocks % 2
        lag = task.collects
        self.steps = [
            [
                [
                    *self._give(task, step, turn),
                    *self._reduce(task, step - lag, turn),
                    *self._take(task, step - lag - 1, turn),
                ]
                for step in range(blocks + task.collects + task.hands_out)
            ]
            for turn in (0, 1)
        ]

    def __call__(self) -> None:
        """Run all steps; which half of the stage they begin with follows the task before."""
        barrier = self.barrier
        barrier.check()
        *steps, last = self.steps[barrier.turn]
        for calls in steps:
            for call in calls:
                call()
            barrier()
        for call in last:
            call()
        barrier.turn ^= self.odd

    def _give(self, task: Task, block: int, turn: int) -> Iterator[Call]:
        for place, where in task.given:
            if tile := self._tile(where, block):
                stage = self._given(self.barrier.comm.rank, place, tile, block + turn)
                yield copying(stage, self.contribution[tile])

    def _reduce(self, task: Task, block: int, turn: int) -> Iterator[Call]:
        mine = self.barrier.comm.rank
        if task.owned and (tile := self._tile(task.owned, block)):
            if task.reduced:
                operands = [
                    self.contribution[tile]
                    if place == mine
                    else self._given(place, mine, tile, block + turn)
                    for place in range(self.barrier.comm.size)
                ]
                # What it has reduced goes to the stage after that, so what is unfinished may.
                unfinished = self._reduced(mine, tile, block + turn)
                yield from self.reduction.calls(operands, self.work[tile], unfinished)
            if task.handed:
                yield copying(self._reduced(mine, tile, block + turn), self.work[tile])

    def _take(self, task: Task, block: int, turn: int) -> Iterator[Call]:
        for place, where in task.taken:
            if tile := self._tile(where, block):
                yield copying(self.work[tile], self._reduced(place, tile, block + turn))

    def _tile(self, where: slice, block: int) -> slice | None:
        begin = where.start + block * self.most
        if block < 0 or begin >= where.stop:
            return None
        return slice(begin, min(begin + self.most, where.stop))

    def _given(self, giver: int, owner: int, tile: slice, turn: int) -> Array:
        part = owner * self.most * self.itemsize
        return self._view(self.barrier.given(giver, turn % 2)[part:], tile)

    def _reduced(self, owner: int, tile: slice, turn: int) -> Array:
        return self._view(self.barrier.reduced(owner, turn % 2), tile)

    def _view(self, memory: Array, tile: slice) -> Array:
        length = tile.stop - tile.start
        return memory[: length * self.itemsize].view(self.work.dtype)


class _Reduction:
    """Combines what the ranks of a group brought, in rank order."""

    def __init__(self, combine: Combine, group: Sequence[int], in_place: int | None) -> None:
        """`in_place` is the place in the group whose operand is where the result goes, if any."""
        self.combine = combine
        self.order = sorted(range(len(group)), key=group.__getitem__)
        self.before = 0 if in_place is None else self.order.index(in_place)
        """Operands that are read before the one that is where the result goes."""

    @property
    def leaves_unfinished(self) -> bool:
        """Whether the place of the result is another operand's for longer than the first step."""
        return self.before > 1

    def calls(self, operands: Sequence[Array], result: Array, unfinished: Array) -> Iterator[Call]:
        """Yield the calls that leave in `result` what becomes of the operands.

        These are in the order of the group. `unfinished` takes what they have become as long as the
        result's place is taken.
        """
        left, *others = [operands[place] for place in self.order]
        for index, right in enumerate(others, start=1):
            out = unfinished if index < self.before else result
            yield from combining(self.combine, left, right, out)
            left = out


def _tiles(where: slice | None, most: int) -> list[slice]:
    """Return a part of an array as parts of `most` elements at the most."""
    if where is None:
        return []
    return [
        slice(begin, min(begin + most, where.stop))
        for begin in range(where.start, where.stop, most)
    ]
