"""A comparison of two results as text."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from mpiring.compare import Compared, Comparison
from mpiring.report.cells import by_size, floor, interval_of, time
from mpiring.report.plain import plain_table
from mpiring.units import format_size


def compared_table(compared: Sequence[Compared]) -> Table:
    """Return the table of a comparison: a line for each point, a gap after each size."""
    columns = ("old (us)", "new (us)", "speed-up", "95 % interval", "verdict")
    table = plain_table("size", "algorithm", *columns, left=("algorithm", "verdict"))
    for one, following in zip(compared, [*compared[1:], None], strict=True):
        table.add_row(
            format_size(one.old.nbytes),
            one.old.algorithm,
            time(one.old),
            time(one.new),
            f"{one.speedup.ratio:.3f}x",
            interval_of(one.speedup.interval, "{:.3f}".format),
            one.speedup.verdict,
            end_section=following is not None and following.old.nbytes != one.old.nbytes,
        )
    return table


def unclear(compared: Sequence[Compared]) -> Iterator[str]:
    """Yield a line for each algorithm that has no verdict since a time is below its noise floor."""
    yield from by_size(
        (point.algorithm, point.nbytes, f"{side} time below the noise floor of {floor(point)}")
        for one in compared
        for side, point in (("old", one.old), ("new", one.new))
        if point.below_noise_floor
    )


def missing_lines(comparison: Comparison) -> Iterator[str]:
    """Yield a line for each point that one side alone has a time for, equal ones together."""
    yield from by_size(
        (m.algorithm, m.nbytes, f"no time in the {m.side} result: {m.reason}")
        for m in comparison.missing
    )
