"""Tables as plain text."""

from collections.abc import Collection

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

WIDTH = 100
"""Characters: what text for people keeps within, where it can."""


def plain_table(
    *columns: str,
    left: Collection[str] = (),
    wrapped: Collection[str] = (),
    narrow: bool = False,
    headed: bool = True,
) -> Table:
    """Return a table without rows, whose columns are on the right, or on the `left` in theirs.

    Cells of `wrapped` columns may take several lines. `narrow` leaves one space between columns.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=headed)
    if narrow:
        table.padding = (0, 1, 0, 0)
    for name in columns:
        table.add_column(
            name, justify="left" if name in left else "right", no_wrap=name not in wrapped
        )
    return table


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
