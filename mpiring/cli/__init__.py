"""The command line: one file per command, and what holds for all of them.

Exit status: 0 fine, 1 wrong data or a failure, 2 a mistake in the request, 3 slower than `compare
--fail-below` allows. Rank 0 speaks, and all
ranks leave with the same status. Nothing here imports MPI or numpy before a command needs it, so
that `--help` and `--version` are quick and work where no MPI is installed.
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
from mpiring.cli.plot import plot
from mpiring.errors import MpiringError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    commands=[bench, algorithms, compare, plot],
)
@click.version_option(__version__, message="mpiring %(version)s")
def cli() -> None:
    """Every allreduce algorithm beside MPI_Allreduce: measured, checked and readable.

    \b
    mpirun -n 4 mpiring bench                     the four basic algorithms and MPI_Allreduce
    mpirun -n 4 mpiring bench -a ring -s 1MiB     one algorithm at one size
    mpiring compare before.json after.json        two results, point by point
    mpiring plot results.json -o picture.png      time and bandwidth over size
    mpiring algorithms                            what there is to choose from
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
    except click.Abort:
        status = 130
    sys.exit(status)


def _refuse(error: click.ClickException | MpiringError) -> None:
    """Let rank 0 say what was wrong, and no rank leave before it did.

    Some launchers end the job as soon as one rank leaves with an error. So MPI, which all ranks
    finalise together on their way out, is initialised even where the mistake was found without it.
    """
    speaks = launcher.speaks()
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        speaks = mpi.COMM_WORLD.rank == 0
    if speaks and isinstance(error, click.ClickException):
        error.show()
    elif speaks:
        click.echo(f"mpiring: error: {error}", err=True)
    if mpi is None and launcher.launched():
        with suppress(ImportError, RuntimeError):
            importlib.import_module("mpi4py.MPI")
