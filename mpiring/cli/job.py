"""What the commands that run under MPI have in common: begin as a job, and end as one."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING, NoReturn

import click

from mpiring import launcher
from mpiring.errors import MpiringError, UsageError

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiring.topology import Topology


@contextmanager
def job(thread_level: str | None = None) -> "Iterator[MPI.Intracomm]":
    """Initialise MPI, and give the communicator of all ranks, for the length of a `with` block.

    `thread_level` is what is asked of MPI, by default what mpi4py asks: multiple.

    An exception that is not the user's ends the whole job, since the other ranks may wait for this
    one. Raises UsageError where MPI cannot be loaded, or sees one rank where the launcher started
    several.
    """
    try:
        import mpi4py

        if thread_level:
            mpi4py.rc.thread_level = thread_level
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(f"MPI cannot be loaded: {error}") from None
    from mpiring.machine import mpi_library

    world = MPI.COMM_WORLD
    launcher.check_world(world.size, mpi_library())
    try:
        yield world
    except (MpiringError, click.exceptions.Exit):
        raise  # all ranks leave alike
    except BaseException as error:
        _abort(world, error)


def read_topology(
    comm: "MPI.Intracomm", path: str | None, hosts: tuple[str, ...]
) -> "Topology | None":
    """Return what the file at `path` says; rank 0 alone reads it. None where there is no path."""
    if path is None:
        return None
    from mpiring import topology
    from mpiring.agreement import on_rank_zero

    def read() -> str:
        try:
            with open(path, encoding="utf-8-sig") as file:
                return file.read()
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not a text file") from None

    return topology.read(on_rank_zero(comm, read), hosts, source=path)


def _abort(world: "MPI.Intracomm", error: BaseException) -> NoReturn:
    """Say what happened and on which rank, and end all ranks."""
    sleep(min(world.rank, 4))  # where all fail alike, the lowest rank speaks for them
    interrupted = isinstance(error, KeyboardInterrupt)
    if not interrupted and not isinstance(error, BrokenPipeError):  # whoever read this has left
        said = f"mpiring: error on rank {world.rank} of {world.size}:\n"
        sys.stderr.write(said + "".join(traceback.format_exception(error)))
        sys.stderr.flush()
        sleep(0.5)  # the launcher has to pass this on before it ends everything, itself included
    status = 130 if interrupted else 1
    world.Abort(status)
    os._exit(status)  # some libraries' Abort returns before the launcher has killed this process
