"""Where the time of traced runs went, as a table."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from mpiring.report.table import render
from mpiring.timeline import KINDS, Breakdown
from mpiring.units import format_size


def table(runs: Sequence[Breakdown]) -> str:
    """Return a row for each run: its time, the shares of it, and who was waited for most."""
    shares = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    shares.add_column("algorithm")
    shares.add_column("size", justify="right")
    shares.add_column("time us", justify="right")
    kinds = (*KINDS, "Python")
    for kind in kinds:
        shares.add_column(f"{kind} %", justify="right")
    shares.add_column("waited for most,\nby all ranks")
    for run in runs:
        whole = sum(run.spent.values())
        shares.add_row(
            run.algorithm,
            format_size(run.nbytes),
            f"{run.elapsed * 1e6:.1f}",
            *(f"{100 * run.spent[kind] / whole:.0f}" if whole else "-" for kind in kinds),
            "" if run.slowest is None else f"rank {run.slowest}: {run.waited_for * 1e6:.1f} us",
        )
    return render(shares)
