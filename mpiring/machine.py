"""What this job runs on: MPI library, hosts, nodes and cores."""

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import mpi4py
import numpy as np
from mpi4py import MPI

import mpiring
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

    @property
    def oversubscribed(self) -> bool:
        """Whether some node has more ranks than cores."""
        return any(len(ranks) > cores for ranks, cores in zip(self.nodes, self.cores, strict=True))


def look(comm: MPI.Intracomm) -> Machine:
    """Gather what the ranks of `comm` see. Collective."""
    nodes = detect_topology(comm).nodes
    seen = comm.allgather(
        (MPI.Get_processor_name(), frozenset(os.sched_getaffinity(0)), available_memory())
    )
    hosts, affinities, memory = zip(*seen, strict=True)
    return Machine(
        hosts=hosts,
        nodes=nodes,
        cores=tuple(_union(affinities[rank] for rank in ranks) for ranks in nodes),
        memory=tuple(min(memory[rank] for rank in ranks) for ranks in nodes),
    )


def environment(seen: Machine) -> dict[str, Any]:
    """Return what a result has to say about where it comes from."""
    return {
        "mpiring": mpiring.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mpi4py": mpi4py.__version__,
        "mpi_library": mpi_library(),
        "thread_level": THREAD_LEVELS[MPI.Query_thread()],
        "ranks": len(seen.hosts),
        "nodes": len(seen.nodes),
        "cores": sum(seen.cores),
        "oversubscribed": seen.oversubscribed,
        "hosts": list(seen.hosts),
        "node_of_rank": [
            next(node for node, ranks in enumerate(seen.nodes) if rank in ranks)
            for rank in range(len(seen.hosts))
        ],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def available_memory() -> int:
    """Return the bytes that can still be allocated here without swapping."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo names no MemAvailable")


def _union(affinities: Iterable[frozenset[int]]) -> int:
    return len(frozenset[int]().union(*affinities))
