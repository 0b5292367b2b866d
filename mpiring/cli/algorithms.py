"""`mpiring algorithms`: what there is to choose from."""

import click


@click.command()
def algorithms() -> None:
    """List the algorithms: rounds, bytes sent, and what each needs.

    In n bytes per rank, N ranks, P ranks per node and G nodes; the lower bound of bytes sent per
    rank is 2(N-1)/N n.
    """
    from rich import box
    from rich.table import Table

    from mpiring.algorithms import ALGORITHMS
    from mpiring.report.table import render

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for header in ("algorithm", "what it does", "rounds", "bytes sent per rank", "needs"):
        table.add_column(header, no_wrap=True)
    for algorithm in ALGORITHMS.values():
        table.add_row(
            algorithm.name,
            algorithm.summary,
            algorithm.rounds,
            algorithm.bytes_sent,
            algorithm.needs,
        )
    click.echo(render(table))
