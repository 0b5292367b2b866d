"""A scaling study as text."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from mpiring.report.cells import by_size, interval_of, microseconds, time
from mpiring.report.plain import plain_table
from mpiring.scaling import Curve
from mpiring.units import format_size


def scaling_table(curves: Sequence[Curve]) -> Table:
    """Return the table of a scaling study: a line for each step, a gap after each curve."""
    table = plain_table(
        *("size", "algorithm", "ranks", "nodes", "time (us)", "95 % interval", "busbw (GB/s)"),
        *("efficiency", "95 % interval"),
        left=("algorithm",),
    )
    for curve in curves:
        for step in curve.steps:
            point = step.point
            table.add_row(
                format_size(curve.nbytes),
                curve.algorithm,
                str(point.ranks),
                str(step.nodes),
                time(point) + ("~" if point.noisy else " "),
                interval_of(point.summary.interval if point.summary else None, microseconds),
                "-" if point.busbw is None else f"{point.busbw:.3g}",
                "-" if step.efficiency is None else f"{step.efficiency:.2f}",
                interval_of(step.interval, "{:.2f}".format),
                end_section=step is curve.steps[-1],
            )
    return table


def scaling_lines(curves: Sequence[Curve], least: float) -> Iterator[str]:
    """Yield where each algorithm stops scaling, sizes with the same answer together."""
    yield from by_size((c.algorithm, c.nbytes, _scales(c, least)) for c in curves)


def _scales(curve: Curve, least: float) -> str:
    stop, last = curve.stop(least), curve.steps[-1]
    if stop:
        return f"stops scaling at {stop.place}, where efficiency is below {least:g}"
    known = [step for step in curve.steps if step.efficiency is not None]
    if len(known) < 2:
        return "its efficiency is not known"
    if known[-1] is last and last.efficiency and last.efficiency < least:
        return f"may have stopped scaling at {last.place}: the interval reaches {least:g}"
    if known[-1].interval and known[-1].interval[0] < least:
        return f"may scale to {known[-1].place}: the interval reaches below {least:g}"
    beyond = "" if known[-1] is last else ", and is below the noise floor beyond"
    return f"scales to {known[-1].place}{beyond}"
