"""What the commands that run under MPI have in common: begin as a job, and end as one."""

import sys
import traceback
from time import sleep
from types import TracebackType
from typing import TYPE_CHECKING

from mpiring import launcher
from mpiring.errors import UsageError

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiring.topology import Topology


def start() -> "MPI.Intracomm":
    """Initialise MPI, and return the communicator of all ranks.

    From here on an exception that nobody catches ends the whole job. Raises UsageError where MPI
    cannot be loaded, or sees one rank where the launcher started several.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(f"MPI cannot be loaded: {error}") from None
    from mpiring.machine import mpi_library

    launcher.check_world(MPI.COMM_WORLD.size, mpi_library())
    sys.excepthook = _abort
    return MPI.COMM_WORLD


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


def _abort(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say what happened and on which rank, and end all ranks: the others may wait for this one."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    sleep(0.2 * min(world.rank, 5))  # where all fail alike, the lowest rank speaks for them
    interrupted = issubclass(kind, KeyboardInterrupt)
    if not interrupted:
        print(f"mpiring: error on rank {world.rank} of {world.size}:", file=sys.stderr)
        traceback.print_exception(kind, error, trace)
    sys.stderr.flush()
    world.Abort(130 if interrupted else 1)
