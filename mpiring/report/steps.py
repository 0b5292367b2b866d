"""The steps of a schedule as text."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from operator import attrgetter

from mpiring.chunks import Split
from mpiring.closed_forms import lower_bound
from mpiring.cost import traffic
from mpiring.explain import Frame, Held, Message
from mpiring.report.plain import WIDTH, plain_table, render
from mpiring.schedule import Schedule
from mpiring.units import counted, rows_of

TOGETHER = "\u00a0"
"""A space at which no line is broken."""
SPELLED = 4
"""Up to so many contributions are written one by one."""


def chunk_name(chunk: int) -> str:
    """Return a, b, ..., z, aa, ab, ..."""
    name = ""
    chunk += 1
    while chunk:
        chunk, letter = divmod(chunk - 1, 26)
        name = chr(ord("a") + letter) + name
    return name


def chunk_names(first: int, chunks: int) -> str:
    """Return the names of neighbouring chunks: `a`, `a b`, `a-d`."""
    names = [chunk_name(chunk) for chunk in range(first, first + chunks)]
    return " ".join(names) if chunks < 3 else f"{names[0]}-{names[-1]}"


def held_text(chunk: int, held: Held) -> str:
    """Return what a chunk holds: `a0+a1+a2`, or `a0+..+a7` for a long row of ranks."""
    name = chunk_name(chunk)
    if len(held) <= SPELLED:
        return "+".join(f"{name}{rank}" for rank in held)
    parts = []
    for first, last in rows_of(held):
        between = last - first
        parts += [f"{name}{first}"] + [".."] * (between > 1) + [f"{name}{last}"] * (between > 0)
    return "+".join(parts)


def steps_text(
    title: str, schedule: Schedule, moments: Sequence[Frame], only: int | None = None
) -> Iterator[str]:
    """Yield the lines: what is cut, a table for each step, or `only` one of them, and the sum."""
    chunks, steps = schedule.chunks, len(moments) - 1
    yield f"{title}: {cut_text(chunks)}"
    for number, (before, frame) in enumerate(pairwise(moments), start=1):
        if only in (None, number):
            yield ""
            yield f"round {number} of {steps}"
            yield step_table(before, frame)
    yield ""
    yield closing(schedule, steps)


def cut_text(chunks: int) -> str:
    """Return what becomes of the buffer, and what a0 means."""
    if chunks == 1:
        return "the buffer, a, stays whole; a0 is what rank 0 brings"
    return f"the buffer is cut into {chunks} chunks, {chunk_names(0, chunks)}; a0 is rank 0's a"


def closing(schedule: Schedule, steps: int) -> str:
    """Return what it took, beside the lower bound, in buffers of n bytes."""
    size = schedule.size
    split = Split(schedule.chunks, schedule.chunks)
    walked = [traffic(schedule.rounds(rank), split) for rank in range(size)]
    sent = [Fraction(t.elements_sent, schedule.chunks) for t in walked]
    messages = [t.messages_sent for t in walked]
    bound = lower_bound(size, 1)
    least = "" if min(sent) == max(sent) else f"{_times_n(min(sent))} to "
    fewest = "" if min(messages) == max(messages) else f"{min(messages)} to "
    return (
        f"{counted(steps, 'round')}. Each rank sends {fewest}{counted(max(messages), 'message')},"
        f" {least}{_times_n(max(sent))} in all;"
        f" the bound, 2(N-1)/N n, is {_times_n(bound)}."
    )


def _times_n(buffers: Fraction) -> str:
    return f"{float(buffers):.4g} n"


def step_table(before: Frame, frame: Frame) -> str:
    """Return a step as a table: what each rank that takes part sends, takes, and then holds."""
    texts = ("sends", "takes", "holds after it")
    table = plain_table("rank", *texts, left=texts, wrapped=texts)
    for rank in range(len(frame.held)):
        sends = [m for m in frame.messages if m.sender == rank]
        takes = [m for m in frame.messages if m.receiver == rank]
        if sends or takes:
            table.add_row(
                str(rank),
                ", ".join(_grouped(sends, "to", attrgetter("receiver"))),
                ", ".join(_grouped(takes, "from", attrgetter("sender"))),
                _holds(frame, rank, takes),
            )
    return render(table, WIDTH).replace(TOGETHER, " ")


def _grouped(messages: Sequence[Message], word: str, peer: "attrgetter[int]") -> Iterator[str]:
    """Yield `a to 1 2 3`: the chunks, and the peers that they go to or come from."""

    def chunks(message: Message) -> tuple[int, int]:
        return message.first, message.chunks

    for part, group in groupby(sorted(messages, key=chunks), key=chunks):
        text = f"{chunk_names(*part)} {word} {' '.join(str(peer(m)) for m in group)}"
        yield text.replace(" ", TOGETHER)


def _holds(frame: Frame, rank: int, takes: Sequence[Message]) -> str:
    """What it holds that is new: each sum; or, once chunks arrive complete, all that it has so."""
    touched = {c: m for m in takes for c in range(m.first, m.first + m.chunks)}
    copied = any(not message.reduce for message in takes)
    complete = frame.complete(rank) if copied else []
    held = [held_text(c, frame.held[rank][c]) for c in touched if c not in complete]
    if complete:
        rows = (chunk_names(first, last - first + 1) for first, last in rows_of(complete))
        held.append(f"all of {' '.join(rows)}")
    return ", ".join(held)
