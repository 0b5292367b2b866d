"""Results as a table of text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from mpiring.algorithms.algorithm import NATIVE
from mpiring.compare import Compared, Comparison
from mpiring.decision import NODE_SHARED
from mpiring.results import NOISY_CV, Point, Result
from mpiring.scaling import Curve
from mpiring.stats import Interval
from mpiring.units import counted, format_size

WIDTH = 100
"""Characters: what text for people keeps within, where it can."""


def render(table: Table, width: int | None = None) -> str:
    """Return the table as plain text, at its own width: a narrow terminal cuts nothing off.

    Or at most `width` wide, with cells of several lines.

    Plain, since Open MPI gives ranks a terminal even where mpirun's output goes to a file.
    """
    console = Console(force_terminal=False, color_system=None, highlight=False)
    wide = console.options.update(width=10**4)
    own = Measurement.get(console, wide, table).maximum
    console.width = min(own, width or own)
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
            f"{counted(at['ranks'], 'rank')} on {counted(len(at['nodes']), 'node')}"
            f" with {counted(sum(at['cores_per_node']), 'core')}",
            f"{config['dtype']} {config['op']}{' in place' if config['in_place'] else ''}",
            *([f"{NODE_SHARED} arrays"] if config.get("buffers") == NODE_SHARED else []),
            f"noise floor {at['noise']['floor_s'] * 1e6:.1f} us",
        ]
    )


def notes(points: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each remark, with the sizes it holds for."""
    if any(point.noisy for point in points):
        yield f"~ noisy: the samples spread by more than {NOISY_CV:.0%} of their mean"
    remarks = ((p.algorithm, p.nbytes, remark) for p in points for remark in _remarks(p))
    yield from _by_size(remarks, everywhere=len({point.nbytes for point in points}))


def untimed(points: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each algorithm that has no time, with the sizes."""
    yield from _by_size((p.algorithm, p.nbytes, p.note) for p in points if not p.samples_s)


def unclear(compared: Sequence[Compared]) -> Iterator[str]:
    """Yield a line for each algorithm that has no verdict since a time is below its noise floor."""
    yield from _by_size(
        (point.algorithm, point.nbytes, f"{side} time below the noise floor of {_floor(point)}")
        for one in compared
        for side, point in (("old", one.old), ("new", one.new))
        if point.below_noise_floor
    )


def missing_lines(comparison: Comparison) -> Iterator[str]:
    """Yield a line for each point that one side alone has a time for, equal ones together."""
    yield from _by_size(
        (m.algorithm, m.nbytes, f"no time in the {m.side} result: {m.reason}")
        for m in comparison.missing
    )


def _by_size(remarks: Iterable[tuple[str, int, str]], everywhere: int = 0) -> Iterator[str]:
    """Yield a line for each algorithm and remark, with the sizes unless it is `everywhere`."""
    sizes: dict[tuple[str, str], list[str]] = {}
    for algorithm, nbytes, remark in remarks:
        sizes.setdefault((algorithm, remark), []).append(format_size(nbytes))
    for (algorithm, remark), where in sizes.items():
        at = "" if len(where) == everywhere else f" at {', '.join(where)}"
        yield f"{algorithm}{at}: {remark}"


def _remarks(point: Point) -> Iterator[str]:
    if point.note:
        yield point.note
    if point.below_noise_floor:
        against = " against it" if point.algorithm == NATIVE else ""
        yield f"below the noise floor of {_floor(point)}, so there is no verdict{against}"
    if point.ranks_equal is False:
        yield "the ranks' results differ in their bits"


class PointsTable:
    """The table of a benchmark, whose rows are printed as the points come."""

    def __init__(self, sizes: Sequence[int], algorithms: Sequence[str]) -> None:
        # Wide enough for what will come, so that the rows of all sizes stand in line, and not wider
        # than 100 columns. Count and algbw follow from size and busbw: files alone have them.
        self.widths = {
            "size": max(len(format_size(nbytes)) for nbytes in sizes),
            "algorithm": max(map(len, algorithms)),
            "time\n(us)": 8,
            "95 %\ninterval": 13,
            "busbw\n(GB/s)": 6,
            "of\nlimit": 5,
            "vs native": 25,
            "check": 5,
        }
        self.begun = False

    def rows(self, points: Sequence[Point]) -> str:
        """Return the lines of the points; the first time with the header."""
        table = Table(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            show_header=not self.begun,
        )
        for name, width in self.widths.items():
            left = name in ("algorithm", "vs native", "check")
            table.add_column(
                name,
                justify="left" if left else "right",
                no_wrap=True,
                min_width=max(width, *map(len, name.split("\n"))),
            )
        for point, following in zip(points, [*points[1:], None], strict=True):
            table.add_row(
                format_size(point.nbytes),
                point.algorithm,
                _time(point) + ("~" if point.noisy else " "),
                _interval(point.summary.interval if point.summary else None, _microseconds),
                "-" if point.busbw is None else f"{point.busbw:.4f}",
                "-" if point.percent_of_limit is None else f"{point.percent_of_limit:.0f} %",
                _speedup(point),
                _check(point),
                end_section=following is not None and following.nbytes != point.nbytes,
            )
        gap = "\n" if self.begun else ""
        self.begun = True
        return gap + render(table)


_TUNED = "{:>9}  {:36} {:>9} {:>11}  {}"


def tuned_header() -> str:
    """Return the lines above those of `tuned_row`."""
    columns = _TUNED.format("size", "picked", "time (us)", "native (us)", "vs native")
    return f"{columns}\n{'-' * WIDTH}"


def tuned_row(picked: Point) -> str:
    """Return a line for what was picked at a size."""
    native = _microseconds(median(picked.native_samples_s)) if picked.native_samples_s else "-"
    size, name = format_size(picked.nbytes), picked.algorithm
    return _TUNED.format(size, name, _time(picked), native, _speedup(picked))


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
        table.add_row(
            format_size(one.old.nbytes),
            one.old.algorithm,
            _time(one.old),
            _time(one.new),
            f"{one.speedup.ratio:.3f}x",
            _interval(one.speedup.interval, "{:.3f}".format),
            one.speedup.verdict,
            end_section=following is not None and following.old.nbytes != one.old.nbytes,
        )
    return table


def scaling_table(curves: Sequence[Curve]) -> Table:
    """Return the table of a scaling study: a line for each step, a gap after each curve."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for header in (
        *("size", "algorithm", "ranks", "nodes", "time (us)", "95 % interval", "busbw (GB/s)"),
        *("efficiency", "95 % interval"),
    ):
        table.add_column(header, justify="left" if header == "algorithm" else "right", no_wrap=True)
    for curve in curves:
        for step in curve.steps:
            point = step.point
            table.add_row(
                format_size(curve.nbytes),
                curve.algorithm,
                str(point.ranks),
                str(step.nodes),
                _time(point) + ("~" if point.noisy else " "),
                _interval(point.summary.interval if point.summary else None, _microseconds),
                "-" if point.busbw is None else f"{point.busbw:.3g}",
                "-" if step.efficiency is None else f"{step.efficiency:.2f}",
                _interval(step.interval, "{:.2f}".format),
                end_section=step is curve.steps[-1],
            )
    return table


def scaling_lines(curves: Sequence[Curve], least: float) -> Iterator[str]:
    """Yield where each algorithm stops scaling, sizes with the same answer together."""
    yield from _by_size((c.algorithm, c.nbytes, _scales(c, least)) for c in curves)


def _scales(curve: Curve, least: float) -> str:
    stop, last = curve.stop(least), curve.steps[-1]
    if stop:
        return f"stops scaling at {stop.place}, where efficiency is below {least:g}"
    known = [step for step in curve.steps if step.efficiency is not None]
    if len(known) < 2:
        return "its efficiency is not known"
    if known[-1] is last and last.efficiency and last.efficiency < least:
        return f"may have stopped scaling at {last.place}: the interval reaches {least:g}"
    beyond = "" if known[-1] is last else ", and is below the noise floor beyond"
    return f"scales to {known[-1].place}{beyond}"


def _floor(point: Point) -> str:
    return f"{point.noise_floor_s * 1e6:.1f} us"


def _time(point: Point) -> str:
    return "-" if point.median_s is None else _microseconds(point.median_s)


def _interval(interval: Interval | None, write: Callable[[float], str]) -> str:
    return "-" if interval is None else f"{write(interval[0])}..{write(interval[1])}"


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.{1 if seconds < 1e-3 else 0}f}"


def _speedup(point: Point) -> str:
    if point.speedup is None:
        return "-"
    if point.algorithm == NATIVE:
        return "1"
    interval = point.speedup.interval
    between = f"({_interval(interval, '{:.2f}'.format)}) " if interval else ""
    return f"{point.speedup.ratio:.2f} {between}{point.speedup.verdict}"


def _check(point: Point) -> str:
    if point.check_ok is None:
        return "none" if point.samples_s else "n/a"
    return "ok" if point.check_ok else "WRONG"
