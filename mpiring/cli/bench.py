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


def _read_repetitions(text: str) -> tuple[int, int]:
    bounds = text.split(":")
    if not 1 <= len(bounds) <= 2 or not all(b.isdecimal() and int(b) > 0 for b in bounds):
        raise UsageError(f"{text!r} is neither a number such as 50 nor a range such as 6:1000")
    fewest, most = int(bounds[0]), int(bounds[-1])
    if fewest > most:
        raise UsageError(f"{text!r}: the first number is larger than the last")
    return fewest, most


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
    "--repetitions",
    metavar="MIN:MAX",
    callback=_parsed(_read_repetitions),
    default="6:1000",
    show_default=True,
    help="Samples per point: until the 95 % interval of each median is within 3 %. Or a number.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    default=0.3,
    show_default=True,
    help="Sample no longer at one size, once there are MIN repetitions.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    help="Runs before timing.  [default: 10 or 10 %, within a fifth of the time limit]",
)
@click.option(
    "--sync",
    type=click.Choice(("barrier", "window")),
    default="barrier",
    show_default=True,
    help="How ranks begin together: when a barrier lets them go, or at an instant on one clock.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    help="Calls in a row that one sample is the mean of.  [default: as many as the clock needs]",
)
@click.option("--cold", is_flag=True, help="Empty the caches before each sample.")
@click.option(
    "--thread-level",
    type=click.Choice(("single", "funneled", "serialized", "multiple")),
    help="What MPI is initialised with; some libraries pick other algorithms.  [default: multiple]",
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
    "--resume",
    metavar="FILE",
    help="Measure what this result file lacks, and write it there, or to -o.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "csv", "json", "osu", "nccl")),
    default="table",
    show_default=True,
    help="What standard output gets; osu and nccl are the columns of those benchmarks.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For data and order."
)
@click.option("-v", "--verbose", is_flag=True, help="Say on standard error what is done.")
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
    repetitions: tuple[int, int],
    time_limit: float,
    warmup: int | None,
    sync: str,
    batch: int | None,
    cold: bool,
    thread_level: str | None,
    check: bool,
    output: str | None,
    resume: str | None,
    form: str,
    seed: int,
    verbose: bool,
    quiet: bool,
) -> None:
    """Measure allreduce algorithms beside MPI_Allreduce, in one run.

    Start it on several ranks: mpirun -n 4 mpiring bench. Each algorithm is verified at each size
    before it is timed. A sample is the time of the slowest rank. The table gives the median and the
    interval that holds it with 95 % confidence; algbw (bytes per rank / time) and busbw (algbw x
    2(N-1)/N) in GB/s (10^9 B/s); how close that is to what the machine can move at best; how many
    times as fast as MPI_Allreduce, and whether that is more than chance and 5 %.
    """
    if verbose and quiet:
        raise click.UsageError("-v and -q exclude each other.", ctx)
    if in_place and batch and batch > 1:
        raise click.UsageError("--batch and --in-place exclude each other.", ctx)
    from mpiring.cli.job import job

    with job(thread_level) as comm:
        from mpiring.bench import Config
        from mpiring.sampling import Sampling

        sampling = Sampling(*repetitions, warmup, time_limit, sync, cold, batch)
        config = Config(algorithms, sizes, dtype, op, in_place, check, seed, sampling)
        output = output or resume
        result = _measure(comm, config, topology_file, output, resume, form, verbose, quiet)
    ctx.exit(1 if result.wrong else 0)


def _measure(
    comm: "MPI.Intracomm",
    config: "Config",
    topology_file: str | None,
    output: str | None,
    resume: str | None,
    form: str,
    verbose: bool,
    quiet: bool,
) -> "Result":
    """Check everything that can be checked beforehand, then run, and report as it goes."""
    from mpiring.agreement import on_rank_zero, together
    from mpiring.bench import Bench, check_memory, whole_elements
    from mpiring.cli.job import read_topology
    from mpiring.communicator import private
    from mpiring.machine import environment, survey
    from mpiring.noise import measure_noise
    from mpiring.report.files import check_writable, read, write
    from mpiring.report.formats import FORMATS
    from mpiring.report.progress import progress
    from mpiring.report.table import PointsTable, header, notes
    from mpiring.results import Result

    detected = private(comm).topology
    machine = survey(comm, detected.nodes)
    topology = read_topology(comm, topology_file, machine.hosts) or detected
    rounded = together(comm, lambda: whole_elements(config))
    check_memory(config, machine)
    noise = measure_noise(comm)
    floor_s = noise.floor_s(config.sampling.sync)
    result = Result(environment(machine, topology, noise, floor_s), config.document())
    if resume:
        earlier = on_rank_zero(comm, lambda: read(resume))
        result = result.resume(earlier, resume, list(rounded), config.names)
    if output:
        on_rank_zero(comm, lambda: check_writable(output))
    sizes = [nbytes for nbytes in rounded if not result.has(nbytes, config.names)]

    speaks = comm.rank == 0
    table = PointsTable(list(rounded), config.names) if speaks and form == "table" else None
    if table:
        click.echo(header(result))
        if result.points:
            click.echo(table.rows(result.points))
    if speaks:
        _warn(machine, rounded)
    with progress(len(sizes), quiet or not speaks, verbose) as reporter:
        for points in Bench(comm, config, topology, noise, reporter.doing).run(iter(sizes)):
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
