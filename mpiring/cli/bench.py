"""`mpiring bench`: measure algorithms beside MPI_Allreduce."""

import os
from collections.abc import Mapping
from dataclasses import fields
from math import inf
from time import sleep, time
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mpiring.cli.choices import (
    FILE,
    MOST,
    SCHEDULING,
    algorithm_options,
    algorithms_option,
    check_heeded,
    chosen_of,
    parsed,
    verbosity_options,
)
from mpiring.cli.finite import Finite
from mpiring.decision import AUTO, BUFFERS, ORDINARY, THREAD_LEVELS, VARIABLE
from mpiring.errors import TimeIsUp, UsageError
from mpiring.options import Options
from mpiring.reductions import UFUNC_NAMES
from mpiring.units import parse_duration, parse_sizes

if TYPE_CHECKING:
    from mpiring.bench import Config
    from mpiring.cli.screen import Screen
    from mpiring.report.progress import Verbosity
    from mpiring.slurm import Job

NOT_ALL = 4
"""The exit status of a run that ended before the last point, with all that is finished saved."""
LAST_S = 2
"""How long the other ranks stay while rank 0 has the job queued again."""
DEFAULT_ALGORITHMS = "naive,reduce_scatter,tree,ring"


def _read_repetitions(text: str) -> tuple[int, int]:
    bounds = text.split(":")
    if not 1 <= len(bounds) <= 2 or not all(b.isdecimal() and int(b) > 0 for b in bounds):
        raise UsageError(f"{text!r} is neither a number such as 50 nor a range such as 6:1000")
    fewest, most = int(bounds[0]), int(bounds[-1])
    if most > MOST:
        raise UsageError(f"{text!r}: more than {MOST} repetitions")
    if fewest > most:
        raise UsageError(f"{text!r}: the first number is larger than the last")
    return fewest, most


@click.command()
@algorithms_option(
    "Names from `mpiring algorithms`, with commas, or all; native is always measured.",
    default=DEFAULT_ALGORITHMS,
)
@click.option(
    "-s",
    "--sizes",
    metavar="SIZES",
    callback=parsed(parse_sizes),
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
    "--buffers",
    type=click.Choice(BUFFERS),
    default=ORDINARY,
    show_default=True,
    help="Where arrays lie: in each rank's own memory, or where the ranks of its node reach them.",
)
@click.option(
    "--topology",
    "topology_file",
    type=FILE,
    help="TOML file of levels, or Slurm's topology.conf or topology.yaml.  [default: MPI's nodes,"
    " and what SLURM_TOPOLOGY_ADDR says of switches]",
)
@algorithm_options("segment", *SCHEDULING, "rendezvous")
@click.option(
    "--decision",
    type=FILE,
    envvar=VARIABLE,
    show_envvar=True,
    help="What auto picks, as mpiring tune writes it.  [default: the built-in table]",
)
@click.option(
    "--repetitions",
    metavar="MIN:MAX",
    callback=parsed(_read_repetitions),
    default="6:1000",
    show_default=True,
    help="Samples per point: until the 95 % interval of each median is within 3 %. Or a number.",
)
@click.option(
    "--time-limit",
    type=Finite(min=1e-9, max=1e9),
    metavar="SECONDS",
    default=0.3,
    show_default=True,
    help="Sample no longer at one size, once there are MIN repetitions.",
)
@click.option(
    "--time-budget",
    metavar="TIME",
    callback=parsed(parse_duration),
    help="Measure the sizes that fit into 90s, 10m or 1.5h, the most informative first.  [default:"
    " what is left of a Slurm job]",
)
@click.option(
    "--warmup",
    type=click.IntRange(0, MOST),
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
    type=click.IntRange(1, MOST),
    help="Calls in a row that one sample is the mean of.  [default: as many as the clock needs]",
)
@click.option("--cold", is_flag=True, help="Empty the caches before each sample.")
@click.option(
    "--thread-level",
    type=click.Choice(THREAD_LEVELS),
    help="What MPI is initialised with; some libraries pick other algorithms.  [default: multiple]",
)
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Verify each algorithm and size first.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Write results as they come, to .json or .csv.",
)
@click.option(
    "--resume",
    type=FILE,
    help="Measure what the run of this result file had not finished, as it had been asked for; -s"
    " and -a can add to that. Written there, or to -o.",
)
@click.option(
    "--requeue",
    type=FILE,
    help="Of a Slurm job: begin FILE, or go on with it; if the job's time is up before the end,"
    " queue it again.",
)
@click.option(
    "--trace",
    type=FILE,
    help="Record when each rank did what in one more run, for mpiring timeline and Perfetto.",
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
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="For data and order.",
)
@verbosity_options
@click.pass_context
def bench(
    ctx: click.Context,
    /,
    thread_level: str | None,
    output: str | None,
    resume: str | None,
    requeue: str | None,
    time_budget: float | None,
    trace: str | None,
    form: str,
    verbosity: "Verbosity",
    **_: Any,
) -> None:
    """Measure allreduce algorithms beside MPI_Allreduce, in one run.

    Start it on several ranks: mpirun -n 4 mpiring bench. Each algorithm is verified at each size
    before it is timed. A sample is the time of the slowest rank. The table gives the median and the
    interval that holds it with 95 % confidence; busbw (bytes per rank / time x 2(N-1)/N) in GB/s
    (10^9 B/s); how close that is to what the machine can move at best; how many times as fast as
    MPI_Allreduce, with its interval, and whether that is more than chance and 5 %.

    SIGTERM, SIGINT, SIGUSR1 or SIGUSR2 to any rank, or the end of the time budget, stops all ranks
    together, within a second or at the next sample. Every finished size is saved, the exit status
    is 4, and --resume goes on. --requeue does so in a job that is queued again: up to ten times,
    as long as each part measures something, and not after SIGTERM or SIGINT.
    """
    if requeue and (output or resume):
        raise click.UsageError("--requeue names the file: -o and --resume exclude it.", ctx)
    from mpiring.cli.job import job
    from mpiring.signals import Hearing

    began = time()
    with Hearing() as hearing:
        with job(thread_level) as comm:
            from mpiring import slurm
            from mpiring.agreement import on_rank_zero
            from mpiring.cli.resume import take_up
            from mpiring.cli.sweep import Sweep, Wishes
            from mpiring.stop import Stop

            around = on_rank_zero(comm, slurm.Job.around)
            if requeue:
                resume = on_rank_zero(comm, lambda: _taken_up(requeue, around))
            earlier = take_up(comm, ctx, resume) if resume else None
            config, topology_file = _config(ctx.params), ctx.params["topology_file"]
            check_heeded(config.options, config.algorithms)
            by_hand = ctx.get_parameter_source("decision") is ParameterSource.COMMANDLINE
            if by_hand and not config.decision:
                raise UsageError(f"--decision changes nothing: {AUTO} is not among the algorithms")
            # By the clock of one host: all stop as soon as one does.
            left_s, whose = on_rank_zero(comm, lambda: _time_left(time_budget, around))
            stop = Stop(comm, hearing, left_s, whose)
            wishes = Wishes(requeue or output or resume, trace, form, verbosity)
            sweep = Sweep(comm, stop, config, topology_file, wishes, earlier)
            if around and around.ends is None and time_budget is None:
                sweep.screen.say("Slurm does not tell when this job ends: no end is planned for")
            sweep.run()
            result = sweep.result
        if requeue and around and isinstance(sweep.stopped, TimeIsUp) and not result.wrong:
            further = bool(sweep.measured) or around.has_more_again(began)
            _leave(around, further, sweep.screen)
    ctx.exit(1 if result.wrong else NOT_ALL if not result.is_complete else 0)


def _taken_up(path: str, job: "Job | None") -> str | None:
    """Return the file if the job goes on with it, queued again; None where the job begins it.

    Raises UsageError where it is another job's: numbers begin anew, or belong to two clusters.
    """
    from mpiring.report.files import RESULT, check_writable

    if job is None:
        raise UsageError("--requeue is for Slurm jobs, and this is none: SLURM_JOB_ID")
    check_writable(path, RESULT._replace(endings=("json",)))  # which can be gone on with
    if not os.path.isfile(path) or not os.path.getsize(path):
        return None
    if not job.restarts:
        raise UsageError(
            f"{path}: is there already, and job {job.name} has not been queued again: it is another"
            " job's; --resume goes on with it"
        )
    return path


def _time_left(budget_s: float | None, job: "Job | None") -> tuple[float, str]:
    """Return the seconds that are left to measure, and of what: that which ends first."""
    from mpiring.budget import RESERVE_S

    known = [(budget_s or inf, "--time-budget")]
    if job is not None and job.ends is not None:
        known.append((job.ends - time() - RESERVE_S, f"job {job.name}"))
    return min(known)


def _leave(job: "Job", further: bool, screen: "Screen") -> None:
    """Leave MPI, and queue the job again: Slurm kills what runs of it, which would keep its memory.

    Collective.
    """
    from mpi4py import MPI

    MPI.Finalize()
    if screen.speaks:
        screen.say(_queue_again(job, further))
    else:
        sleep(LAST_S)  # some launchers end all as soon as one leaves


def _queue_again(job: "Job", further: bool) -> str:
    """Queue the job again if it gets `further` then, and say what came of it."""
    if not further:
        return f"job {job.name} is not queued again: in as much time it would measure no size"
    try:
        job.requeue()
    except UsageError as error:
        return f"job {job.name} is not queued again: {error}"
    return f"job {job.name} is queued again"


def _config(options: Mapping[str, Any]) -> "Config":
    """Return what the values of the options, each by its name, ask for."""
    from mpiring.bench import Config
    from mpiring.sampling import Sampling

    fewest, most = options["repetitions"]
    taken = ("warmup", "sync", "cold", "batch")
    sampling = Sampling(
        fewest=fewest,
        most=most,
        time_limit_s=options["time_limit"],
        **{name: options[name] for name in taken},
    )
    plain = ("algorithms", "sizes", "dtype", "op", "in_place", "buffers", "check", "seed")
    return Config(
        **{name: options[name] for name in plain},
        decision=options["decision"] if AUTO in options["algorithms"] else None,
        options=chosen_of({field.name: options[field.name] for field in fields(Options)}),
        sampling=sampling,
    )
