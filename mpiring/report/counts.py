"""What algorithms move, as a table, CSV or JSON."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from mpiring.algorithms import Algorithm
from mpiring.closed_forms import closed_form, lower_bound
from mpiring.cost import total
from mpiring.options import Options
from mpiring.report.plain import plain_table, render
from mpiring.topology import Topology
from mpiring.units import counted, format_amount


@dataclass(frozen=True)
class Counts:
    """What one run of an algorithm moves, in bytes. None where a closed form does not say."""

    algorithm: str
    rounds: int | None = None
    messages_sent_least: int | None = None
    messages_sent_most: int | None = None
    bytes_sent_least: int | None = None
    bytes_sent_most: int | None = None
    bytes_received_least: int | None = None
    bytes_received_most: int | None = None
    bytes_reduced_most: int | None = None
    scratch_bytes_most: int | None = None
    bytes_across: tuple[int, ...] | None = None
    """Of all ranks: inside the innermost groups, then across each level of the topology."""
    note: str = ""


def from_rounds(
    algorithm: Algorithm, topology: Topology, options: Options, count: int, itemsize: int
) -> Counts:
    """Walk the rounds of every rank."""
    schedule = algorithm.scheduled(topology, options, count, itemsize)
    ranks, across, scratch = total(schedule, topology, count, itemsize)
    sent = [rank.elements_sent * itemsize for rank in ranks]
    received = [rank.elements_received * itemsize for rank in ranks]
    return Counts(
        algorithm.name,
        rounds=max(rank.rounds for rank in ranks),
        messages_sent_least=min(rank.messages_sent for rank in ranks),
        messages_sent_most=max(rank.messages_sent for rank in ranks),
        bytes_sent_least=min(sent),
        bytes_sent_most=max(sent),
        bytes_received_least=min(received),
        bytes_received_most=max(received),
        bytes_reduced_most=max(rank.elements_reduced for rank in ranks) * itemsize,
        scratch_bytes_most=scratch,
        bytes_across=tuple(elements * itemsize for elements in across),
        note=algorithm.remark(topology, options),
    )


def from_forms(
    algorithm: Algorithm, topology: Topology, options: Options, count: int, itemsize: int
) -> Counts:
    """Evaluate the closed forms."""
    form = closed_form(algorithm, topology, options, count, itemsize)
    if form is None:
        return Counts(algorithm.name, note="its closed forms are for one level of equal nodes")
    return Counts(
        algorithm.name,
        rounds=form.rounds,
        messages_sent_most=form.messages_sent,
        bytes_sent_most=ceil(form.bytes_sent),
        note=algorithm.remark(topology, options),
    )


def to_table(rows: Sequence[Counts], topology: Topology, nbytes: int) -> str:
    """Return a row for each algorithm, and below what the columns are measured by."""
    bound = lower_bound(topology.size, nbytes)
    walked = any(row.bytes_across for row in rows)
    headers = ["rounds", "messages\nof a rank", "sent by\na rank", "sent most\n/ bound"]
    if walked:
        headers += ["received by\na rank", "added up\nat most", "scratch\nat most"]
        headers += [f"{where},\nin all" for where in _places(topology)]
    table = plain_table("algorithm", *headers, left=("algorithm",))
    for row in rows:
        if row.rounds is None:
            table.add_row(row.algorithm, "n/a")
            continue
        cells = [
            f"{row.rounds}",
            _range(row.messages_sent_least, row.messages_sent_most, str),
            _range(row.bytes_sent_least, row.bytes_sent_most, format_amount),
            f"{(row.bytes_sent_most or 0) / float(bound):.3g}" if bound else "-",
        ]
        if row.bytes_across:
            amounts = (row.bytes_reduced_most, row.scratch_bytes_most, *row.bytes_across)
            cells.append(_range(row.bytes_received_least, row.bytes_received_most, format_amount))
            cells += [format_amount(amount or 0) for amount in amounts]
        table.add_row(row.algorithm, *cells)
    lines = [
        f"{counted(topology.size, 'rank')} in {counted(len(topology.nodes), 'node')},"
        f" {format_amount(nbytes)} each; at least {format_amount(float(bound))} are sent by the"
        " busiest rank of any algorithm: 2(N-1)/N n",
        render(table),
    ]
    if not walked:
        lines.append("From closed forms, for the busiest rank.")
    lines += [f"{row.algorithm}: {row.note}" for row in rows if row.note]
    return "\n".join(lines)


def to_csv(rows: Sequence[Counts], topology: Topology, nbytes: int) -> str:
    """Return a line for each algorithm below a header; what is not known is an empty field."""
    text = io.StringIO()
    documents = [_document(row, topology) for row in rows]
    columns = list(dict.fromkeys(name for document in documents for name in document))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(documents)
    return text.getvalue().rstrip("\n")


def to_json(rows: Sequence[Counts], topology: Topology, nbytes: int) -> str:
    """Return the ranks, the size, the bound, and an object for each algorithm."""
    document = {
        "ranks": topology.size,
        "nodes": len(topology.nodes),
        "nbytes": nbytes,
        "lower_bound_bytes_sent": float(lower_bound(topology.size, nbytes)),
        "algorithms": [_document(row, topology) for row in rows],
    }
    return json.dumps(document, indent=1)


FORMATS: dict[str, Callable[[Sequence[Counts], Topology, int], str]] = {
    "table": to_table,
    "csv": to_csv,
    "json": to_json,
}


def _places(topology: Topology) -> list[str]:
    names = [level.name for level in topology.levels]
    return [f"inside {names[0]}", *(f"across {name}" for name in names)]


def _document(row: Counts, topology: Topology) -> dict[str, Any]:
    document = asdict(row)
    across = document.pop("bytes_across") or [None] * (1 + len(topology.levels))
    places = (f"bytes_{place.replace(' ', '_')}" for place in _places(topology))
    return document | dict(zip(places, across, strict=True))


def _range(least: float | None, most: float | None, write: Callable[[Any], str]) -> str:
    last = write(most)
    return last if least is None or write(least) == last else f"{write(least)}..{last}"
