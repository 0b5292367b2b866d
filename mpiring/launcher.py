"""What the launcher told this process through its environment, before MPI is initialised."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from mpiring.errors import UsageError


class Launcher(NamedTuple):
    """A launcher, and the variables that tell a process its rank and the number of ranks."""

    name: str
    rank: str
    size: str


# The process manager that started this very process comes before the batch system around it.
LAUNCHERS = (
    Launcher("Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    Launcher("MPICH's or Intel MPI's mpirun", "PMI_RANK", "PMI_SIZE"),
    Launcher("Slurm", "SLURM_PROCID", "SLURM_NTASKS"),
)


def launched(environ: Mapping[str, str] = os.environ) -> tuple[Launcher, int, int] | None:
    """Return the launcher, this process's rank, and the number of ranks; None without one."""
    for launcher in LAUNCHERS:
        rank, size = environ.get(launcher.rank, "0"), environ.get(launcher.size, "")
        if rank.isdecimal() and size.isdecimal():
            return launcher, int(rank), int(size)
    return None


def speaks(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is the one to speak for the job: rank 0, or started alone."""
    found = launched(environ)
    return found is None or found[1] == 0


def check_world(size: int, library: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError where a launcher started several ranks and MPI sees each of them alone.

    It would run as so many jobs of one rank, each of which looks like a success.
    """
    found = launched(environ)
    if found is None or size > 1 or found[2] == 1:
        return
    launcher, _, started = found
    if launcher.name == "Slurm":
        hint = "start it with srun --mpi=pmi2 or --mpi=pmix (srun --mpi=list), or with mpirun"
    else:
        hint = "start it with the mpirun that belongs to this MPI library"
    raise UsageError(f"{launcher.name} started {started} ranks, {library} sees 1: {hint}")
