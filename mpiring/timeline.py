"""Where the time of a run went: what each rank did when, as a trace file, and summed up.

The file is in Chrome's trace event format, which chrome://tracing and ui.perfetto.dev draw: a
process for each run of an algorithm at a size, a thread for each rank, times in microseconds on the
clock that all ranks share.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from mpiring.errors import UsageError
from mpiring.schedule import Send, Step
from mpiring.units import format_size

FORMAT = "mpiring.trace/1"
KINDS = ("waiting", "transfer", "reduction", "copy", "memory", "library")
"""What a rank can be doing: waiting for a peer that has not begun the round; moving messages;
combining what arrived; copying between buffers; meeting others in the memory of its node, with what
they do there block by block; or inside the MPI library's own collective. What is left of a run is
Python."""


class Span(NamedTuple):
    """What a rank did from `begin` to `end`, in seconds, in which of its rounds."""

    kind: str
    round: int
    begin: float
    end: float
    peer: int | None = None
    """Whom it waited for."""


@dataclass(frozen=True)
class RankTrace:
    """One rank's run: from `begin` to `end`, its spans, and what its rounds move, with tags."""

    begin: float
    end: float
    spans: tuple[Span, ...]
    rounds: tuple[tuple[tuple[Step, int], ...], ...] = ()


@dataclass(frozen=True)
class Run:
    """One run of an algorithm: what each rank did."""

    algorithm: str
    nbytes: int
    ranks: Sequence[RankTrace] = field(default_factory=tuple)


def attributed(ranks: Sequence[RankTrace]) -> Iterator[tuple[Span, ...]]:
    """Yield the spans of each rank, with every wait divided.

    Until the last of its peers has begun the matching round, a rank waits for that peer; from then
    on, for the messages.
    """
    began = [
        {span.round: span.begin for span in rank.spans if span.kind == "start"} for rank in ranks
    ]
    last: dict[tuple[int, int], tuple[float, int]] = {}  # by rank and round: who began last, when
    for sender, sent, receiver, received in _matches(ranks):
        for rank, number, peer, matching in (
            (sender, sent, receiver, received),
            (receiver, received, sender, sent),
        ):
            other = (began[peer][matching], peer)
            last[rank, number] = max(last.get((rank, number), other), other)
    for rank, trace in enumerate(ranks):
        spans: list[Span] = []
        for span in trace.spans:
            if span.kind != "wait":
                spans.append(span._replace(kind="transfer") if span.kind == "start" else span)
                continue
            instant, peer = last[rank, span.round]
            met = min(max(span.begin, instant), span.end)
            if met > span.begin:
                spans.append(span._replace(kind="waiting", end=met, peer=peer))
            spans.append(span._replace(kind="transfer", begin=met))
        yield tuple(spans)


def _matches(ranks: Sequence[RankTrace]) -> Iterator[tuple[int, int, int, int]]:
    """Yield sender, its round, receiver, and its round, of each message."""
    sent: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    received: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for rank, trace in enumerate(ranks):
        for number, moving in enumerate(trace.rounds):
            for step, tag in moving:
                if isinstance(step, Send):
                    sent[rank, step.peer, tag].append(number)
                else:
                    received[step.peer, rank, tag].append(number)
    for link, rounds in sent.items():
        for here, there in zip(rounds, received[link], strict=True):
            yield link[0], here, link[1], there


def to_trace(runs: Sequence[Run], clock_error_s: float) -> str:
    """Return the runs as trace event JSON."""
    origin = min((rank.begin for run in runs for rank in run.ranks), default=0.0)
    return json.dumps(
        {
            "otherData": {"format": FORMAT, "clock_error_us": round(clock_error_s * 1e6, 3)},
            "displayTimeUnit": "ns",
            "traceEvents": [
                event for pid, run in enumerate(runs) for event in _events(pid, run, origin)
            ],
        },
        indent=0,
    )


def _events(pid: int, run: Run, origin: float) -> Iterator[dict[str, Any]]:
    def event(rank: int, name: str, kind: str, begin: float, end: float, **args: Any) -> Any:
        return {
            "name": name,
            "cat": kind,
            "ph": "X",
            "pid": pid,
            "tid": rank,
            "ts": round((begin - origin) * 1e6, 3),
            "dur": round((end - begin) * 1e6, 3),
            "args": args,
        }

    name = f"{run.algorithm} {format_size(run.nbytes)}"
    yield {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}
    for rank, (trace, spans) in enumerate(zip(run.ranks, attributed(run.ranks), strict=True)):
        yield {
            "name": "thread_name",
            "ph": "M",
            "pid": pid,
            "tid": rank,
            "args": {"name": f"rank {rank}"},
        }
        yield event(
            rank,
            run.algorithm,
            "run",
            trace.begin,
            trace.end,
            algorithm=run.algorithm,
            nbytes=run.nbytes,
        )
        for span in spans:
            said = f"waiting for rank {span.peer}" if span.kind == "waiting" else span.kind
            args = {"round": span.round + 1} | ({} if span.peer is None else {"peer": span.peer})
            yield event(rank, said, span.kind, span.begin, span.end, **args)


class Breakdown(NamedTuple):
    """Where the time of a run went, in seconds, the sum over its ranks."""

    algorithm: str
    nbytes: int
    ranks: int
    elapsed: float
    """From the first rank's begin to the last one's end."""
    spent: Mapping[str, float]
    """By what the ranks did, `Python` among it."""
    slowest: int | None
    """The rank that the others waited for most, in turn or through others that waited for it; None
    where nobody waited."""
    waited_for: float
    """How long they did."""


class _Wait(NamedTuple):
    begin: float
    end: float
    peer: int


def _blamed(waits: Mapping[int, list[_Wait]]) -> Iterator[tuple[int, float]]:
    """Yield whom each wait is to blame on, and for how long: who waits itself is not to blame.

    The part of a wait in which its peer waits for another one is a wait for that one.
    """
    for row in waits.values():
        row.sort()
    for rank, row in waits.items():
        pending = [(wait, frozenset({rank})) for wait in row]
        while pending:
            wait, chain = pending.pop()
            theirs = waits.get(wait.peer, [])
            done = wait.begin
            # Clocks that differ a little can close a circle, in which the last one is to blame.
            if wait.peer not in chain:
                first = max(0, bisect_right(theirs, (wait.begin,)) - 1)
                for other in theirs[first:]:
                    if other.begin >= wait.end:
                        break
                    begin, end = max(done, other.begin), min(wait.end, other.end)
                    if begin < end:
                        pending.append((_Wait(begin, end, other.peer), chain | {wait.peer}))
                        yield wait.peer, begin - done
                        done = end
            yield wait.peer, wait.end - done


def breakdowns(text: str, source: str) -> list[Breakdown]:
    """Return where the time of each run in a trace file went.

    Raises UsageError for a file that is not one of `bench --trace`, or is damaged.
    """
    try:
        document = json.loads(text)
        known = document["otherData"]["format"]
        events = document["traceEvents"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError(f"{source}: not a trace of mpiring bench --trace") from None
    if known != FORMAT:
        raise UsageError(f"{source}: its format is {known!r}, this program reads {FORMAT}")
    try:
        by_run: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                by_run[event["pid"]].append(_checked(event))
        runs = [_breakdown(by_run[pid]) for pid in sorted(by_run)]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"{source}: damaged: an event is not as mpiring writes it") from None
    if not runs:
        raise UsageError(f"{source}: no run was traced")
    return runs


def _checked(event: dict[str, Any]) -> dict[str, Any]:
    for name in ("ts", "dur"):
        if type(event[name]) not in (int, float) or not isfinite(event[name]):
            raise ValueError(name)
    if event["cat"] not in ("run", *KINDS) or type(event["tid"]) is not int or event["dur"] < 0:
        raise ValueError("event")
    return event


def _breakdown(events: Iterable[dict[str, Any]]) -> Breakdown:
    spent = dict.fromkeys(KINDS, 0.0)
    waits: dict[int, list[_Wait]] = defaultdict(list)
    runs = []
    for event in events:
        if event["cat"] == "run":
            runs.append(event)
        else:
            spent[event["cat"]] += event["dur"]
        if event["cat"] == "waiting":
            begin, end = event["ts"], event["ts"] + event["dur"]
            waits[event["tid"]].append(_Wait(begin, end, int(event["args"]["peer"])))
    about = runs[0]["args"] if runs else {}
    if not runs or type(about["nbytes"]) is not int or type(about["algorithm"]) is not str:
        raise ValueError("run")
    spent["Python"] = max(0.0, sum(run["dur"] for run in runs) - sum(spent.values()))
    waited: dict[int, float] = defaultdict(float)
    for rank, time in _blamed(waits):
        waited[rank] += time
    slowest, longest = max(waited.items(), key=lambda item: item[1], default=(None, 0.0))
    elapsed = max(run["ts"] + run["dur"] for run in runs) - min(run["ts"] for run in runs)
    return Breakdown(
        about["algorithm"],
        about["nbytes"],
        len(runs),
        elapsed * 1e-6,
        {kind: time * 1e-6 for kind, time in spent.items()},
        slowest,
        longest * 1e-6,
    )
