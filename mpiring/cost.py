"""What a schedule moves, counted from its rounds."""

from typing import NamedTuple

from mpiring.chunks import Split
from mpiring.schedule import Recv, Rounds, Send


class Traffic(NamedTuple):
    """What one rank does in one run. Empty messages are never sent, so they do not count."""

    rounds: int
    messages_sent: int
    elements_sent: int


def traffic(rounds: Rounds, split: Split) -> Traffic:
    """Count the rounds in which this rank does something, its messages and the elements in them."""
    busy = messages = elements = 0
    for steps in rounds:
        lengths = [(step, split.length(step.first, step.chunks)) for step in steps]
        sent = [length for step, length in lengths if length and isinstance(step, Send)]
        busy += any(length for _, length in lengths)
        messages += len(sent)
        elements += sum(sent)
    return Traffic(busy, messages, elements)


def scratch_length(rounds: Rounds, split: Split) -> int:
    """Return the elements that the reducing receives of one round need at once, at most."""
    return max(
        (
            sum(split.length(s.first, s.chunks) for s in steps if isinstance(s, Recv) and s.reduce)
            for steps in rounds
        ),
        default=0,
    )
