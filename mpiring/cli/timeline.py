"""`mpiring timeline`: where the time of traced runs went."""

import click

from mpiring.cli.choices import FILE


@click.command()
@click.argument("file", type=FILE, metavar="TRACE.json")
def timeline(file: str) -> None:
    """Say where the time went, from a trace of mpiring bench --trace.

    Shares are of the time of all ranks: waiting for a rank that has not begun the round yet;
    transfer of messages; reduction, which combines what arrived; copying between buffers; the MPI
    library's own collective; and Python, which is the rest. The rank that the others waited for
    most is named. The file itself can be looked at with ui.perfetto.dev or chrome://tracing. Needs
    no MPI.
    """
    from mpiring.report.shares import table
    from mpiring.texts import read_text
    from mpiring.timeline import breakdowns

    click.echo(table(breakdowns(read_text(file), file)))
