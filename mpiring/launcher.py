"""What the launcher told this process through its environment, before MPI is initialised."""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from mpiring.errors import UsageError
from mpiring.units import counted


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


def launched(
    environ: Mapping[str, str] = os.environ, size: int | None = None
) -> tuple[Launcher, int, int] | None:
    """Return the launcher, this process's rank, and the number of ranks; None without one.

    Of several, the first; or the first with `size` ranks, if there is one.
    """
    found = []
    for launcher in LAUNCHERS:
        rank, started = environ.get(launcher.rank, "0"), environ.get(launcher.size, "")
        if rank.isdecimal() and started.isdecimal():
            found.append((launcher, int(rank), int(started)))
    return next((one for one in found if one[2] == size), found[0] if found else None)


def speaks(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is the one to speak for the job: rank 0, or started alone."""
    found = launched(environ)
    return found is None or found[1] == 0


def allocated_cpus(environ: Mapping[str, str] = os.environ) -> int | None:
    """Return the CPUs of all nodes of the Slurm job, as from `16(x2),8`; None outside of one."""
    parts = environ.get("SLURM_JOB_CPUS_PER_NODE", "").split(",")
    matches = [re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part) for part in parts]
    if not all(matches):
        return None
    return sum(int(match[1]) * int(match[2] or 1) for match in matches if match)


def check_allocation(size: int, environ: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError where mpirun started more ranks than the Slurm job around it has CPUs.

    What srun started, Slurm has agreed to.
    """
    cpus = allocated_cpus(environ)
    agreed = environ.get("SLURM_OVERCOMMIT") or environ.get("SLURM_STEP_NUM_TASKS") == str(size)
    if cpus is not None and size > cpus and not agreed:
        raise UsageError(
            f"{size} ranks were started, the Slurm job has {counted(cpus, 'CPU')}: ask for more, or"
            " start fewer (sbatch --overcommit lets ranks share CPUs)"
        )


def by_srun(started: int, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether it was srun that started so many ranks, and not mpirun in a job of Slurm's."""
    return "SLURM_PROCID" in environ and environ.get("SLURM_STEP_NUM_TASKS") == str(started)


def _started_more(size: int, environ: Mapping[str, str]) -> tuple[Launcher, int, int] | None:
    """Return the launcher, this process's rank and the number of ranks, if MPI sees fewer."""
    found = launched(environ, size)
    if found is None or found[2] <= size:
        return None
    if found[0].name == "Slurm" and size > 1 and not by_srun(found[2], environ):
        return None  # mpirun, in a job of more tasks
    return found


def is_spoken_for(size: int, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether another process speaks for this one, of several that MPI sees alone each.

    They are rank 0 of their worlds all of them, and would say the same: the launcher's rank 0 does.
    """
    found = _started_more(size, environ)
    return size == 1 and found is not None and found[1] != 0


def check_world(size: int, library: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError where a launcher started more ranks than MPI sees.

    It would run as several jobs of fewer ranks, each of which looks like a success. What one
    launcher has left in a shell does not count where another one started as many as there are.
    """
    found = _started_more(size, environ)
    if found is None:
        return
    name, started = found[0].name, found[2]
    if name == "Slurm" or by_srun(started, environ):
        name = "Slurm"
        plugin = "pmix" if library.startswith("Open MPI") else "pmi2"
        hint = f"start it with srun --mpi={plugin} (--mpi=list shows others), or with mpirun"
    else:
        hint = "start it with the mpirun that belongs to this MPI library"
    if size > 1:
        hint += f", and unset {found[0].size} if it is another job's"
    raise UsageError(f"{name} started {started} ranks, {library} sees {size}: {hint}")
