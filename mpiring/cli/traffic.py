"""`mpiring traffic`: what algorithms move, counted without running them."""

import sys

import click

from mpiring.algorithms import ALGORITHMS
from mpiring.cli.choices import (
    SCHEDULING,
    algorithm_options,
    algorithms_option,
    check_heeded,
    parsed,
    ranks_options,
)
from mpiring.errors import UsageError
from mpiring.options import Options
from mpiring.topology import Topology
from mpiring.units import parse_size

WALKED = 1024
"""Ranks up to which every round of every rank is looked at; it takes seconds for an algorithm."""


@click.command()
@ranks_options
@algorithms_option("Names from `mpiring algorithms`, with commas, or all that have rounds.")
@click.option(
    "-s",
    "--size",
    metavar="SIZE",
    callback=parsed(parse_size),
    default="1MiB",
    show_default=True,
    help="Bytes per rank.",
)
@click.option("--dtype", default="float32", show_default=True, help="A numeric numpy dtype.")
@algorithm_options("segment", *SCHEDULING)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "csv", "json")),
    default="table",
    show_default=True,
    help="What standard output gets; csv and json in bytes.",
)
def traffic(
    topology: Topology,
    algorithms: tuple[str, ...],
    size: int,
    dtype: str,
    options: Options,
    form: str,
) -> None:
    """Count what algorithms send, receive and add up, beside the lower bound. Needs no MPI.

    \b
    mpiring traffic -n 64
    mpiring traffic -n 64 --nodes 8 -a tree,ring -s 16MiB
    mpiring traffic -n 1000000 --nodes 125000

    Up to 1024 ranks the rounds of every rank are walked; beyond that, the closed forms of `mpiring
    algorithms` are evaluated. A round is what a rank starts together and then waits for; the rank
    that is longest under way counts. Least and most are over ranks; the bound of bytes sent by the
    busiest rank is 2(N-1)/N n.
    """
    from mpiring.arrays import dtype_named
    from mpiring.report.counts import FORMATS, Counts, from_forms, from_rounds

    scheduled = tuple(name for name in algorithms if ALGORITHMS[name].schedule)
    if not scheduled:
        rounds = ALGORITHMS[algorithms[0]].rounds
        raise UsageError(f"{' and '.join(algorithms)} has no rounds to count: they are {rounds}")
    check_heeded(options, scheduled)
    itemsize = dtype_named(dtype).itemsize
    count = -(-size // itemsize)
    count_one = from_rounds if topology.size <= WALKED else from_forms
    rows: dict[str, Counts] = {}
    quiet = not sys.stderr.isatty()
    with click.progressbar(scheduled, file=sys.stderr, item_show_func=str, hidden=quiet) as bar:
        for name in bar:
            heeded = options.only(ALGORITHMS[name].heeded)
            rows[name] = count_one(ALGORITHMS[name], topology, heeded, count, itemsize)
    if all(row.rounds is None for row in rows.values()):
        raise UsageError(f"{scheduled[0]}: {rows[scheduled[0]].note}")
    for name in algorithms if set(algorithms) < set(ALGORITHMS) else ():
        uncounted = f"no rounds to count: they are {ALGORITHMS[name].rounds}"
        rows.setdefault(name, Counts(name, note=uncounted))
    click.echo(FORMATS[form](list(rows.values()), topology, count * itemsize))
