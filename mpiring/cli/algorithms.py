"""`mpiring algorithms`: what there is to choose from."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mpiring.algorithms import Algorithm


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
def algorithms(name: str | None) -> None:
    """List the algorithms: rounds, and bytes that the busiest rank sends. Or tell all about one.

    In n bytes per rank, N ranks, P in each of G nodes; k radix, X x Y torus, L leaders. No
    allreduce sends fewer bytes than 2(N-1)/N n. lg is log2; power(N) the largest power of two up to
    N; fold(N) 1 where N is not one, and some ranks are folded in, else 0; levels(N,k) about
    log_k(N), and peers(N,k) about (k-1) log_k(N), the ranks met in them.
    """
    from mpiring.algorithms import ALGORITHMS, find

    if name is not None:
        for line in _about(find(name)):
            click.echo(line)
        return
    from mpiring.report.plain import WIDTH, plain_table, render

    columns = ("algorithm", "what it does", "rounds,\nbytes sent")
    table = plain_table(*columns, left=columns, wrapped=("what it does",))
    for algorithm in ALGORITHMS.values():
        forms = f"{algorithm.rounds}\n{algorithm.bytes_sent}"
        table.add_row(
            algorithm.name + "*" * algorithm.commutative,
            algorithm.summary,
            forms if algorithm.schedule else algorithm.rounds,
        )
    click.echo(render(table, WIDTH))
    click.echo("* needs an operation that commutes. mpiring algorithms NAME tells more of one.")


def _about(algorithm: "Algorithm") -> Iterator[str]:
    """Yield what the module says, the closed forms, and what can be chosen."""
    yield algorithm.description or f"{algorithm.name}: {algorithm.summary}."
    yield ""
    if algorithm.schedule:
        yield f"rounds          {algorithm.rounds}"
        yield f"messages sent   {algorithm.messages}"
        yield f"bytes sent      {algorithm.bytes_sent}"
    yield f"needs           {algorithm.needs}"
    yield f"options         {', '.join(map(_option, sorted(algorithm.heeded))) or 'none'}"


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
