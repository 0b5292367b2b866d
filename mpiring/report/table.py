"""Results as a table of text."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from mpiring.compare import Compared
from mpiring.results import NOISY_CV, Point, Result
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
            f"noise floor {at['noise']['floor_s'] * 1e6:.1f} us",
        ]
    )


def notes(points: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each remark, with the sizes it holds for."""
    sizes: dict[tuple[str, str], list[str]] = {}
    for point in points:
        for note in _remarks(point):
            sizes.setdefault((point.algorithm, note), []).append(format_size(point.nbytes))
    if any(point.noisy for point in points):
        yield f"~ noisy: the samples spread by more than {NOISY_CV:.0%} of their mean"
    everywhere = len({point.nbytes for point in points})
    for (algorithm, note), where in sizes.items():
        at = "" if len(where) == everywhere else f" at {', '.join(where)}"
        yield f"{algorithm}{at}: {note}"


def _remarks(point: Point) -> Iterator[str]:
    if point.note:
        yield point.note
    if point.below_noise_floor:
        yield f"below the noise floor of {point.noise_floor_s * 1e6:.1f} us"
    if point.ranks_equal is False:
        yield "the ranks' results differ in their bits"


class PointsTable:
    """The table of a benchmark, whose rows are printed as the points come."""

    def __init__(self, sizes: Sequence[int], algorithms: Sequence[str]) -> None:
        # Wide enough for what will come, so that the rows of all sizes stand in line.
        self.widths = {
            "size": max(len(format_size(nbytes)) for nbytes in sizes),
            "count": len(str(max(sizes))),
            "algorithm": max(map(len, algorithms)),
            "time (us)": 10,
            "95 % interval": 19,
            "algbw (GB/s)": 0,
            "busbw (GB/s)": 0,
            "of limit": 0,
            "vs native": 13,
            "check": 0,
        }
        self.begun = False

    def rows(self, points: Sequence[Point]) -> str:
        """Return the lines of the points; the first time with the header."""
        table = Table(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=not self.begun
        )
        for name, width in self.widths.items():
            table.add_column(
                name,
                justify="left" if name in ("algorithm", "vs native", "check") else "right",
                no_wrap=True,
                min_width=max(width, len(name)),
            )
        for point, following in zip(points, [*points[1:], None], strict=True):
            table.add_row(
                format_size(point.nbytes),
                str(point.count),
                point.algorithm,
                _number(point.median_s, 1, 1e6) + ("~" if point.noisy else " "),
                _interval(point),
                _number(point.algbw, 4),
                _number(point.busbw, 4),
                "-" if point.percent_of_limit is None else f"{point.percent_of_limit:.0f} %",
                _speedup(point),
                _check(point),
                end_section=following is not None and following.nbytes != point.nbytes,
            )
        gap = "\n" if self.begun else ""
        self.begun = True
        return gap + render(table)


def compared_table(compared: Sequence[Compared]) -> Table:
    """Return the table of a comparison: a line for each point, a gap after each size."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for header in (
        "size",
        "algorithm",
        "old (us)",
        "new (us)",
        "speed-up",
        "95 % interval",
        "verdict",
    ):
        left = header in ("algorithm", "verdict")
        table.add_column(header, justify="left" if left else "right", no_wrap=True)
    for one, following in zip(compared, [*compared[1:], None], strict=True):
        low, high = one.speedup.interval or (float("nan"), float("nan"))
        table.add_row(
            format_size(one.old.nbytes),
            one.old.algorithm,
            _number(one.old.median_s, 1, 1e6),
            _number(one.new.median_s, 1, 1e6),
            f"{one.speedup.ratio:.3f}x",
            f"{low:.3f}..{high:.3f}",
            one.speedup.verdict,
            end_section=following is not None and following.old.nbytes != one.old.nbytes,
        )
    return table


def _number(value: float | None, digits: int, scale: float = 1) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}"


def _interval(point: Point) -> str:
    if point.summary is None or point.summary.interval is None:
        return "-"
    low, high = point.summary.interval
    return f"{low * 1e6:.1f}..{high * 1e6:.1f}"


def _speedup(point: Point) -> str:
    if point.speedup is None:
        return "-"
    if point.algorithm == "native":
        return "1"
    return f"{point.speedup.ratio:.2f}x {point.speedup.verdict}"


def _check(point: Point) -> str:
    if point.check_ok is None:
        return "not checked" if point.samples_s else "n/a"
    return "ok" if point.check_ok else "WRONG"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
