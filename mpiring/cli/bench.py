"""`mpiring bench`: measure algorithms beside MPI_Allreduce."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from mpiring.algorithms import ALGORITHMS, find
from mpiring.errors import UsageError
from mpiring.reductions import UFUNC_NAMES
from mpiring.units import format_size, parse_sizes

if TYPE_CHECKING:
    from mpiring.machine import Machine

DEFAULT_ALGORITHMS = "naive,reduce_scatter,tree,ring"


def _read_algorithms(text: str) -> tuple[str, ...]:
    names = ALGORITHMS if text == "all" else [name.strip() for name in text.split(",")]
    return tuple(find(name).name for name in names)


def _parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Let a parser's UsageError be that of the option it reads."""

    def callback(ctx: click.Context, param: click.Parameter, value: str) -> Any:
        try:
            return parse(value)
        except UsageError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return callback


@click.command()
@click.option(
    "-a",
    "--algorithms",
    metavar="NAMES",
    callback=_parsed(_read_algorithms),
    default=DEFAULT_ALGORITHMS,
    show_default=True,
    help="Names from `mpiring algorithms`, with commas, or all; native is always measured.",
)
@click.option(
    "-s",
    "--sizes",
    metavar="SIZES",
    callback=_parsed(parse_sizes),
    default="8:64MiB",
    show_default=True,
    help="Bytes per rank: 8:64MiB doubles, 8:64MiB:x4 quadruples, or 1KiB,1500,1MiB. M is 10^6,"
    " MiB 2^20. Rounded up to whole elements.",
)
@click.option(
    "--dtype", default="float32", show_default=True, help="A numeric numpy dtype, or bfloat16."
)
@click.option(
    "--op",
    type=click.Choice(tuple(UFUNC_NAMES)),
    default="sum",
    show_default=True,
    help="Operation.",
)
@click.option("--in-place", is_flag=True, help="Reduce in the receive buffer.")
@click.option(
    "--topology",
    "topology_file",
    metavar="FILE",
    help="TOML file of levels; by default MPI's nodes.",
)
@click.option(
    "--warmup", type=click.IntRange(min=0), help="Runs before timing.  [default: 1 to 10, as fit]"
)
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    help="Samples per point.  [default: 5 to 100, as fit]",
)
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Verify each algorithm and size first.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write results as they come, to .json or .csv."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "csv", "json")),
    default="table",
    show_default=True,
    help="What standard output gets.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For data and order."
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Say on standard error what is done at each size."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
@click.pass_context
def bench(
    ctx: click.Context,
    algorithms: tuple[str, ...],
    sizes: tuple[int, ...],
    dtype: str,
    op: str,
    in_place: bool,
    topology_file: str | None,
    warmup: int | None,
    repetitions: int | None,
    check: bool,
    output: str | None,
    form: str,
    seed: int,
    verbose: bool,
    quiet: bool,
) -> None:
    """Measure allreduce algorithms beside MPI_Allreduce, in one run.

    Start it on several ranks: mpirun -n 4 mpiring bench. Each algorithm is verified at each size
    before it is timed. A sample is the time of the slowest rank; the table gives the median, algbw
    (bytes per rank / time), busbw (algbw x 2(N-1)/N), both in GB/s (10^9 B/s), and how many times
    as fast as MPI_Allreduce it was.
    """
    from mpiring.cli.job import start

    comm = start()
    from mpiring import machine
    from mpiring.agreement import on_rank_zero
    from mpiring.arrays import combine_for, dtype_named
    from mpiring.bench import Config, check_memory, run, whole_elements
    from mpiring.cli.job import read_topology
    from mpiring.report.files import FORMATS, check_writable, write
    from mpiring.report.progress import progress
    from mpiring.report.table import header, notes, points_table, render
    from mpiring.results import Result

    config = Config(algorithms, sizes, dtype, op, in_place, warmup, repetitions, check, seed)
    seen = machine.look(comm)
    topology = read_topology(comm, topology_file, seen.hosts)
    combine_for(op, dtype_named(dtype))
    rounded = whole_elements(sizes, dtype_named(dtype))
    check_memory(config, seen)
    if output:
        on_rank_zero(comm, lambda: check_writable(output))

    speaks = comm.rank == 0
    result = Result(machine.environment(seen), config.document())
    if speaks:
        if form == "table":
            click.echo(header(result))
        _warn(seen, rounded)
    with progress(len(rounded), quiet or not speaks, verbose) as reporter:
        for points in run(comm, config, topology, reporter.doing):
            reporter.done()
            result = result.with_points(points)
            if output and speaks:
                write(output, result)
    result = result.complete()
    if speaks:
        if output:
            write(output, result)
        if form == "table":
            click.echo(render(points_table(result.points)))
            for note in notes(result.points):
                click.echo(note)
        else:
            click.echo(FORMATS[form](result), nl=False)
    ctx.exit(1 if result.wrong else 0)


def _warn(seen: "Machine", rounded: dict[int, list[int]]) -> None:
    """Say on standard error what the reader of the numbers has to know."""
    if seen.oversubscribed:
        click.echo(
            f"mpiring: WARNING: {len(seen.hosts)} ranks share {sum(seen.cores)} cores:"
            " they wait for each other's turn, so these times say little about the machine",
            err=True,
        )
    for nbytes, asked in rounded.items():
        others = [format_size(size) for size in asked if size != nbytes]
        if others:
            click.echo(
                f"mpiring: {', '.join(others)} rounded up to whole elements: {format_size(nbytes)}",
                err=True,
            )
