"""What the ranks of a job run on: hosts, cores and memory."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpi4py import MPI

from mpiring.errors import UsageError
from mpiring.memory import available_memory, free_shared_memory
from mpiring.topology import Groups
from mpiring.units import counted, format_amount, format_size


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
        cores=_cores(affinities, nodes),
        memory=tuple(min(memory[rank] for rank in ranks) for ranks in nodes),
        shared_memory=tuple(_least(shared[rank] for rank in ranks) for ranks in nodes),
        affinity=affinities,
    )


def is_crowded(comm: MPI.Intracomm, nodes: Groups) -> bool:
    """Return whether the ranks outnumber the cores that they may use, on some node. Collective."""
    cores = _cores(comm.allgather(frozenset(os.sched_getaffinity(0))), nodes)
    return any(len(ranks) > number for ranks, number in zip(nodes, cores, strict=True))


def _least(numbers: Iterable[int | None]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def _cores(affinities: Sequence[frozenset[int]], nodes: Groups) -> tuple[int, ...]:
    return tuple(len(frozenset().union(*(affinities[rank] for rank in ranks))) for ranks in nodes)
