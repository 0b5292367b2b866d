"""Results as a picture: time and bus bandwidth over size."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mpiring.algorithms.algorithm import NATIVE
from mpiring.errors import UsageError
from mpiring.results import Point, Result
from mpiring.stats import Interval
from mpiring.units import busbw, counted, format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")
# Okabe and Ito's palette, told apart by colour-blind readers; markers tell the algorithms apart in
# print, dashes the files.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "os^Dv*PX"
DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (9, 3)))
NATIVE_COLOUR, LIMIT_COLOUR = "#000000", "#777777"

Value: TypeAlias = Callable[[Point, float], float]


@dataclass(frozen=True)
class Line:
    """One algorithm of one result over the sizes, or its limit."""

    label: str
    points: tuple[Point, ...]
    look: dict[str, Any]
    """Colour, marker and dashes, as matplotlib names them."""


def plot(results: Sequence[tuple[str, Result]], path: str) -> None:
    """Draw the results, each with its label, into a file.

    Raises UsageError for an ending that is no picture, where there is nothing to draw, or without
    matplotlib.
    """
    save_picture(path, lambda: draw(results))


def save_picture(path: str, draw: Callable[[], "Figure"]) -> None:
    """Write what `draw` returns into a file. Raises UsageError for an ending that is no picture."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise UsageError(f"{path}: the ending has to be one of {', '.join(ENDINGS)}")
    figure = draw()
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty picture, in inches. Raises UsageError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("plots need matplotlib: pip install 'mpiring[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def draw(results: Sequence[tuple[str, Result]]) -> "Figure":
    """Return the picture of the results, each with its label.

    Medians with their intervals as bands, `native` in black, the machine's limit in grey, and a
    mark where the fastest algorithm changes. Raises UsageError where there is nothing to draw, or
    without matplotlib.
    """
    lines = measured_lines(results)
    if not lines:
        raise UsageError("there is no measured point with a size above 0 to draw")
    figure = new_figure(8, 8.5)
    above, under = figure.subplots(2, 1, sharex=True, height_ratios=(1.2, 1))
    limits = limit_lines(results)
    _draw(above, lines, limits, lambda point, seconds: seconds * 1e6)
    _draw(under, lines, limits, lambda point, seconds: busbw(point.nbytes, seconds, point.ranks))
    _mark_crossovers(above, lines)
    above.set(xscale="log", yscale="log", ylabel="time (us)")
    under.set(xscale="log", ylabel="busbw (GB/s)", xlabel="size (bytes per rank)")
    if any(point.busbw for line in lines for point in line.points):  # one rank has none
        under.set(yscale="log")
    _label_sizes(under, lines)
    for axes in (above, under):
        axes.grid(which="major", color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    legend = under.legend(frameon=False, fontsize=9, loc="lower right")  # bandwidth leaves it free
    legend.set_in_layout(False)  # long paths take no room from the lines
    for text in legend.get_texts():
        text.set_parse_math(False)  # a file may be named $x$
    above.set_title(_title(results)[:100], fontsize=10, loc="left", parse_math=False)
    return figure


def measured_lines(results: Sequence[tuple[str, Result]]) -> list[Line]:
    """Return a line for each algorithm of each result, where it has a time."""
    places: dict[str, int] = {}
    lines = []
    for file, (label, result) in enumerate(results):
        measured = [point for point in result.points if point.median_s and point.nbytes]
        for algorithm in dict.fromkeys(point.algorithm for point in measured):
            native = algorithm == NATIVE
            place = None if native else places.setdefault(algorithm, len(places))
            look = look_of(place)
            look["linestyle"] = _dashes(results, file, look["linestyle"])
            name = algorithm if len(results) == 1 else f"{algorithm} ({label})"
            lines.append(Line(name, _by_size(measured, algorithm), look))
    return lines


def look_of(place: int | None) -> dict[str, Any]:
    """Return colour, marker and dashes of the algorithm in this place; None is `native`."""
    if place is None:
        return {"color": NATIVE_COLOUR, "marker": ".", "linestyle": "--"}
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": "-",
    }


def limit_lines(results: Sequence[tuple[str, Result]]) -> list[Line]:
    """Return the machine's limit in each result, where it is above the noise floor."""
    lines = []
    for file, (label, result) in enumerate(results):
        limited = [point for point in result.points if point.limit_s and point.nbytes]
        # The limit is the same for all at a size; the highest noise floor there decides.
        strictest = {p.nbytes: p for p in sorted(limited, key=lambda p: p.noise_floor_s)}
        known = {nbytes: p for nbytes, p in strictest.items() if p.telling_limit_s}
        look = {"color": LIMIT_COLOUR, "linestyle": _dashes(results, file, ":")}
        name = "the machine's limit" + (f" ({label})" if len(results) > 1 else "")
        points = tuple(known[nbytes] for nbytes in sorted(known))
        lines += [Line(name, points, look)] if points else []
    return lines


def crossovers(lines: Sequence[Line]) -> Iterator[tuple[int, Line]]:
    """Yield each size from which on another line is surely the fastest: its interval is below.

    Where the fastest so far has no interval, nothing is sure.
    """
    by_size: dict[int, dict[int, Interval]] = {}
    for index, line in enumerate(lines):
        for point in line.points:
            if point.summary and point.summary.interval:
                by_size.setdefault(point.nbytes, {})[index] = point.summary.interval
    champion = None
    for size, intervals in sorted(by_size.items()):
        fastest = min(intervals, key=lambda index: sum(intervals[index]))
        if champion is None:
            champion = fastest
        elif champion in intervals and intervals[fastest][1] < intervals[champion][0]:
            champion = fastest
            yield size, lines[champion]


def _dashes(results: Sequence[tuple[str, Result]], file: int, alone: Any) -> Any:
    return alone if len(results) == 1 else DASHES[file % len(DASHES)]


def _by_size(points: Sequence[Point], algorithm: str) -> tuple[Point, ...]:
    own = (point for point in points if point.algorithm == algorithm)
    return tuple(sorted(own, key=lambda point: point.nbytes))


def _draw(axes: "Axes", lines: Sequence[Line], limits: Sequence[Line], value: Value) -> None:
    for line in lines:
        axes.plot(
            [point.nbytes for point in line.points],
            [value(point, point.median_s or 0) for point in line.points],
            markersize=4,
            linewidth=1.4,
            label=line.label,
            **line.look,
        )
        intervals = [(p, p.summary.interval) for p in line.points if p.summary]
        known = [(p, i) for p, i in intervals if i and i[0]]  # 0 has no place on these axes
        axes.fill_between(
            [point.nbytes for point, _ in known],
            [value(point, low) for point, (low, _) in known],
            [value(point, high) for point, (_, high) in known],
            color=line.look["color"],
            alpha=0.18,
            linewidth=0,
        )
    for line in limits:
        axes.plot(
            [point.nbytes for point in line.points],
            [value(point, point.telling_limit_s or 0) for point in line.points],
            linewidth=1.4,
            label=line.label,
            **line.look,
        )


def _mark_crossovers(axes: "Axes", lines: Sequence[Line]) -> None:
    for size, line in crossovers(lines):
        axes.axvline(size, color="#aaaaaa", linewidth=0.8, linestyle=(0, (2, 3)))
        axes.annotate(
            line.label,
            (size, 1),
            xycoords=("data", "axes fraction"),
            xytext=(3, -3),
            textcoords="offset points",
            rotation=90,
            va="top",
            fontsize=7,
            color="#666666",
            parse_math=False,
            in_layout=False,
        )


def _label_sizes(axes: "Axes", lines: Sequence[Line]) -> None:
    sizes = sorted({point.nbytes for line in lines for point in line.points})
    shown = sizes[:: max(1, len(sizes) // 8)]
    axes.set_xticks(shown, [format_size(size) for size in shown])
    axes.minorticks_off()


def _title(results: Sequence[tuple[str, Result]]) -> str:
    at, config = results[0][1].environment, results[0][1].config
    ranks = f"{counted(at['ranks'], 'rank')}, " if "ranks" in at else ""
    title = f"allreduce, {at.get('mpi_library')}, {ranks}"
    title += f"{config.get('dtype')} {config.get('op')}"
    return title if len(results) == 1 else f"{title} (first file)"
