"""`mpiring tune`: measure what `auto` picks."""

from copy import copy
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from mpiring.cli.bench import bench
from mpiring.cli.choices import FILE, algorithms_option, verbosity_options
from mpiring.errors import UsageError

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiring.decision import Table
    from mpiring.report.progress import Verbosity
    from mpiring.tune import Contest

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

    Start it as the jobs that it is for: what is found holds for this MPI library, this number of
    nodes and of ranks on each, this width of elements and this kind of arrays. At each size all
    algorithms are verified and sampled once over, also with segments of 32, 128 and 512 KiB; then
    the three best are, for longer, beside MPI_Allreduce, the same as a persistent request, and what
    was picked at the size before. The pick changes only where another one is faster by more than
    chance and 5 %. With the default sizes it takes about a minute and a half on 2 ranks. What
    gives wrong data is named and not picked, and the exit status is 1.
    """
    if bool(output) == bool(show):
        raise UsageError("tune needs either -o FILE.toml, or --show FILE.toml")
    if show:
        for option in ctx.command.params:
            name = option.name or ""
            given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
            if given and name != "show":
                raise UsageError(f"{option.opts[-1]} changes nothing: --show measures nothing")
        _show(show)
        return
    assert output
    from mpiring.cli.job import job

    with job(thread_level) as comm:
        # Not before: they initialise MPI.
        from mpiring.bench import Config
        from mpiring.sampling import Sampling
        from mpiring.tune import Contest

        sampling = Sampling(time_limit_s=time_limit, sync=sync)
        config = Config(algorithms, sizes, dtype, op, buffers=buffers, seed=seed, sampling=sampling)
        contest = Contest.of_all(config)
        right = _measure(comm, contest, topology_file, output, verbosity)
    ctx.exit(0 if right else 1)


def _show(path: str) -> None:
    from mpiring import built_in
    from mpiring.decision_file import read
    from mpiring.texts import read_text

    table = built_in.table() if path == BUILT_IN else read(read_text(path), path)
    for row in table.rows:
        click.echo(row.sentence())
        if row.origin:
            click.echo(f"  {row.origin}")


def _measure(
    comm: "MPI.Intracomm",
    contest: "Contest",
    topology_file: str | None,
    output: str,
    verbosity: "Verbosity",
) -> bool:
    """Check everything that can be checked beforehand, then run, and report as it goes.

    Return whether all data were right.
    """
    from mpiring.agreement import on_rank_zero, together
    from mpiring.bench import check_memory, whole_elements
    from mpiring.cli.job import survey_job
    from mpiring.cli.screen import say, warn
    from mpiring.decision_file import to_toml
    from mpiring.environment import environment
    from mpiring.noise import measure_noise
    from mpiring.report.files import save
    from mpiring.report.points import header, tuned_header, tuned_row, untimed
    from mpiring.report.progress import progress
    from mpiring.results import Result
    from mpiring.tune import Tuning

    machine, topology = survey_job(comm, topology_file)
    sizes = sorted(together(comm, lambda: whole_elements(contest)))
    check_memory(contest, machine)
    on_rank_zero(comm, lambda: _known(output))
    noise = measure_noise(comm)
    at = environment(machine, topology, noise, noise.floor_s(contest.sampling.sync))

    speaks = comm.rank == 0
    if speaks:
        click.echo(header(Result(at, contest.document())))
        click.echo(tuned_header())
        warn(machine, whole_elements(contest))
    with progress(len(sizes), verbosity if speaks else "quiet") as reporter:
        tuning = Tuning(comm, contest, topology, noise, reporter.doing)
        try:
            for name, finals in tuning.run(sizes):
                reporter.done()
                if speaks:
                    with reporter.aside():
                        click.echo(tuned_row(finals[name]))
        finally:
            for line in untimed(tuning.wrong) if speaks else ():
                with reporter.aside():
                    say(line)
    about = (
        *("started", "mpiring", "mpi4py", "mpi_library", "thread_level"),
        *("cpu_model", "cores_per_node"),
    )
    row = tuning.row(**{name: at[name] for name in about}, dtype=contest.dtype, op=contest.op)
    if speaks:
        click.echo(f"\n{row.sentence()}")
    # The file is read once more: another run may have written to it meanwhile.
    on_rank_zero(comm, lambda: save(output, to_toml(_known(output).with_row(row))))
    if speaks:
        click.echo(f"{output} is written")
    return not tuning.wrong


def _known(path: str) -> "Table":
    """Return what the file says already, if there is one, and see that it can be written."""
    from mpiring.decision import Table
    from mpiring.decision_file import read
    from mpiring.report.files import check_place
    from mpiring.texts import read_text

    text = read_text(path) if check_place(path) else ""
    try:
        return read(text, path) if text else Table((), path)
    except UsageError as error:
        raise UsageError(f"{error}, so it is not overwritten") from None
