"""Every allreduce algorithm beside `MPI_Allreduce`, over mpi4py.

>>> import numpy as np, mpiring
>>> total = np.empty(3)
>>> mpiring.allreduce(np.arange(3.0), total, algorithm="ring")

Importing this package does not import MPI: algorithms, schedules and topologies can be read and
simulated where no MPI is installed. MPI comes in with the first use of a collective.
"""

from typing import TYPE_CHECKING, Any

from mpiring.algorithms import ALGORITHMS
from mpiring.errors import Disagreement, MpiringError, Unsupported, UsageError
from mpiring.options import Options
from mpiring.topology import Level, Topology

if TYPE_CHECKING:
    from mpiring.collective import (
        allgather,
        allgather_init,
        allreduce,
        allreduce_init,
        bcast,
        bcast_init,
        empty,
        reduce_scatter,
        reduce_scatter_init,
    )
    from mpiring.plan import Plan

__version__ = "0.1.0"
__all__ = [
    "ALGORITHMS",
    "Disagreement",
    "Level",
    "MpiringError",
    "Options",
    "Plan",
    "Topology",
    "Unsupported",
    "UsageError",
    "allgather",
    "allgather_init",
    "allreduce",
    "allreduce_init",
    "bcast",
    "bcast_init",
    "empty",
    "reduce_scatter",
    "reduce_scatter_init",
]

_CALLS = ("allreduce", "reduce_scatter", "allgather", "bcast")
_NEEDS_MPI = {
    "Plan": "executor",
    "empty": "collective",
    **{name + form: "collective" for name in _CALLS for form in ("", "_init")},
}


def __getattr__(name: str) -> Any:
    if name not in _NEEDS_MPI:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"mpiring.{_NEEDS_MPI[name]}"), name)
    globals()[name] = found  # so that the next look finds it at once
    return found
