"""The MPI implementation that is loaded: its name, its build, and at which thread level it runs."""

from functools import cache

from mpi4py import MPI

from mpiring.decision import THREAD_LEVELS


def mpi_library() -> str:
    """Return name and version of the MPI library: `MPICH 5.0.2`."""
    _, version = MPI.get_vendor()
    return f"{library_name()} {'.'.join(map(str, version))}"


@cache
def library_name() -> str:
    """Return the MPI library's name alone."""
    return MPI.get_vendor()[0]


@cache
def thread_level() -> str:
    """Return what MPI lets the threads of this program do."""
    levels = (
        MPI.THREAD_SINGLE,
        MPI.THREAD_FUNNELED,
        MPI.THREAD_SERIALIZED,
        MPI.THREAD_MULTIPLE,
    )
    return THREAD_LEVELS[levels.index(MPI.Query_thread())]


def mpi_build() -> str:
    """Return what the library says of itself, on one line, and mostly how it was built.

    Some write all of their configuration, so it ends after 1000 characters.
    """
    return " ".join(MPI.Get_library_version().replace("\0", "").split())[:1000]
