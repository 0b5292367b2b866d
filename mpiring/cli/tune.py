"""`mpiring tune`: measure what `auto` picks."""

from collections.abc import Collection
from copy import copy
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from mpiring.cli.bench import NOT_ALL, bench
from mpiring.cli.choices import FILE, algorithms_option, verbosity_options
from mpiring.errors import UsageError

if TYPE_CHECKING:
    from mpiring.report.progress import Verbosity

SHARED = ("sizes", "dtype", "op", "buffers", "topology_file", "sync", "thread_level", "seed")
TIME_LIMIT_S = 2.0
BUILT_IN = "built-in"


def _shared() -> list[click.Parameter]:
    """Return the options of `mpiring bench` that are those of this command as well."""
    options = {option.name: copy(option) for option in bench.params}
    limit = options["time_limit"]
    limit.default = TIME_LIMIT_S
    limit.help = "Sample for so long at each size, a third of it to choose who is in the final."
    return [options[name] for name in (*SHARED, "time_limit")]


@click.command(params=_shared())
@algorithms_option(
    "What to choose from, by names from `mpiring algorithms`; native is always tried."
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE.toml",
    help="The decision file. What it says of other situations stays in it.",
)
@click.option(
    "--confirm",
    is_flag=True,
    help="Measure again what the file has of this situation as faster than MPI_Allreduce, and keep"
    " what still is.",
)
@click.option(
    "--show",
    type=FILE,
    metavar="FILE.toml",
    help=f"Say what a decision file picks, or the table that is {BUILT_IN}, and measure nothing.",
)
@verbosity_options
@click.pass_context
def tune(
    ctx: click.Context,
    /,
    algorithms: tuple[str, ...],
    output: str | None,
    confirm: bool,
    show: str | None,
    sizes: tuple[int, ...],
    dtype: str,
    op: str,
    buffers: str,
    topology_file: str | None,
    sync: str,
    thread_level: str | None,
    seed: int,
    time_limit: float,
    verbosity: "Verbosity",
) -> None:
    """Measure which algorithm is the fastest at which size, and write it for `auto` to pick.

    \b
    mpirun -n 4 mpiring tune -o decision.toml
    mpirun -n 4 mpiring bench -a auto --decision decision.toml
    mpiring tune --show decision.toml
    mpirun -n 4 mpiring tune --confirm -o decision.toml

    Start it as the jobs that it is for: what is found holds for this MPI library, this number of
    nodes and of ranks on each, this width of elements and this kind of arrays. At each size all
    algorithms are verified and sampled once over, also with segments of 32, 128 and 512 KiB; then
    the three best are, for longer, beside MPI_Allreduce, the same as a persistent request, and what
    was picked at the size before. The pick changes only where another one is faster by more than
    chance and 5 %. With the default sizes it takes about a minute and a half on 2 ranks.

    How near the ranks' cores or nodes are to each other may differ from run to run, and with it who
    is fastest. --confirm measures what the file has as faster than MPI_Allreduce, at its sizes, on
    the ranks of this run, and keeps what is faster here as well.

    What gives wrong data is named and not picked, and the exit status is 1. After a signal, which
    stops all ranks together, the file is as it was, and the status is 4.
    """
    if bool(output) == bool(show):
        raise UsageError("tune needs either -o FILE.toml, or --show FILE.toml")
    if show:
        others = [option.name for option in ctx.command.params if option.name != "show"]
        _refuse_given(ctx, others, "--show measures nothing")
        _show(show)
        return
    assert output
    if confirm:
        _refuse_given(ctx, ("algorithms", "sizes"), "--confirm measures what the file has")
    from mpiring.cli.job import job
    from mpiring.signals import Hearing

    with Hearing() as hearing, job(thread_level) as comm:
        # Not before: they initialise MPI.
        from mpiring.bench import Config
        from mpiring.cli.search import Search
        from mpiring.sampling import Sampling
        from mpiring.stop import Stop

        sampling = Sampling(time_limit_s=time_limit, sync=sync)
        config = Config(algorithms, sizes, dtype, op, buffers=buffers, seed=seed, sampling=sampling)
        stop = Stop(comm, hearing)
        search = Search(comm, stop, config, topology_file, output, verbosity, confirm)
        search.run()
    ctx.exit(1 if search.wrong else NOT_ALL if search.stopped else 0)


def _refuse_given(ctx: click.Context, names: Collection[str | None], reason: str) -> None:
    """Raise UsageError if one of the options of these names is on the command line."""
    for option in ctx.command.params:
        given = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name in names:
            raise UsageError(f"{option.opts[-1]} changes nothing: {reason}")


def _show(path: str) -> None:
    from mpiring import built_in
    from mpiring.decision_file import read
    from mpiring.texts import read_text

    table = built_in.table() if path == BUILT_IN else read(read_text(path), path)
    for row in table.rows:
        click.echo(row.sentence())
        if row.origin:
            click.echo(f"  {row.origin}")
