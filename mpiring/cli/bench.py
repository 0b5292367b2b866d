"""`mpiring bench`: measure algorithms beside MPI_Allreduce."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mpiring.algorithms import ALGORITHMS, find
from mpiring.errors import UsageError
from mpiring.reductions import UFUNC_NAMES
from mpiring.units import format_size, parse_sizes

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiring.bench import Config
    from mpiring.machine import Machine
    from mpiring.results import Result

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
    if verbose and quiet:
        raise click.UsageError("-v and -q exclude each other.", ctx)
    from mpiring.cli.job import job

    with job() as comm:
        from mpiring.bench import Config

        config = Config(algorithms, sizes, dtype, op, in_place, warmup, repetitions, check, seed)
        result = _measure(comm, config, topology_file, output, form, verbose, quiet)
    ctx.exit(1 if result.wrong else 0)


def _measure(
    comm: "MPI.Intracomm",
    config: "Config",
    topology_file: str | None,
    output: str | None,
    form: str,
    verbose: bool,
    quiet: bool,
) -> "Result":
    """Check everything that can be checked beforehand, then run, and report as it goes."""
    from mpiring.agreement import on_rank_zero, together
    from mpiring.bench import check_memory, run, whole_elements
    from mpiring.cli.job import read_topology
    from mpiring.communicator import private
    from mpiring.machine import environment, survey
    from mpiring.report.files import FORMATS, check_writable, write
    from mpiring.report.progress import progress
    from mpiring.report.table import PointsTable, header, notes
    from mpiring.results import Result

    detected = private(comm).topology
    machine = survey(comm, detected.nodes)
    topology = read_topology(comm, topology_file, machine.hosts)
    rounded = together(comm, lambda: whole_elements(config))
    check_memory(config, machine)
    if output:
        on_rank_zero(comm, lambda: check_writable(output))

    speaks = comm.rank == 0
    table = PointsTable(list(rounded), config.names) if speaks and form == "table" else None
    result = Result(environment(machine, topology or detected), config.document())
    if table:
        click.echo(header(result))
    if speaks:
        _warn(machine, rounded)
    with progress(len(rounded), quiet or not speaks, verbose) as reporter:
        for points in run(comm, config, topology, reporter.doing):
            result = result.with_points(points)
            if output:
                on_rank_zero(comm, partial(write, output, result))
            reporter.done()
            if table:
                with reporter.aside():
                    click.echo(table.rows(points))
    result = result.complete()
    if output:
        on_rank_zero(comm, lambda: write(output, result))
    if table:
        for note in notes(result.points):
            click.echo(note)
    elif speaks:
        click.echo(FORMATS[form](result), nl=False)
    return result


def _warn(machine: "Machine", rounded: dict[int, list[int]]) -> None:
    """Say on standard error what the reader of the numbers has to know."""
    for host, ranks, cores in machine.crowded:
        click.echo(
            f"mpiring: WARNING: on {host} {ranks} ranks share {cores} core{'s'[: cores > 1]}: they"
            " wait for each other's turn, so these times say little about the machine",
            err=True,
        )
    for nbytes, asked in rounded.items():
        others = [format_size(size) for size in asked if size != nbytes]
        if others:
            click.echo(
                f"mpiring: {', '.join(others)} rounded up to whole elements: {format_size(nbytes)}",
                err=True,
            )
