"""Results as a table of text."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from mpiring.results import Point, Result
from mpiring.units import format_size


def render(table: Table) -> str:
    """Return the table as plain text, at its own width: a narrow terminal cuts nothing off.

    Plain, since Open MPI gives ranks a terminal even where mpirun's output goes to a file.
    """
    console = Console(force_terminal=False, color_system=None, highlight=False)
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
            f"{_counted(at['ranks'], 'rank')} on {_counted(len(at['nodes']), 'node')}"
            f" with {_counted(sum(at['cores_per_node']), 'core')}",
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


class PointsTable:
    """The table of a benchmark, whose rows are printed as the points come."""

    def __init__(self, sizes: Sequence[int], algorithms: Sequence[str]) -> None:
        self.widths = {
            "size": max(len(format_size(nbytes)) for nbytes in sizes),
            "count": len(str(max(sizes))),
            "algorithm": max(map(len, algorithms)),
            "time (us)": 11,
            "min (us)": 11,
            "algbw (GB/s)": 0,
            "busbw (GB/s)": 0,
            "vs native": 0,
            "check": 0,
        }
        self.begun = False

    def rows(self, points: Sequence[Point]) -> str:
        """Return the lines of the points of one size; the first time with the header."""
        table = Table(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=not self.begun
        )
        for name, width in self.widths.items():
            left = name in ("algorithm", "check")
            table.add_column(
                name,
                justify="left" if left else "right",
                no_wrap=True,
                min_width=max(width, len(name)),
            )
        for point in points:
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
            )
        gap = "\n" if self.begun else ""
        self.begun = True
        return gap + render(table)


def _number(value: float | None, digits: int, scale: float = 1) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}"


def _check(point: Point) -> str:
    if point.check_ok is None:
        return "not checked" if point.samples_s else "n/a"
    return "ok" if point.check_ok else "WRONG"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
