"""What this job runs on: MPI library, hosts, nodes and cores."""

import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import mpi4py
import numpy as np
from mpi4py import MPI

import mpiring
from mpiring.noise import Noise
from mpiring.topology import Groups, Level, Topology

THREAD_LEVELS = {
    MPI.THREAD_SINGLE: "single",
    MPI.THREAD_FUNNELED: "funneled",
    MPI.THREAD_SERIALIZED: "serialized",
    MPI.THREAD_MULTIPLE: "multiple",
}


def mpi_library() -> str:
    """Return name and version of the MPI library: `MPICH 5.0.2`."""
    name, version = MPI.get_vendor()
    return f"{name} {'.'.join(map(str, version))}"


def detect_topology(comm: MPI.Intracomm) -> Topology:
    """Return the nodes of `comm`: the groups of ranks that can share memory. Collective."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, key=comm.rank)
    first = node.bcast(comm.rank)
    node.Free()
    members: dict[int, list[int]] = {}
    for rank, leader in enumerate(comm.allgather(first)):
        members.setdefault(leader, []).append(rank)
    groups: Groups = tuple(tuple(group) for group in members.values())
    return Topology(comm.size, (Level("node", groups),), source="MPI")


@dataclass(frozen=True)
class Machine:
    """The machine as the ranks of one communicator see it."""

    hosts: tuple[str, ...]
    """Host of each rank."""
    nodes: Groups
    """Ranks of each node, that is, of each group that shares memory."""
    cores: tuple[int, ...]
    """Cores that the ranks of each node may use, together."""
    memory: tuple[int, ...]
    """Bytes of memory available on each node."""
    affinity: tuple[frozenset[int], ...] = ()
    """Cores that each rank may use."""

    @property
    def crowded(self) -> list[tuple[str, int, int]]:
        """Each node with more ranks than cores: its host, and how many ranks and cores."""
        return [
            (self.hosts[ranks[0]], len(ranks), cores)
            for ranks, cores in zip(self.nodes, self.cores, strict=True)
            if len(ranks) > cores
        ]


def survey(comm: MPI.Intracomm, nodes: Groups) -> Machine:
    """Gather what the ranks of `comm` see; `nodes` are the ranks that share memory. Collective."""
    everyone = comm.allgather(
        (MPI.Get_processor_name(), frozenset(os.sched_getaffinity(0)), available_memory())
    )
    hosts, affinities, memory = zip(*everyone, strict=True)
    return Machine(
        hosts=hosts,
        nodes=nodes,
        cores=tuple(_union(affinities[rank] for rank in ranks) for ranks in nodes),
        memory=tuple(min(memory[rank] for rank in ranks) for ranks in nodes),
        affinity=affinities,
    )


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
        "thread_level": THREAD_LEVELS[MPI.Query_thread()],
        "ranks": len(machine.hosts),
        "nodes": [list(ranks) for ranks in machine.nodes],
        "cores_per_node": list(machine.cores),
        "oversubscribed": bool(machine.crowded),
        "hosts": list(machine.hosts),
        "topology": topology.document(),
        "noise": {**asdict(noise), "floor_s": noise_floor_s},
        "cpu_model": _cpu_model(),
        "memory_bytes": _total_memory(),
        "affinity": [_ranges(cores) for cores in machine.affinity],
        "slurm": {
            key: os.environ.get(variable)
            for key, variable in {"job_id": "SLURM_JOB_ID", "nodes": "SLURM_JOB_NODELIST"}.items()
        },
        "command": sys.argv,
        "variables": tuning_variables(os.environ),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


# What a user tunes an MPI library with. The launchers add variables of their own to some.
_TUNING = ("OMPI_MCA_", "MPIR_CVAR_", "I_MPI_", "UCX_", "FI_")
_INTERNAL = (
    *("I_MPI_INFO_", "I_MPI_HYDRA_", "I_MPI_MPIRUN", "I_MPI_BIND_", "I_MPI_ROOT"),
    *("OMPI_MCA_PREFIXES", "OMPI_MCA_initial_wdir", "OMPI_MCA_num_procs", "OMPI_MCA_cpu_type"),
)


def tuning_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what an environment tells MPI libraries, and nothing else of it."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(_TUNING) and not name.startswith(_INTERNAL)
    }


def _cpu_model() -> str:
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else platform.processor() or platform.machine()


def _total_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _ranges(cores: Iterable[int]) -> str:
    """Write cores as Linux does: `0-3,8`."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def available_memory(system: Path = Path("/")) -> int:
    """Return the bytes that can still be allocated here: in this machine, and in this job's share.

    `system` is where /proc and /sys are.
    """
    meminfo = (system / "proc/meminfo").read_text()
    available = [int(re.findall(r"^MemAvailable: +(\d+) kB", meminfo, re.MULTILINE)[0]) * 1024]
    # A batch system bounds its jobs by control groups; a bound holds for all groups inside.
    group = re.findall(r"^0::/(.*)$", (system / "proc/self/cgroup").read_text(), re.MULTILINE)
    path = Path(*group)
    for folder in (system / "sys/fs/cgroup" / inner for inner in (path, *path.parents)):
        with suppress(OSError, ValueError):
            bound = int((folder / "memory.max").read_text())  # "max" where there is none
            statistics = (folder / "memory.stat").read_text()
            cache = int(re.findall(r"^inactive_file (\d+)$", statistics, re.MULTILINE)[0])
            used = int((folder / "memory.current").read_text()) - cache
            available.append(max(0, bound - used))
    return min(available)


def _union(affinities: Iterable[frozenset[int]]) -> int:
    return len(frozenset[int]().union(*affinities))
