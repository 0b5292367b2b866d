"""What a result has to say about where it comes from."""

import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import mpi4py
import numpy as np

import mpiring
from mpiring.implementation import mpi_build, mpi_library, thread_level
from mpiring.machine import Machine
from mpiring.noise import Noise
from mpiring.topology import Topology
from mpiring.units import ranges


def environment(
    machine: Machine, topology: Topology, noise: Noise, noise_floor_s: float
) -> dict[str, Any]:
    """Return what a result has to say about where it comes from."""
    return {
        "mpiring": mpiring.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mpi4py": mpi4py.__version__,
        "mpi_library": mpi_library(),
        "mpi_build": mpi_build(),
        "thread_level": thread_level(),
        "ranks": len(machine.hosts),
        "nodes": [list(ranks) for ranks in machine.nodes],
        "cores_per_node": list(machine.cores),
        "oversubscribed": bool(machine.crowded),
        "hosts": list(machine.hosts),
        "topology": topology.document(),
        "noise": {**asdict(noise), "floor_s": noise_floor_s},
        "cpu_model": cpu_model(),
        "memory_bytes": _total_memory(),
        "affinity": [ranges(cores) for cores in machine.affinity],
        "slurm": {
            key: os.environ.get(variable)
            for key, variable in {"job_id": "SLURM_JOB_ID", "nodes": "SLURM_JOB_NODELIST"}.items()
        },
        "command": sys.argv,
        "variables": tuning_variables(os.environ),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


# What a user tunes an MPI library with. The launchers add variables of their own to some, which may
# differ in every job and on every rank.
_TUNING = ("OMPI_MCA_", "MPIR_CVAR_", "I_MPI_", "UCX_", "FI_")
_INTERNAL = (
    *("I_MPI_INFO_", "I_MPI_HYDRA_", "I_MPI_MPIRUN", "I_MPI_BIND_", "I_MPI_ROOT"),
    *("I_MPI_PIN_INFO", "I_MPI_PIN_MAPPING", "I_MPI_INTERNAL_", "I_MPI_RETURN_"),
    *("OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix"),
    *("OMPI_MCA_PREFIXES", "OMPI_MCA_initial_wdir", "OMPI_MCA_num_procs", "OMPI_MCA_cpu_type"),
    "OMPI_MCA_num_restarts",
)


def tuning_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what an environment tells MPI libraries, and nothing else of it."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(_TUNING) and not name.startswith(_INTERNAL)
    }


def cpu_model(system: Path = Path("/")) -> str:
    """Return the processor's name; on those that have none, as many ARMs, the architecture."""
    text = (system / "proc/cpuinfo").read_text()
    names = re.findall(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return names[0] if names else platform.machine()


def _total_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
