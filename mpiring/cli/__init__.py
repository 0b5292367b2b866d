"""The command line: one file per command, and what holds for all of them.

Exit status: 0 fine, 1 wrong data or a failure, 2 a mistake in the request. Rank 0 speaks, and all
ranks leave with the same status. Nothing here imports MPI or numpy before a command needs it, so
that `--help` and `--version` are quick and work where no MPI is installed.
"""

import os
import sys
from collections.abc import Sequence

import click

from mpiring import __version__, launcher
from mpiring.cli.algorithms import algorithms
from mpiring.cli.bench import bench
from mpiring.errors import MpiringError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    commands=[bench, algorithms],
)
@click.version_option(__version__, message="mpiring %(version)s")
def cli() -> None:
    """Every allreduce algorithm beside MPI_Allreduce: measured, checked and readable.

    \b
    mpirun -n 4 mpiring bench                     the four basic algorithms and MPI_Allreduce
    mpirun -n 4 mpiring bench -a ring -s 1MiB     one algorithm at one size
    mpiring algorithms                            what there is to choose from
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its status. An unforeseen exception passes through."""
    if not launcher.speaks():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  until this process ends
    try:
        status = cli.main(arguments, prog_name="mpiring", standalone_mode=False)
    except click.ClickException as error:
        if _speaks():
            error.show()
        status = error.exit_code
    except MpiringError as error:
        if _speaks():
            click.echo(f"mpiring: error: {error}", err=True)
        status = 2
    except click.Abort:
        status = 130
    sys.exit(status)


def _speaks() -> bool:
    """Whether this is the rank that speaks: by MPI once it runs, else by what the launcher says."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        return bool(mpi.COMM_WORLD.rank == 0)
    return launcher.speaks()
