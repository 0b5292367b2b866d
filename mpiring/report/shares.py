"""Where the time of traced runs went, as a table."""

from collections.abc import Sequence

from mpiring.report.plain import plain_table, render
from mpiring.timeline import KINDS, Breakdown
from mpiring.units import format_size


def table(runs: Sequence[Breakdown]) -> str:
    """Return a row for each run: its time, the shares of it, and who was waited for most."""
    kinds = (*KINDS, "Python")
    waited = "waited for most,\nby all ranks"
    columns = ("algorithm", "size", "time us", *(f"{kind} %" for kind in kinds), waited)
    shares = plain_table(*columns, left=("algorithm", waited))
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
