"""What a schedule moves, counted from its rounds."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mpiring.chunks import Split
from mpiring.schedule import Recv, Rounds, Schedule, Send, segmented
from mpiring.topology import Groups, Topology

PAGE = 4096
"""Bytes of scratch that a plan may take at the least."""


class Traffic(NamedTuple):
    """What one rank does in one run. Empty messages are never sent, so they do not count."""

    rounds: int = 0
    """From its first message to its last: rounds in between, in which it waits for others, count.
    """
    messages_sent: int = 0
    messages_received: int = 0
    elements_sent: int = 0
    elements_received: int = 0
    elements_reduced: int = 0
    """Elements that it adds to others, or whatever the operation does."""


def traffic(rounds: Rounds, split: Split) -> Traffic:
    """Count the rounds of a rank, its messages and their elements."""
    edges = split.edges
    busy: list[int] = []
    messages_sent = messages_received = sent = received = reduced = 0
    for index, steps in enumerate(rounds):
        before = messages_sent + messages_received
        for step in steps:
            length = edges[step.first + step.chunks] - edges[step.first]
            if not length:
                continue
            if isinstance(step, Send):
                messages_sent += 1
                sent += length
            else:
                messages_received += 1
                received += length
                reduced += length if step.reduce else 0
        if messages_sent + messages_received > before:
            busy.append(index)
    return Traffic(span(busy), messages_sent, messages_received, sent, received, reduced)


def crossings(schedule: Schedule, rank: int, split: Split, nodes: Groups) -> int:
    """Return how many messages a rank sends to other nodes than its own."""
    (mine,) = (node for node in map(frozenset, nodes) if rank in node)
    return sum(
        isinstance(step, Send)
        and step.peer not in mine
        and split.length(step.first, step.chunks) > 0
        for steps in schedule.rounds(rank)
        for step in steps
    )


def span(busy: Sequence[int]) -> int:
    """Return how many rounds there are from the first to the last of the `busy` ones."""
    return busy[-1] - busy[0] + 1 if busy else 0


def scratch_length(rounds: Rounds, split: Split, in_flight: int = 1) -> int:
    """Return the elements that the reducing receives need at once, at most.

    Each of the rounds in flight has its own scratch, as long as the neediest round.
    """
    edges = split.edges
    longest = 0
    for steps in rounds:
        length = 0
        for step in steps:
            if isinstance(step, Recv) and step.reduce:
                length += edges[step.first + step.chunks] - edges[step.first]
        longest = max(longest, length)
    return in_flight * longest


def pieces(scratch_nbytes: int, count: int, itemsize: int) -> int:
    """Return in how many pieces, one after the other, a buffer has to run to bound the scratch.

    The bound is one buffer, or one page where the buffer is smaller than that; or what one element
    at a time takes.
    """
    wanted = -(-scratch_nbytes // max(count * itemsize, PAGE))
    return max(1, min(wanted, count))


class Total(NamedTuple):
    """What all ranks do in one run, counted from their rounds."""

    ranks: list[Traffic]
    across: list[int]
    """Elements that cross each level of the topology, and before these, that cross none: inside
    the innermost groups. A message counts for the outermost level that it crosses."""
    scratch_nbytes: int
    """Of the rank that needs most."""


def total(schedule: Schedule, topology: Topology, count: int, itemsize: int) -> Total:
    """Walk the rounds of all ranks, a rank at a time, as `allreduce` would run them."""
    split = Split(count, schedule.chunks)
    group_of = [
        {rank: index for index, group in enumerate(level.groups) for rank in group}
        for level in topology.levels
    ]
    walked: list[tuple[Traffic, int]] = []  # with the number of rounds, idle ones too
    across = [0] * (1 + len(group_of))
    scratch = 0
    for rank in range(schedule.size):
        rounds = tuple(schedule.rounds(rank))
        walked.append((traffic(rounds, split), len(rounds)))
        by_message = schedule.by_message(rank, rounds)
        scratch = max(scratch, itemsize * scratch_length(by_message, split, schedule.in_flight))
        for peer, length in _sent_to(rounds, split).items():
            across[sum(groups[peer] != groups[rank] for groups in group_of)] += length
    cut = pieces(scratch, count, itemsize)
    if cut > 1 and count < cut * schedule.chunks:  # some pieces lack some messages
        return total(segmented(schedule, cut), topology, count, itemsize)
    ranks = [
        whole._replace(
            rounds=whole.rounds and whole.rounds + (cut - 1) * length,
            messages_sent=whole.messages_sent * cut,
            messages_received=whole.messages_received * cut,
        )
        for whole, length in walked
    ]
    return Total(ranks, across, -(-scratch // cut))


def _sent_to(rounds: Rounds, split: Split) -> Counter[int]:
    """Count the elements that go to each peer."""
    edges = split.edges
    sent: Counter[int] = Counter()
    for steps in rounds:
        for step in steps:
            if isinstance(step, Send):
                sent[step.peer] += edges[step.first + step.chunks] - edges[step.first]
    return sent
