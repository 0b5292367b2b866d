"""What this job runs on: MPI library, hosts, nodes and cores."""

import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mpi4py
import numpy as np
from mpi4py import MPI

import mpiring
from mpiring.decision import THREAD_LEVELS
from mpiring.errors import UsageError
from mpiring.noise import Noise
from mpiring.switches import ADDRESS, with_addresses
from mpiring.topology import Groups, Level, Topology, grouped
from mpiring.units import counted, format_amount, format_size, ranges

SHM = Path("/dev/shm")
"""Where Linux keeps memory that processes share."""


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


def detect_topology(comm: MPI.Intracomm) -> Topology:
    """Return the nodes of `comm`, and what Slurm says is above them. Collective.

    A node is a group of ranks that can share memory. What MPI knows of the inside of nodes is left
    out: a library may know it or not, and knows it of bound ranks alone, so the same algorithm on
    the same ranks would take other rounds with another library or another binding.
    """
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, key=comm.rank)
    first = node.bcast(comm.rank)
    node.Free()
    address = os.environ.get(ADDRESS, ""), os.environ.get(f"{ADDRESS}_PATTERN", "")
    firsts, hosts, addresses = zip(
        *comm.allgather((first, MPI.Get_processor_name(), address)), strict=True
    )
    nodes = Level("node", grouped(firsts), source="MPI")
    return with_addresses(Topology(comm.size, (nodes,), source="MPI"), hosts, addresses)


INSIDE = {"cache": "l3cache", "numa": "numanode", "socket": "socket"}
"""Levels inside a node, and what MPICH, Open MPI and Intel MPI all call them."""


def detect_inside(comm: MPI.Intracomm, topology: Topology) -> Topology:
    """Return the topology with those levels inside its nodes that MPI knows. Collective.

    Of ranks that are not bound to cores, MPICH knows none; Open MPI says that each is alone, and
    Intel MPI that all of a node are together, as of levels that it does not know. Neither tells
    anything, so nothing of it is kept.
    """
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, key=comm.rank)
    mine = [_first_inside(node, comm.rank, name) for name in INSIDE.values()]
    node.Free()
    levels = [
        Level(name, grouped(firsts), source="MPI")
        for name, firsts in zip(INSIDE, zip(*comm.allgather(mine), strict=True), strict=True)
        if None not in firsts
    ]
    return topology.with_inside(levels)


def _first_inside(node: MPI.Comm, rank: int, resource: str) -> int | None:
    """Return the lowest rank that shares a resource of this node; None where MPI does not know."""
    info = MPI.Info.Create({"mpi_hw_resource_type": resource})
    try:
        group = node.Split_type(MPI.COMM_TYPE_HW_GUIDED, key=node.rank, info=info)
    except MPI.Exception:  # of an MPI older than 4
        return None
    finally:
        info.Free()
    if group == MPI.COMM_NULL:
        return None
    first: int = group.bcast(rank)
    group.Free()
    return first


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
    shared_memory: tuple[int | None, ...]
    """Bytes of it that are free for its ranks to share; None where nobody knows."""
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

    def check_memory(self, nbytes: int, per_rank: int, shared_per_rank: int = 0) -> None:
        """Raise UsageError where a buffer of so many bytes makes ranks need more than there is.

        So many bytes of any memory, and of that which the ranks of a node share.
        """
        for index, ranks in enumerate(self.nodes):
            for each, kind, available in (
                (per_rank, "memory", self.memory[index]),
                (shared_per_rank, "shared memory", self.shared_memory[index]),
            ):
                needed = each * len(ranks)
                if available is not None and needed > available:
                    raise UsageError(
                        f"{format_size(nbytes)} on {counted(len(ranks), 'rank')} of"
                        f" {self.hosts[ranks[0]]} needs {format_amount(needed)} of {kind},"
                        f" {format_amount(available)} is available"
                    )


def survey(comm: MPI.Intracomm, nodes: Groups) -> Machine:
    """Gather what the ranks of `comm` see; `nodes` are the ranks that share memory. Collective."""
    everyone = comm.allgather(
        (
            MPI.Get_processor_name(),
            frozenset(os.sched_getaffinity(0)),
            available_memory(),
            free_shared_memory(),
        )
    )
    hosts, affinities, memory, shared = zip(*everyone, strict=True)
    return Machine(
        hosts=hosts,
        nodes=nodes,
        cores=tuple(_union(affinities[rank] for rank in ranks) for ranks in nodes),
        memory=tuple(min(memory[rank] for rank in ranks) for ranks in nodes),
        shared_memory=tuple(_least(shared[rank] for rank in ranks) for ranks in nodes),
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


class _Files(NamedTuple):
    """Where control groups of one version tell of memory."""

    line: str
    """Of /proc/self/cgroup, with the path of the group."""
    mount: str
    bound: str
    used: str
    cache: str
    """The line of memory.stat for what is used, and can be had at once."""


CONTROL_GROUPS = (
    _Files(
        r"^0::/(.*)$", "sys/fs/cgroup", "memory.max", "memory.current", r"^inactive_file (\d+)$"
    ),
    _Files(
        r"^\d+:(?:\S+,)?memory(?:,\S+)?:/(.*)$",
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        r"^total_inactive_file (\d+)$",
    ),
)
"""Their second version, and the first, which may be there beside it."""


def available_memory(system: Path = Path("/")) -> int:
    """Return the bytes that can still be allocated here: in this machine, and in this job's share.

    `system` is where /proc and /sys are.
    """
    meminfo = (system / "proc/meminfo").read_text()
    available = [int(re.findall(r"^MemAvailable: +(\d+) kB", meminfo, re.MULTILINE)[0]) * 1024]
    # A batch system bounds its jobs by control groups; a bound holds for all groups inside.
    for files in CONTROL_GROUPS:
        groups = re.findall(files.line, (system / "proc/self/cgroup").read_text(), re.MULTILINE)
        for group in map(Path, groups):
            for inner in (group, *group.parents):
                available += _left(system / files.mount / inner, files)
    return min(available)


def _left(folder: Path, files: _Files) -> list[int]:
    """Return the bytes that a group has left, if it has a bound."""
    with suppress(OSError, ValueError):
        bound = int((folder / files.bound).read_text())  # "max" where there is none
        statistics = (folder / "memory.stat").read_text()
        cache = int(re.findall(files.cache, statistics, re.MULTILINE)[0])
        return [max(0, bound - int((folder / files.used).read_text()) + cache)]
    return []


def free_shared_memory(folder: Path = SHM) -> int | None:
    """Return the bytes that are free where ranks share memory; None where it lies elsewhere."""
    try:
        free = os.statvfs(folder)
    except OSError:
        return None
    return free.f_bavail * free.f_frsize


def _least(numbers: Iterable[int | None]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def _union(affinities: Iterable[frozenset[int]]) -> int:
    return len(frozenset[int]().union(*affinities))
