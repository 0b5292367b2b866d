"""What a rank does in the rounds inside its node, where they are carried out in shared memory.

Such rounds come in two kinds (see `hierarchy`). In one, each rank gives what it brought, and the
owner of a share reduces what it is given. In the other one, owners hand out what they have reduced.
Two rounds of both kinds that follow each other and have the same shares are one task, so that what
is handed out is still in cache.

The ranks of a group meet in between, so their tasks have to be alike: what is decided here is
decided from what all of them see, which are the shares of all owners.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from mpiring.chunks import Split
from mpiring.schedule import Recv, Round, ScheduleError, Send, is_inside


class Share(NamedTuple):
    """A part of the buffer, and the place in the group of the rank at the other end."""

    place: int
    where: slice


class Task(NamedTuple):
    """What a rank does in a round inside its node, or in two that follow each other."""

    reduced: slice | None = None
    """What it reduces, as an owner."""
    given: tuple[Share, ...] = ()
    """What it gives the other owners to reduce."""
    handed: tuple[Share, ...] = ()
    """What it hands out."""
    taken: tuple[Share, ...] = ()
    """What the other owners hand it."""

    @property
    def collects(self) -> bool:
        """Whether anything is reduced, by any rank of the group."""
        return bool(self.reduced or self.given)

    @property
    def hands_out(self) -> bool:
        """Whether anything is handed out, by any rank of the group."""
        return bool(self.handed or self.taken)

    @property
    def owned(self) -> slice | None:
        """What it is the owner of, if it is one."""
        return self.reduced or (self.handed[0].where if self.handed else None)

    @property
    def shares(self) -> frozenset[tuple[int, int]]:
        """Where the share of each owner begins and ends: the same on all ranks of the group."""
        others = [share.where for share in self.given or self.taken]
        mine = [self.owned] if self.owned else []
        return frozenset((where.start, where.stop) for where in (*mine, *others))

    def then(self, other: "Task") -> "Task | None":
        """Return both tasks in one, if the other hands out what this one has reduced."""
        follows = self.collects and not self.hands_out and not other.collects
        if not follows or self.shares != other.shares:
            return None
        return Task(self.reduced, self.given, other.handed, other.taken)


def tasks(
    rounds: Sequence[Round], group: Sequence[int], split: Split
) -> Iterator[tuple[Round, Task | None]]:
    """Yield the rounds of a rank, each with its task; None where it is messages.

    Of two rounds that are one task, the first one has an empty one. Raises ScheduleError for a
    round inside the group that is of neither kind.
    """
    owned: set[tuple[int, int]] = set()
    found = [
        _task(steps, group, split, owned) if is_inside(steps, group) else None for steps in rounds
    ]
    for index, (task, other) in enumerate(pairwise(found.copy())):
        if task and other and (both := task.then(other)):
            found[index : index + 2] = Task(), both
    yield from zip(rounds, found, strict=True)


def _task(steps: Round, group: Sequence[int], split: Split, owned: set[tuple[int, int]]) -> Task:
    """Return what a round is: what a rank has reduced it hands out, what it brought it gives."""
    shares: dict[str, list[Share]] = {"given": [], "handed": [], "taken": []}
    reduced = {(s.first, s.chunks) for s in steps if isinstance(s, Recv) and s.reduce}
    for step in steps:
        part = (step.first, step.chunks)
        share = Share(group.index(step.peer), split.slice(*part))
        if isinstance(step, Send):
            shares["handed" if part in owned else "given"].append(share)
        elif not step.reduce:
            shares["taken"].append(share)
    owned |= reduced
    given, handed, taken = map(tuple, shares.values())
    mixed = (reduced or given) and (handed or taken)
    if mixed or len(reduced) > 1 or len({str(share.where) for share in handed}) > 1:
        raise ScheduleError(f"a round that memory cannot carry out: {steps}")
    mine = next((split.slice(*part) for part in reduced), None)
    return Task(mine, given, handed, taken)
