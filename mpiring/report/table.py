"""Results as a table of text."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from mpiring.results import Point, Result
from mpiring.units import format_size


def render(table: Table) -> str:
    """Return the table as text, at its own width: a narrow terminal cuts nothing off."""
    console = Console(highlight=False)
    wide = console.options.update(width=10**4)
    console.width = Measurement.get(console, wide, table).maximum
    with console.capture() as lines:
        console.print(table)
    return "\n".join(line.rstrip() for line in lines.get().splitlines())


def header(result: Result) -> str:
    """Return the line that says what the numbers below it were measured on."""
    at, config = result.environment, result.config
    return ", ".join(
        [
            f"mpiring {at['mpiring']}",
            at["mpi_library"],
            f"{_counted(at['ranks'], 'rank')} on {_counted(at['nodes'], 'node')}"
            f" with {_counted(at['cores'], 'core')}",
            f"{config['dtype']} {config['op']}{' in place' if config['in_place'] else ''}",
        ]
    )


def notes(points: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each remark, with the sizes it holds for."""
    sizes: dict[tuple[str, str], list[str]] = {}
    for point in points:
        if point.note:
            sizes.setdefault((point.algorithm, point.note), []).append(format_size(point.nbytes))
    everywhere = len({point.nbytes for point in points})
    for (algorithm, note), where in sizes.items():
        at = "" if len(where) == everywhere else f" at {', '.join(where)}"
        yield f"{algorithm}{at}: {note}"


def points_table(points: Sequence[Point]) -> Table:
    """Return the table of a benchmark: a line for each point, a gap after each size."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("algorithm", no_wrap=True)
    for header in ("time (us)", "min (us)", "algbw (GB/s)", "busbw (GB/s)", "vs native"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("check", no_wrap=True)
    for point, following in zip(points, [*points[1:], None], strict=True):
        table.add_row(
            format_size(point.nbytes),
            str(point.count),
            point.algorithm,
            _number(point.median_s, 1, 1e6),
            _number(min(point.samples_s, default=None), 1, 1e6),
            _number(point.algbw, 4),
            _number(point.busbw, 4),
            "-" if point.speedup_vs_native is None else f"{point.speedup_vs_native:.2f}x",
            _check(point),
            end_section=following is not None and following.nbytes != point.nbytes,
        )
    return table


def _number(value: float | None, digits: int, scale: float = 1) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}"


def _check(point: Point) -> Text:
    if point.check_ok is False:
        return Text("WRONG", style="bold red")
    if point.check_ok is None:
        return Text("n/a" if point.note else "not checked")
    return Text("ok")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
