"""What the commands that run under MPI have in common: begin as a job, and end as one."""

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING, NoReturn

import click

from mpiring import launcher
from mpiring.cli.streams import full, open_closed
from mpiring.errors import MpiringError, NoLibrary, UsageError

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiring.machine import Machine
    from mpiring.topology import Topology


@contextmanager
def job(thread_level: str | None = None, checked: bool = True) -> "Iterator[MPI.Intracomm]":
    """Initialise MPI, and give the communicator of all ranks, for the length of a `with` block.

    `thread_level` is what is asked of MPI, by default what mpi4py asks: multiple.

    An exception that is not the user's ends the whole job, since the other ranks may wait for this
    one. Raises NoLibrary where MPI cannot be loaded, and, where it is `checked`, UsageError if MPI
    sees fewer ranks than the launcher started, or more than the batch job has room for. Of several
    that MPI sees alone each, all but the launcher's rank 0 leave without a word.
    """
    open_closed()
    try:
        import mpi4py

        if thread_level:
            assert "mpi4py.MPI" not in sys.modules, "MPI is initialised, at its usual thread level"
            mpi4py.rc.thread_level = thread_level
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise NoLibrary(f"MPI cannot be loaded: {error}") from None
    from mpiring.agreement import on_rank_zero, together
    from mpiring.implementation import mpi_library

    world = MPI.COMM_WORLD
    # Who sits at a terminal with the variables of a job around it has to hear it all the same.
    alone = sys.stderr is not None and sys.stderr.isatty()
    spoken_for = launcher.is_spoken_for(world.size) and not alone
    if spoken_for:
        sleep(1)  # some launchers end all as soon as one leaves with an error: rank 0 comes first
    elif world.rank == 0 and not launcher.speaks():
        # The launcher's variables are those of an earlier job, or of another one around this.
        sys.stdout = sys.__stdout__ or sys.stdout
    if checked:
        if spoken_for:
            raise click.exceptions.Exit(2)
        together(world, lambda: launcher.check_world(world.size, mpi_library()))
        # Rank 0's: what other hosts know of the batch job is up to how they were reached.
        on_rank_zero(world, lambda: launcher.check_allocation(world.size))
    try:
        yield world
    except (MpiringError, click.exceptions.Exit):
        raise  # all ranks leave alike
    except BaseException as error:
        if isinstance(error, OSError) and world.size == 1:
            raise  # as any command's: no other rank waits for this one
        _abort(world, error)


def survey_job(comm: "MPI.Intracomm", path: str | None) -> "tuple[Machine, Topology]":
    """Return what this job runs on, and what the file at `path` says, or else what is detected.

    Rank 0 alone reads it. A file says all, or what is above the nodes, which are then those that
    were detected. Raises UsageError where it is not of these ranks, or where a node of its lies on
    several hosts.
    """
    from mpiring.agreement import on_rank_zero
    from mpiring.communicator import private
    from mpiring.machine import survey
    from mpiring.texts import read_text
    from mpiring.topology_file import is_slurms, read

    detected = private(comm).topology
    machine = survey(comm, detected.nodes)
    if path is None:
        return machine, detected
    text = on_rank_zero(comm, lambda: read_text(path))
    hosts = machine.hosts
    names = (is_slurms(path) and _slurms_names(comm, hosts)) or hosts
    known = read(text, names, path, detected)
    for level in known.levels:
        for index, group in enumerate(level.groups if level.name == "node" else ()):
            if others := {hosts[rank] for rank in group} - {hosts[group[0]]}:
                raise UsageError(
                    f'{path}: level "node": group {index} lies on {hosts[group[0]]} and'
                    f" {min(others)}, which share no memory"
                )
    return machine, known


def _slurms_names(comm: "MPI.Intracomm", hosts: Sequence[str]) -> list[str] | None:
    """Return what Slurm calls the host of each rank, if srun started them. Collective.

    That may be another name than the host's own. None where not all ranks know, or where hosts that
    differ have the same, as of variables that were carried from one host to the others.
    """
    known = launcher.by_srun(comm.size)
    names = comm.allgather(os.environ.get("SLURMD_NODENAME", "") if known else "")
    return names if all(names) and len(set(names)) >= len(set(hosts)) else None


def _abort(world: "MPI.Intracomm", error: BaseException) -> NoReturn:
    """Say what happened and on which rank, and end all ranks."""
    sleep(min(world.rank, 4))  # where all fail alike, the lowest rank speaks for them
    interrupted = isinstance(error, KeyboardInterrupt)
    if not interrupted and not isinstance(error, BrokenPipeError):  # whoever read this has left
        said = f"mpiring: error on rank {world.rank} of {world.size}:\n"
        said += "".join(traceback.format_exception(error))
        sys.stderr.write(f"mpiring: error: {full(error)}\n" if full(error) else said)
        sys.stderr.flush()
        sleep(0.5)  # the launcher has to pass this on before it ends everything, itself included
    status = 130 if interrupted else 1
    world.Abort(status)
    os._exit(status)  # some libraries' Abort returns before the launcher has killed this process
