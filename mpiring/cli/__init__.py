"""The command line: one file per command, and what holds for all of them.

Exit status: 0 fine, 1 wrong data or a failure, 2 a mistake in the request, 3 slower than `compare
--fail-below` allows, or lost, 4 stopped before the end. Rank 0 speaks, and all ranks leave with the
same status. Nothing here imports MPI or numpy before a command needs it, so that `--help` and
`--version` are quick and work where no MPI is installed.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from mpiring import __version__, launcher
from mpiring.cli.algorithms import algorithms
from mpiring.cli.bench import bench
from mpiring.cli.compare import compare
from mpiring.cli.doctor import doctor
from mpiring.cli.explain import explain
from mpiring.cli.hostfile import hostfile
from mpiring.cli.plot import plot
from mpiring.cli.scaling import scaling
from mpiring.cli.streams import discard, full
from mpiring.cli.timeline import timeline
from mpiring.cli.topology import topology
from mpiring.cli.traffic import traffic
from mpiring.cli.tune import tune
from mpiring.errors import MpiringError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    commands=[
        bench,
        doctor,
        tune,
        algorithms,
        explain,
        traffic,
        topology,
        hostfile,
        compare,
        plot,
        scaling,
        timeline,
    ],
)
@click.version_option(__version__, message="mpiring %(version)s")
def cli() -> None:
    """Every allreduce algorithm beside MPI_Allreduce: measured, checked and readable.

    \b
    mpirun -n 4 mpiring bench                     the four basic algorithms and MPI_Allreduce
    mpirun -n 4 mpiring doctor                    whether the job is started as it should be
    mpirun -n 4 mpiring bench -a ring -s 1MiB     one algorithm at one size
    mpirun -n 4 mpiring tune -o decision.toml     what is fastest where, for auto to pick
    mpiring compare before.json after.json        two results, point by point
    mpiring plot results.json -o picture.png      time and bandwidth over size
    mpiring scaling nodes-*.json                  where each algorithm stops scaling
    mpiring algorithms                            what there is to choose from
    mpiring explain ring -n 4                     what each rank does, round by round
    mpiring traffic -n 64 --nodes 8               what each algorithm sends, over which links
    mpiring hostfile check hosts                  which rank a launcher puts on which host
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its status."""
    if not launcher.speaks():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  until this process ends
    status = 0
    try:
        status = cli.main(arguments, prog_name="mpiring", standalone_mode=False)
    except click.ClickException as error:
        _refuse(error)
        status = error.exit_code
    except MpiringError as error:
        _refuse(error)
        status = 2
    except OSError as error:
        if not (said := full(error)):
            raise
        discard()
        click.echo(f"mpiring: error: {said}", err=True)
        status = 1
    except click.Abort:
        status = 130
    sys.exit(status)


def _refuse(error: click.ClickException | MpiringError) -> None:
    """Let rank 0 say what was wrong, and no rank leave before it did.

    Some launchers end the job as soon as one rank leaves with an error. So MPI, which all ranks
    finalise together on their way out, is initialised even where the mistake was found without it.
    Then it also says which rank this is: a launcher's variables may be those of an earlier job.
    """
    speaks = True
    if launcher.launched():
        with suppress(ImportError, RuntimeError):
            importlib.import_module("mpi4py.MPI")
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        speaks = mpi.COMM_WORLD.rank == 0
    if speaks and isinstance(error, click.ClickException):
        error.show()
    elif speaks:
        click.echo(f"mpiring: error: {error}", err=True)
