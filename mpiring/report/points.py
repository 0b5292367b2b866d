"""Points as text: a benchmark's table, the lines around it, and the rows of a tuning."""

from collections.abc import Iterator, Sequence
from statistics import median

from mpiring.algorithms.algorithm import NATIVE
from mpiring.decision import NODE_SHARED
from mpiring.report.cells import by_size, floor, interval_of, microseconds, speedup, time
from mpiring.report.plain import WIDTH, plain_table, render
from mpiring.results import NOISY_CV, Point, Result
from mpiring.units import counted, format_size


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
    yield from by_size(remarks, everywhere=len({point.nbytes for point in points}))


def untimed(points: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each algorithm that has no time, with the sizes."""
    yield from by_size((p.algorithm, p.nbytes, p.note) for p in points if not p.samples_s)


def _remarks(point: Point) -> Iterator[str]:
    if point.note:
        yield point.note
    if point.below_noise_floor:
        against = " against it" if point.algorithm == NATIVE else ""
        yield f"below the noise floor of {floor(point)}, so there is no verdict{against}"
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
        left = ("algorithm", "vs native", "check")
        table = plain_table(*self.widths, left=left, narrow=True, headed=not self.begun)
        for column, (name, width) in zip(table.columns, self.widths.items(), strict=True):
            column.min_width = max(width, *map(len, name.split("\n")))
        for point, following in zip(points, [*points[1:], None], strict=True):
            table.add_row(
                format_size(point.nbytes),
                point.algorithm,
                time(point) + ("~" if point.noisy else " "),
                interval_of(point.summary.interval if point.summary else None, microseconds),
                "-" if point.busbw is None else f"{point.busbw:.4f}",
                "-" if point.percent_of_limit is None else f"{point.percent_of_limit:.0f} %",
                speedup(point),
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
    native = microseconds(median(picked.native_samples_s)) if picked.native_samples_s else "-"
    size, name = format_size(picked.nbytes), picked.algorithm
    return _TUNED.format(size, name, time(picked), native, speedup(picked))


def _check(point: Point) -> str:
    if point.check_ok is None:
        return "none" if point.samples_s else "n/a"
    return "ok" if point.check_ok else "WRONG"
