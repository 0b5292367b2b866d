"""Results as a picture: time and bus bandwidth over size."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mpiring.errors import UsageError
from mpiring.results import Point, Result
from mpiring.stats import Interval
from mpiring.units import busbw, format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS = (".png", ".svg", ".pdf")
# Okabe and Ito's palette, told apart by colour-blind readers; markers and dashes tell the lines
# apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "os^Dv*PX"
NATIVE_COLOUR, LIMIT_COLOUR = "#000000", "#777777"


Lines: TypeAlias = dict[str, list[Point]]
Value: TypeAlias = Callable[[Point, float], float]


def plot(results: Sequence[tuple[str, Result]], path: str) -> None:
    """Draw the results, each with its label, into a file.

    Medians with their intervals as bands, `native` in black, the machine's limit in grey, and a
    mark where the fastest algorithm changes. Raises UsageError for an ending that is no picture,
    where there is nothing to draw, or without matplotlib.
    """
    if Path(path).suffix.lower() not in ENDINGS:
        raise UsageError(f"{path}: the ending has to be one of {', '.join(ENDINGS)}")
    lines = _lines(results)
    if not lines:
        raise UsageError("there is no measured point with a size above 0 to draw")
    try:
        import matplotlib
    except ImportError:
        raise UsageError("plots need matplotlib: pip install 'mpiring[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (above, under) = pyplot.subplots(
        2, 1, sharex=True, figsize=(8, 8.5), layout="constrained", height_ratios=(1.2, 1)
    )
    _draw(above, lines, lambda point, seconds: seconds * 1e6)
    _draw(under, lines, lambda point, seconds: busbw(point.nbytes, seconds, point.ranks))
    _mark_crossovers(above, lines)
    above.set(xscale="log", yscale="log", ylabel="time (us)")
    under.set(xscale="log", ylabel="busbw (GB/s)", xlabel="size (bytes per rank)")
    _label_sizes(under, lines)
    for axes in (above, under):
        axes.grid(which="major", color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    above.legend(frameon=False, fontsize=9)
    above.set_title(_title(results), fontsize=10, loc="left")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        pyplot.close(figure)


def _lines(results: Sequence[tuple[str, Result]]) -> Lines:
    """Return the points to draw, by the label of their line."""
    lines: Lines = {}
    for label, result in results:
        for point in result.points:
            if point.median_s and point.nbytes:
                name = point.algorithm if len(results) == 1 else f"{point.algorithm} ({label})"
                lines.setdefault(name, []).append(point)
    return {name: sorted(points, key=lambda p: p.nbytes) for name, points in lines.items()}


def _draw(axes: "Axes", lines: Lines, value: Value) -> None:
    colours = iter(COLOURS * (len(lines) // len(COLOURS) + 1))
    for index, (name, points) in enumerate(lines.items()):
        native = points[0].algorithm == "native"
        colour = NATIVE_COLOUR if native else next(colours)
        sizes = [point.nbytes for point in points]
        axes.plot(
            sizes,
            [value(point, point.median_s or 0) for point in points],
            color=colour,
            marker=None if native else MARKERS[index % len(MARKERS)],
            markersize=4,
            linestyle="--" if native else "-",
            linewidth=1.4,
            label=name,
        )
        known = [(p, p.summary.interval) for p in points if p.summary and p.summary.interval]
        axes.fill_between(
            [point.nbytes for point, _ in known],
            [value(point, low) for point, (low, _) in known],
            [value(point, high) for point, (_, high) in known],
            color=colour,
            alpha=0.18,
            linewidth=0,
        )
    limits = {p.nbytes: p for points in lines.values() for p in points if p.limit_s}
    if limits:
        sizes = sorted(limits)
        axes.plot(
            sizes,
            [value(limits[size], limits[size].limit_s or 0) for size in sizes],
            color=LIMIT_COLOUR,
            linestyle=":",
            linewidth=1.4,
            label="the machine's limit",
        )


def _mark_crossovers(axes: "Axes", lines: Lines) -> None:
    """Mark the sizes from which on another line is surely the fastest: its interval is below."""
    by_size: dict[int, dict[str, Interval]] = {}
    for name, points in lines.items():
        for point in points:
            if point.summary and point.summary.interval:
                by_size.setdefault(point.nbytes, {})[name] = point.summary.interval
    champion = ""
    for size, intervals in sorted(by_size.items()):
        fastest = min(intervals, key=lambda name: sum(intervals[name]))
        if champion in intervals and intervals[fastest][1] >= intervals[champion][0]:
            continue
        if champion:
            axes.axvline(size, color="#aaaaaa", linewidth=0.8, linestyle=(0, (2, 3)))
            axes.annotate(
                fastest,
                (size, 1),
                xycoords=("data", "axes fraction"),
                xytext=(3, -3),
                textcoords="offset points",
                rotation=90,
                va="top",
                fontsize=7,
                color="#666666",
            )
        champion = fastest


def _label_sizes(axes: "Axes", lines: Lines) -> None:
    sizes = sorted({point.nbytes for points in lines.values() for point in points})
    shown = sizes[:: max(1, len(sizes) // 8)]
    axes.set_xticks(shown, [format_size(size) for size in shown])
    axes.minorticks_off()


def _title(results: Sequence[tuple[str, Result]]) -> str:
    at, config = results[0][1].environment, results[0][1].config
    title = f"allreduce, {at.get('mpi_library')}, {at.get('ranks')} ranks, "
    title += f"{config.get('dtype')} {config.get('op')}"
    return title if len(results) == 1 else f"{title} (first file)"
