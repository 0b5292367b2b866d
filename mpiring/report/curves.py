"""A scaling study as a picture: time, bus bandwidth and efficiency over ranks, for some sizes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mpiring.algorithms.algorithm import NATIVE
from mpiring.report.plot import look_of, new_figure, save_picture
from mpiring.scaling import Curve, Scaled
from mpiring.units import format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SIZES = 4
"""Beside each other; where there are more, as many are drawn, from the smallest to the largest."""

Value: TypeAlias = Callable[[Scaled], float | None]
ROWS: Sequence[tuple[str, Value]] = (
    ("time (us)", lambda step: step.point.median_s and step.point.median_s * 1e6),
    ("busbw (GB/s)", lambda step: step.point.busbw or None),
    ("efficiency", lambda step: step.efficiency),
)


def plot(curves: Sequence[Curve], least: float, path: str) -> None:
    """Draw the curves into a file, with a line where efficiency is `least`.

    Raises UsageError for an ending that is no picture, or without matplotlib.
    """
    save_picture(path, lambda: draw(curves, least))


def draw(curves: Sequence[Curve], least: float) -> "Figure":
    """Return the picture: a column for each size, a line for each algorithm."""
    sizes = chosen_sizes(curves)
    figure = new_figure(3 + 2.6 * len(sizes), 8.5)
    panels = figure.subplots(len(ROWS), len(sizes), sharex=True, sharey="row", squeeze=False)
    names = list(dict.fromkeys(curve.algorithm for curve in curves if curve.algorithm != NATIVE))
    nodes = {step.point.ranks: step.nodes for curve in curves for step in curve.steps}
    for row, (label, value) in enumerate(ROWS):
        for column, nbytes in enumerate(sizes):
            axes: Axes = panels[row, column]
            for curve in curves:
                if curve.nbytes == nbytes:
                    known = [(step.point.ranks, v) for step in curve.steps if (v := value(step))]
                    place = names.index(curve.algorithm) if curve.algorithm in names else None
                    axes.plot(
                        [ranks for ranks, _ in known],
                        [v for _, v in known],
                        markersize=4,
                        linewidth=1.4,
                        label=curve.algorithm,
                        **look_of(place),
                    )
            axes.set(xscale="log", yscale="linear" if label == "efficiency" else "log")
            axes.grid(which="major", color="#dddddd", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
        panels[row, 0].set_ylabel(label)
    for column, nbytes in enumerate(sizes):
        panels[0, column].set_title(format_size(nbytes), fontsize=10, loc="left")
        panels[-1, column].axhline(least, color="#777777", linewidth=0.8, linestyle=":")
        panels[-1, column].set_ylim(bottom=0)
        panels[-1, column].set_xticks(list(nodes), [f"{r}\n{n}" for r, n in nodes.items()])
        panels[-1, column].minorticks_off()
        panels[-1, column].set_xlabel("ranks, and nodes below")
    lines = {  # not every size has every algorithm
        label: line
        for axes in panels[0]
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        list(lines.values()),
        list(lines),
        loc="outside lower center",
        ncols=6,
        frameon=False,
        fontsize=9,
    )
    return figure


def chosen_sizes(curves: Sequence[Curve]) -> list[int]:
    """Return the sizes that are drawn, in ascending order."""
    sizes = sorted({curve.nbytes for curve in curves})
    if len(sizes) <= MOST_SIZES:
        return sizes
    return [sizes[round(i * (len(sizes) - 1) / (MOST_SIZES - 1))] for i in range(MOST_SIZES)]
