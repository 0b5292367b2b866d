"""Measured links as a picture: latency and rate of each pair of ranks."""

from typing import TYPE_CHECKING

import numpy as np

from mpiring.arrays import Array
from mpiring.errors import UsageError
from mpiring.links import Links
from mpiring.report.plot import new_figure, save_picture
from mpiring.units import counted, format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = 12
"""Up to so many ranks, each field has its figure written into it."""
MANY_NODES = 64
"""Up to so many nodes, lines divide them."""


def plot(links: Links, path: str) -> None:
    """Draw the links into a file.

    Raises UsageError for an ending that is no picture, where there is nothing to draw, or without
    matplotlib.
    """
    save_picture(path, lambda: draw(links))


def draw(links: Links) -> "Figure":
    """Return two heat maps, of latencies and rates, with a rank in each row and column.

    The darker a field, the worse the link; grey ones were not measured. Raises UsageError where no
    link was measured, or without matplotlib.
    """
    if not links.links:
        raise UsageError("there is no measured link to draw")
    figure = new_figure(12, 5.8)
    left, right = figure.subplots(1, 2)
    _draw(figure, left, links, links.latencies(), "latency (us)", "viridis_r")
    _draw(figure, right, links, links.rates(), "rate (GB/s)", "viridis")
    left.set(xlabel="rank", ylabel="rank")
    right.set(xlabel="to rank", ylabel="from rank")
    library = links.environment.get("mpi_library", "MPI")
    title = f"{library}, {counted(links.size, 'rank')} on {counted(len(links.nodes), 'node')}"
    title += f", latency of 8 B, rate of {format_size(links.nbytes)}"
    figure.suptitle(title[:100], fontsize=10, parse_math=False)
    return figure


def _draw(
    figure: "Figure", axes: "Axes", links: Links, matrix: Array, title: str, colours: str
) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    known = matrix[~np.isnan(matrix)]
    low, high = float(known.min()), float(known.max())
    if high < 1.2 * low:  # small differences are no contrast
        low, high = low / 1.1, high * 1.1
    norm = LogNorm(low, high)
    shown = np.ma.masked_invalid(matrix)
    image = axes.imshow(shown, norm=norm, cmap=colours, interpolation="nearest")
    axes.set_facecolor("#dddddd")
    axes.set_title(title, fontsize=10, loc="left")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    bar = figure.colorbar(image, ax=axes, shrink=0.9)
    ticks = np.geomspace(low, high, 6)
    bar.set_ticks([*ticks], labels=[f"{tick:.3g}" for tick in ticks])
    bar.ax.minorticks_off()
    _divide_nodes(axes, links)
    if links.size <= FEW:
        for (row, column), value in np.ndenumerate(matrix):
            if not np.isnan(value):
                dark = sum(image.cmap(norm(value))[:3]) < 1.5
                axes.text(
                    column,
                    row,
                    f"{value:.3g}",
                    fontsize=7 if links.size > 8 else 9,
                    color="white" if dark else "black",
                    ha="center",
                    va="center",
                )


def _divide_nodes(axes: "Axes", links: Links) -> None:
    """Draw a line where the next rank is of another node, unless nearly each one is."""
    node_of = {rank: index for index, node in enumerate(links.nodes) for rank in node}
    edges = [rank for rank in range(1, links.size) if node_of[rank] != node_of[rank - 1]]
    if len(edges) < min(MANY_NODES, links.size - 1):
        for edge in edges:
            axes.axhline(edge - 0.5, color="white", linewidth=0.8)
            axes.axvline(edge - 0.5, color="white", linewidth=0.8)
