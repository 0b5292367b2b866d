"""What is wrong with how a job was started, told from what its ranks see before a long run.

Each finding is one line: what was looked at, whether that is well, what was seen, and what to do.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from mpiring import launcher
from mpiring.errors import UsageError
from mpiring.hosts import is_address, meant
from mpiring.topology import Groups, by_hostname
from mpiring.units import counted, format_amount, ranges

SCHEMA = "mpiring.doctor/1"
SHARED_BYTES_PER_RANK = 16 << 20
"""MPI libraries map about so much for each rank of a node; some die of a signal without it."""
CLOCKS_APART_S = 2.0
COARSE_TICK_S = 1e-6
AS_SLURM_SETS_THEM = "leave Slurm's variables as Slurm sets them"

VARIABLES = (
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK"),
    *("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_JOB_CPUS_PER_NODE"),
    *("SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"),
    *("SLURM_MPI_TYPE", "SLURM_CPU_BIND", "SLURM_OVERCOMMIT", "SLURMD_NODENAME"),
)
"""Variables of launchers and batch systems that a job is examined by."""
ONE_GPU = re.compile(r"\d+|(GPU|MIG)-.+")
"""A value of CUDA_VISIBLE_DEVICES; it may say that there is none, too."""

Status: TypeAlias = Literal["ok", "warning", "error"]


@dataclass(frozen=True)
class Seen:
    """What one rank sees."""

    host: str
    affinity: tuple[int, ...]
    """Cores that it may use; each thread of one that has several counts."""
    shared_bytes: int | None
    """Free in /dev/shm; None where there is no such folder."""
    mpi_library: str
    thread_level: str
    versions: Mapping[str, str]
    wall_s: float
    """The system's clock, as all ranks left a barrier."""
    tick_s: float
    """Of the clock that times samples."""
    bound_to: int | None = None
    """The only core whose threads it may use, by its first thread, in a host that has more."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """What launchers and batch systems told this rank."""
    gpus: int = 0
    """Of NVIDIA's, in the host."""
    usable_gpus: tuple[int, ...] = ()
    """Those that this rank may open, as the host counts them."""
    visible: str | None = None
    """Which of those it was given, by CUDA_VISIBLE_DEVICES: 0 is the first that it may open."""
    gpu_aware: bool | None = None
    """Whether the MPI library takes GPU buffers; None where it does not tell."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's."""

    check: str
    status: Status
    said: str
    todo: str = ""


@dataclass(frozen=True)
class Slots:
    """What a hostfile says, by the rules of the launcher that belongs to the MPI library."""

    of_host: Mapping[str, int]
    """0 where Open MPI has a slot for each core."""
    refused: str = ""
    """What the launcher does not take as it is meant, and then `todo`."""
    todo: str = ""


@dataclass(frozen=True)
class Launch:
    """All ranks' views, in the order of ranks, and the nodes: ranks that share memory."""

    seen: Sequence[Seen]
    nodes: Groups
    slots: Slots | None = None
    """Where a hostfile was given."""

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.seen)

    @property
    def environ(self) -> Mapping[str, str]:
        """What rank 0 was told."""
        return self.seen[0].environ

    @property
    def hosts(self) -> dict[str, tuple[int, ...]]:
        """Ranks of each host."""
        names = [one.host for one in self.seen]
        return {names[ranks[0]]: ranks for ranks in by_hostname(names)}

    def cores(self, ranks: Iterable[int]) -> int:
        """Return how many cores some ranks of a host may use together."""
        return len({core for rank in ranks for core in self.seen[rank].affinity})


def examine(job: Launch) -> list[Finding]:
    """Return all findings, in the order in which they depend on each other."""
    return [finding for check in CHECKS for finding in check(job)]


def document(findings: Sequence[Finding], job: Launch | None) -> dict[str, Any]:
    """Return findings and what they were made from as they stand in a JSON file."""
    return {
        "schema": SCHEMA,
        "ok": not any(finding.status == "error" for finding in findings),
        "findings": [asdict(finding) for finding in findings],
        "nodes": [list(ranks) for ranks in job.nodes] if job else [],
        "ranks": [asdict(one) for one in job.seen] if job else [],
    }


def no_library(reason: str) -> Finding:
    """Return the only finding where MPI cannot be loaded."""
    todo = "load your site's MPI module, and build mpi4py for it: pip install --no-binary mpi4py ."
    return Finding("MPI library", "error", reason, todo)


def _library(job: Launch) -> Iterator[Finding]:
    yield _same(
        "MPI library",
        [one.mpi_library for one in job.seen],
        "let all hosts load the same MPI, as by the same module and environment",
    )


def _versions(job: Launch) -> Iterator[Finding]:
    texts = [", ".join(f"{n} {v}" for n, v in one.versions.items()) for one in job.seen]
    yield _same("versions", texts, "start the same environment on all hosts, by its full path")


def _same(check: str, texts: Sequence[str], todo: str) -> Finding:
    ranks: dict[str, list[int]] = {}
    for rank, text in enumerate(texts):
        ranks.setdefault(text, []).append(rank)
    if len(ranks) == 1:
        return Finding(check, "ok", texts[0])
    said = "; ".join(f"{text} on ranks {ranges(who)}" for text, who in ranks.items())
    return Finding(check, "error", said, todo)


def _launcher(job: Launch) -> Iterator[Finding]:
    found = launcher.launched(job.environ, job.size)
    if found is None:
        said = "none: one rank on its own" if job.size == 1 else f"MPI sees {job.size} ranks"
        yield Finding("launcher", "ok", said)
        return
    who, _, started = found
    try:
        launcher.check_world(job.size, job.seen[0].mpi_library.partition(",")[0], job.environ)
    except UsageError as error:
        said, _, todo = str(error).partition(": ")
        yield Finding("launcher", "error", said, todo)
        return
    srun = launcher.by_srun(started, job.environ)
    name = f"srun --mpi={job.environ.get('SLURM_MPI_TYPE', '?')}" if srun else who.name
    # In a Slurm job, other launchers may start any number of ranks.
    if job.size > started and (srun or who.name != "Slurm"):
        todo = f"use the launcher of this MPI library, and unset what another has left: {who.size}"
        yield Finding("launcher", "error", f"{name} started {started}, MPI sees {job.size}", todo)
    else:
        yield Finding("launcher", "ok", f"{name} started {started}, MPI sees {job.size}")


def _allocation(job: Launch) -> Iterator[Finding]:
    cpus = launcher.allocated_cpus(job.environ)
    if job.slots is not None:
        yield _in_hostfile(job, job.slots)
    if cpus is None:
        if text := job.environ.get("SLURM_JOB_CPUS_PER_NODE"):
            said = f"SLURM_JOB_CPUS_PER_NODE is {text!r:.40}, which says no number of CPUs"
            yield Finding("allocation", "warning", said, AS_SLURM_SETS_THEM)
        return
    told = {"SLURM_JOB_NUM_NODES": "1", "SLURM_NTASKS": str(job.size)}
    told = {name: job.environ.get(name, value) for name, value in told.items()}
    unread = [f"{name} is {text!r:.40}" for name, text in told.items() if not text.isdecimal()]
    if unread:
        said = f"{' and '.join(unread)}, which is no number"
        yield Finding("allocation", "warning", said, AS_SLURM_SETS_THEM)
        return
    nodes, tasks = map(int, told.values())
    said = f"{counted(job.size, 'rank')} in {counted(nodes, 'node')} with {counted(cpus, 'CPU')}"
    try:
        launcher.check_allocation(job.size, job.environ)
    except UsageError:
        todo = "ask for more tasks or nodes, or start fewer ranks"
        yield Finding("allocation", "error", said, todo)
        return
    if len(job.nodes) < nodes or job.size < tasks:
        idle = (
            f"{said}: {nodes - len(job.nodes)} without a rank" if len(job.nodes) < nodes else said
        )
        todo = "start a rank for each task of the job, or ask for fewer"
        yield Finding("allocation", "warning", idle, todo)
    else:
        yield Finding("allocation", "ok", said)


def _in_hostfile(job: Launch, told: Slots) -> Finding:
    if told.refused:
        return Finding("hostfile", "error", told.refused, told.todo)
    slots = told.of_host
    said = _room(slots)
    try:
        names = meant(job.hosts, slots)
    except UsageError as error:
        todo = "write the hosts in full, so that each name is one of them"
        return Finding("hostfile", "warning", f"{said}; {error}", todo)
    unnamed = [name for name in slots if is_address(name) or name == "localhost"]
    foreign = [host for host in job.hosts if host not in names]
    if foreign and not unnamed:
        return Finding(
            "hostfile",
            "error",
            f"{said}; {', '.join(foreign)} is not among them",
            "hand the file to the launcher: -f with MPICH and Intel MPI, --hostfile with Open MPI",
        )
    said += f" for {counted(job.size, 'rank')}"
    todo = "start fewer ranks, or add slots"
    if all(slots.values()) and job.size > sum(slots.values()):
        return Finding("hostfile", "error", said, todo)
    crowded = [
        f"{host} has {counted(len(ranks), 'rank')} and {counted(room, 'slot')}"
        for host, ranks in job.hosts.items()
        if host in names and len(ranks) > (room := slots[names[host]] or job.cores(ranks))
    ]
    if crowded:
        todo += f": this launcher filled {'it' if len(crowded) == 1 else 'them'} beyond the file"
        return Finding("hostfile", "error", f"{said}; {', '.join(crowded)}", todo)
    if foreign:
        said += f"; names such as {foreign[0]} cannot be compared with {unnamed[0]}"
    return Finding("hostfile", "ok", said)


def _room(slots: Mapping[str, int]) -> str:
    """Return how many hosts and slots there are: `2 hosts with 4 slots`."""
    by_core = sum(not number for number in slots.values())
    said = f"{counted(len(slots), 'host')} with "
    if by_core == len(slots):
        return f"{said}a slot for each core"
    said += counted(sum(slots.values()), "slot")
    return f"{said}, and one for each core of {by_core} of them" if by_core else said


def _ranks(job: Launch) -> Iterator[Finding]:
    numbers = sorted({len(ranks) for ranks in job.nodes})
    said = f"{counted(job.size, 'rank')} on {counted(len(job.nodes), 'node')}"
    if len(numbers) == 1:
        yield Finding("ranks", "ok", f"{said}, {numbers[0]} on each")
    else:
        yield Finding(
            "ranks",
            "warning",
            f"{said}, from {numbers[0]} to {numbers[-1]} on each",
            "the fullest node is slowest: --ntasks-per-node, -ppn or --map-by ppr:N:node",
        )


def _cores(job: Launch) -> Iterator[Finding]:
    crowded, most = [], 0
    for host, ranks in job.hosts.items():
        cores = job.cores(ranks)
        most = max(most, cores)
        if len(ranks) > cores:
            crowded.append(
                f"{counted(len(ranks), 'rank')} share {counted(cores, 'core')} of {host}"
            )
    if crowded:
        todo = "start no more ranks than cores, or bind each to a core of its own"
        yield Finding("cores", "warning", "; ".join(crowded), todo)
    else:
        yield Finding(
            "cores", "ok", f"no more ranks than cores, of which a host gives up to {most}"
        )


def _binding(job: Launch) -> Iterator[Finding]:
    clashes = []
    for host, ranks in job.hosts.items():
        on_core: dict[int, list[int]] = {}
        for rank in ranks:
            if (core := job.seen[rank].bound_to) is not None:
                on_core.setdefault(core, []).append(rank)
        clashes += [
            f"ranks {ranges(sharing)} are bound to core {core} of {host}"
            for core, sharing in on_core.items()
            if len(sharing) > 1
        ]
    if clashes:
        todo = "srun --cpu-bind=cores, mpirun -bind-to core (MPICH), --bind-to core (Open MPI)"
        yield Finding("binding", "error", "; ".join(clashes), todo)
        return
    widths = sorted({len(one.affinity) for one in job.seen})
    yield Finding("binding", "ok", f"each rank may use {ranges(widths)} cores of its host")


def _shared_memory(job: Launch) -> Iterator[Finding]:
    short, least = [], list[int]()
    for host, ranks in job.hosts.items():
        known = [n for rank in ranks if (n := job.seen[rank].shared_bytes) is not None]
        if len(known) < len(ranks):
            short.append(f"no /dev/shm on {host}")
            continue
        least.append(free := min(known))
        if free < SHARED_BYTES_PER_RANK * len(ranks):
            short.append(f"{format_amount(free)} free for {counted(len(ranks), 'rank')} of {host}")
    if short:
        todo = (
            "remove what dead jobs left in /dev/shm; in a container mount the host's, or --shm-size"
        )
        yield Finding("shared memory", "warning", "; ".join(short), todo)
    else:
        yield Finding("shared memory", "ok", f"{format_amount(min(least))} free in /dev/shm")


def _thread_level(job: Launch) -> Iterator[Finding]:
    todo = "start one MPI library, with the same variables, on all ranks"
    found = _same("thread level", [one.thread_level for one in job.seen], todo)
    if found.status == "error":
        yield found
    elif found.said == "multiple":
        yield Finding(found.check, "ok", f"{found.said}, as asked of all ranks")
    else:
        todo = "compare results of one level alone: bench --thread-level"
        yield Finding(found.check, "warning", f"{found.said}, though multiple was asked", todo)


def _gpus(job: Launch) -> Iterator[Finding]:
    most = max(one.gpus for one in job.seen)
    if not most:
        yield Finding("GPUs", "ok", "no NVIDIA GPU seen")
        return
    shared = [
        f"ranks {ranges(who)} of {host} share GPU {visible}"
        for host, ranks in job.hosts.items()
        for (_, visible), who in _given(job, ranks).items()
        if len(who) > 1
    ]
    aware = job.seen[0].gpu_aware
    said = f"up to {most} in a host"
    if shared:
        yield Finding("GPUs", "warning", "; ".join(shared), "give each rank its own GPU")
    elif aware:
        yield Finding("GPUs", "ok", f"{said}; this MPI takes their buffers")
    else:
        known = "does not take their buffers" if aware is False else "does not say whether it can"
        todo = "load a GPU-aware MPI, or let buffers go through the host"
        yield Finding("GPUs", "warning", f"{said}; this MPI {known}", todo)


def _given(job: Launch, ranks: Iterable[int]) -> dict[tuple[tuple[int, ...], str], list[int]]:
    """Return the ranks of a host that were given one GPU, by it and those that it is counted among.

    Where the batch system lets a rank open its own alone, that is number 0 of each.
    """
    given: dict[tuple[tuple[int, ...], str], list[int]] = {}
    for rank in ranks:
        usable, visible = job.seen[rank].usable_gpus, job.seen[rank].visible or ""
        if usable and ONE_GPU.fullmatch(visible) and "," not in visible:
            given.setdefault((usable, visible), []).append(rank)
    return given


def _clock(job: Launch) -> Iterator[Finding]:
    apart = max(one.wall_s for one in job.seen) - min(one.wall_s for one in job.seen)
    tick = max(one.tick_s for one in job.seen)
    said = f"reads to {tick * 1e9:.0f} ns; hosts' times are within {max(apart, 1e-3):.3f} s"
    if apart > CLOCKS_APART_S:
        yield Finding("clock", "warning", said, "set the hosts' clocks (NTP): logs mislead")
    elif tick > COARSE_TICK_S:
        todo = (
            "short calls are timed in batches; see clocksource in /sys/devices/system/clocksource"
        )
        yield Finding("clock", "warning", said, todo)
    else:
        yield Finding("clock", "ok", said)


CHECKS: Sequence[Callable[[Launch], Iterator[Finding]]] = (
    *(_library, _launcher, _allocation, _ranks, _cores, _binding, _shared_memory),
    *(_thread_level, _gpus, _clock, _versions),
)
