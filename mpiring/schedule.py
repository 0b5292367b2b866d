"""The one representation of an algorithm: the rounds of each rank, in terms of chunks.

A schedule knows no buffer, dtype or MPI. Each rank holds a buffer cut into chunks, which at first
hold its own contribution. A *round* is what a rank starts together and then waits for:

1. start every send and receive of the round;
2. wait for all of them;
3. reduce: where contributions meet at a chunk, they are combined in rank order, the rank's own
   value among them at its place (`meetings`).

A reducing receive lands in scratch, so it may meet a send of the same chunk in its round; a plain
receive writes the chunk itself, so nothing else in its round may touch that chunk (`check_round`).

With several rounds in flight, the next round is started before those are waited for and reduced;
but not before those that it depends on (`depends`). In which order a rank starts rounds and waits
for them says `in_turn`. `segmented` and `staggered` deal the rounds of segments so that few depend
on each other.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat, zip_longest
from typing import NamedTuple, TypeAlias

from mpiring.chunks import Split
from mpiring.topology import Groups

MOST_MESSAGES = 8
"""That one rank may send to another one in a round."""


class ScheduleError(Exception):
    """A schedule that cannot run: a fault of who wrote it, which no argument of a program is."""


class Send(NamedTuple):
    """Send `chunks` chunks from `first` on to `peer`."""

    peer: int
    first: int
    chunks: int = 1


class Recv(NamedTuple):
    """Receive `chunks` chunks from `first` on from `peer`: to reduce into them, or replace them."""

    peer: int
    first: int
    chunks: int = 1
    reduce: bool = False


Step: TypeAlias = Send | Recv
Round: TypeAlias = tuple[Step, ...]
Rounds: TypeAlias = Iterable[Round]


@dataclass(frozen=True)
class Schedule:
    """The rounds of all ranks: of each of `size` ranks, over `chunks` chunks."""

    size: int
    chunks: int
    rounds: Callable[[int], Rounds]
    in_flight: int = 1
    """How many rounds a rank has under way at a time, at most."""
    memory: Groups = ()
    """Groups of ranks inside which rounds are carried out by loads and stores, not by messages."""

    def group_of(self, rank: int) -> tuple[int, ...]:
        """Return the ranks whose memory `rank` reaches, itself among them; else none."""
        return next((group for group in self.memory if rank in group), ())

    def by_message(self, rank: int, rounds: Rounds | None = None) -> Rounds:
        """Return the rounds of a rank, empty where they are carried out in memory.

        `rounds` are those of the rank, if they are at hand.
        """
        group = self.group_of(rank)
        rounds = self.rounds(rank) if rounds is None else rounds
        if not group:
            return rounds
        return (() if is_inside(steps, group) else steps for steps in rounds)


def is_inside(steps: Round, group: Collection[int]) -> bool:
    """Whether a round is among the ranks of a group alone."""
    return bool(steps) and all(step.peer in group for step in steps)


class Meeting(NamedTuple):
    """Contributions that meet at `chunks` chunks from `first` on, named by rank, in rank order."""

    first: int
    chunks: int
    ranks: tuple[int, ...]


def relabel(
    rounds: Rounds, ranks: Sequence[int], first: int = 0, width: int = 1
) -> Iterator[Round]:
    """Let the schedule of a small group run among `ranks`, on `width` chunks in place of each one.

    Peer `p` becomes `ranks[p]`, chunk `c` the `width` chunks from `first + c * width` on.
    """
    for steps in rounds:
        yield tuple(
            step._replace(
                peer=ranks[step.peer], first=first + step.first * width, chunks=step.chunks * width
            )
            for step in steps
        )


def reordered(schedule: Schedule, order: Sequence[int]) -> Schedule:
    """Let rank `order[i]` do what rank i does in the schedule."""
    if list(order) == list(range(schedule.size)):
        return schedule
    place = {rank: index for index, rank in enumerate(order)}
    return replace(schedule, rounds=lambda rank: relabel(schedule.rounds(place[rank]), order))


def back(rounds: Rounds) -> Iterator[Round]:
    """The same way back: who received sends what is complete by now, and it replaces what is there.

    So a reduction to some ranks becomes the broadcast from them.
    """
    for steps in reversed(list(rounds)):
        yield tuple(
            (Recv if isinstance(step, Send) else Send)(step.peer, step.first, step.chunks)
            for step in steps
        )


def side_by_side(*parts: Rounds) -> Iterator[Round]:
    """Run schedules of one rank side by side: the first rounds of all are one round, and so on."""
    for rounds in zip_longest(*parts, fillvalue=()):
        yield tuple(chain.from_iterable(rounds))


def padded(rounds: Rounds, length: int) -> Iterator[Round]:
    """Add empty rounds at the end, so that there are `length` of them."""
    return islice(chain(rounds, repeat(())), length)


def segmented(schedule: Schedule, segments: int, in_flight: int = 1) -> Schedule:
    """Let the schedule run over each of `segments` segments of the buffer.

    One after the other; or with two in flight, whose rounds alternate: while a rank reduces what it
    received of one segment, the other one is on its way. `segments` is then even, or 1.
    """
    if segments == 1:
        return schedule
    if segments % in_flight:
        raise ValueError(f"{segments} segments with {in_flight} in flight")

    def lane(rank: int, first: int) -> Iterator[Round]:
        for segment in range(first, segments, in_flight):
            yield from _segment(schedule, rank, segment)

    def rounds(rank: int) -> Iterator[Round]:
        lanes = (lane(rank, first) for first in range(in_flight))
        return chain.from_iterable(zip(*lanes, strict=True))

    return replace(
        schedule,
        chunks=schedule.chunks * segments,
        rounds=rounds,
        in_flight=schedule.in_flight * in_flight,
    )


def pipelined(schedule: Schedule, segments: int) -> Schedule:
    """Let the schedule run over `segments` segments, each one round behind the one before it.

    For schedules in step: where a rank has nothing to do while others have, its round is empty.
    """

    def rounds(rank: int) -> Iterator[Round]:
        return (tuple(chain.from_iterable(wave)) for wave in _waves(schedule, rank, segments))

    return replace(schedule, chunks=schedule.chunks * segments, rounds=rounds)


def staggered(schedule: Schedule, segments: int) -> Schedule:
    """Let the schedule run over `segments` segments, each one round behind the one before it.

    As `pipelined`, for schedules in step, but rounds of different segments stay apart: while one
    segment is inside a node, the one before it is between nodes, and neither waits for the other.
    The round of a young segment begins before that of an older one is waited for, so the slowest
    link always has the next segment at hand.

    It cannot deadlock. All ranks begin rounds, and wait for them, in one order: by time, then by
    segment. So the first round in that order that is not through is one that all its ranks can
    begin.
    """
    if segments == 1:
        return schedule
    length = len(tuple(schedule.rounds(0)))

    def rounds(rank: int) -> Iterator[Round]:
        return chain.from_iterable(_waves(schedule, rank, segments))

    return replace(schedule, chunks=schedule.chunks * segments, rounds=rounds, in_flight=length + 1)


def _waves(schedule: Schedule, rank: int, segments: int) -> Iterator[list[Round]]:
    """Yield what a rank does at a time: a round of each segment under way, the youngest first."""
    waiting = (_segment(schedule, rank, segment) for segment in range(segments))
    running: list[Iterator[Round]] = []
    while True:
        running[:0] = islice(waiting, 1)
        moved = [(segment, next(segment, None)) for segment in running]
        running = [segment for segment, steps in moved if steps is not None]
        if not running:
            return
        yield [steps for _, steps in moved if steps is not None]


def _segment(schedule: Schedule, rank: int, segment: int) -> Iterator[Round]:
    return relabel(schedule.rounds(rank), range(schedule.size), first=segment * schedule.chunks)


def messages(steps: Round, split: Split) -> Iterator[tuple[Step, int]]:
    """Yield the steps of a round that move something, each with the tag that tells it apart.

    It counts the messages between two ranks in one direction: MPI may start those of a round in any
    order. Raises ScheduleError for more than MOST_MESSAGES of them.
    """
    nth: dict[tuple[type[Step], int], int] = {}
    for step in steps:
        if split.length(step.first, step.chunks):
            way = type(step), step.peer
            tag = nth.get(way, 0)
            if tag == MOST_MESSAGES:
                raise ScheduleError(f"more than {MOST_MESSAGES} messages to one rank in {steps}")
            nth[way] = tag + 1
            yield step, tag


def meetings(rank: int, steps: Round) -> Iterator[Meeting]:
    """What `rank` has to combine after it waited for a round.

    Rank order, rather than the order of arrival, makes the result of each chunk a fixed expression:
    two ranks that combine the same contributions end bitwise equal, and an operation that does not
    commute gets its operands from left to right.
    """
    where: dict[tuple[int, int], list[int]] = {}
    for step in steps:
        if isinstance(step, Recv) and step.reduce:
            where.setdefault((step.first, step.chunks), [rank]).append(step.peer)
    for (first, chunks), ranks in where.items():
        yield Meeting(first, chunks, tuple(sorted(ranks)))


def check_round(rank: int, steps: Round) -> None:
    """Raise ScheduleError where a round breaks the rule at the top of this module."""
    sent = {chunk for step in steps if isinstance(step, Send) for chunk in _chunks(step)}
    received: dict[int, tuple[Recv, set[int]]] = {}  # by chunk: the first, and the peers of all
    for step in steps:
        if step.peer == rank:
            raise ScheduleError(f"rank {rank} exchanges with itself: {step}")
        if isinstance(step, Send):
            continue
        for chunk in _chunks(step):
            other, peers = received.setdefault(chunk, (step, set()))
            meet = step.reduce and other.reduce and step[1:3] == other[1:3]
            if (peers and not meet) or step.peer in peers:
                raise ScheduleError(f"rank {rank}: {other} and {step} of one round overlap")
            if not step.reduce and chunk in sent:
                raise ScheduleError(f"rank {rank}: {step} and a send of one round overlap")
            peers.add(step.peer)


class Turn(NamedTuple):
    """What a rank does next: it starts the round of that number, or completes it."""

    starts: bool
    number: int


def in_turn(rounds: Iterable[Round], in_flight: int, group: Collection[int] = ()) -> Iterator[Turn]:
    """Yield what a rank does, in order: who carries its rounds out, and who proves them, reads it.

    A round is started once those in flight that it `depends` on are complete, and fewer than
    `in_flight` are left; rounds are completed in the order in which they were started. But one
    inside `group`, whose ranks share memory, is completed at once: its loads and stores wait.
    """
    flights: deque[tuple[int, Round]] = deque()
    for number, steps in enumerate(rounds):
        while len(flights) == in_flight or any(depends(steps, other) for _, other in flights):
            yield Turn(False, flights.popleft()[0])
        yield Turn(True, number)
        if is_inside(steps, group):
            yield Turn(False, number)
        else:
            flights.append((number, steps))
    yield from (Turn(False, number) for number, _ in flights)


def depends(steps: Round, earlier: Round) -> bool:
    """Whether a round has to wait until an earlier one is through: one receives what both touch."""
    if not steps or not earlier or _end(steps) <= _begin(earlier) or _end(earlier) <= _begin(steps):
        return False
    return any(
        isinstance(one, Recv) or isinstance(other, Recv)
        for one in steps
        for other in earlier
        if one.first < other.first + other.chunks and other.first < one.first + one.chunks
    )


def _begin(steps: Round) -> int:
    return min(step.first for step in steps)


def _end(steps: Round) -> int:
    return max(step.first + step.chunks for step in steps)


def _chunks(step: Step) -> range:
    return range(step.first, step.first + step.chunks)
