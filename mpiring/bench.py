"""Measure: verify, warm up, agree on the repetitions, sample.

At each size every algorithm is prepared and verified first. Then they are sampled in turn, in an
order shuffled for each repetition, so that a drift of the machine hits all alike. A sample begins
after a barrier, on each rank by its own clock, and counts as its slowest rank.
"""

import gc
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI

from mpiring import arrays
from mpiring.algorithms import ALGORITHMS
from mpiring.arrays import Array, DType
from mpiring.chunks import Split
from mpiring.collective import allreduce_init
from mpiring.errors import MpiringError, UsageError
from mpiring.executor import Plan
from mpiring.machine import Machine
from mpiring.operations import PREDEFINED
from mpiring.results import Point
from mpiring.topology import Topology
from mpiring.units import format_amount, format_size
from mpiring.verify import Case, find_fault, poison

# Where the user does not say: as many repetitions at each size as fit, within these bounds.
TIME_PER_SIZE_S = 0.5
REPETITIONS = (5, 100)
WARMUP = (1, 10)


@dataclass(frozen=True)
class Config:
    """What is measured. `warmup` and `repetitions` None: as many as fit into the time of a size."""

    algorithms: tuple[str, ...]
    sizes: tuple[int, ...]
    dtype: str = "float32"
    op: str = "sum"
    in_place: bool = False
    warmup: int | None = None
    repetitions: int | None = None
    check: bool = True
    seed: int = 0

    @property
    def names(self) -> list[str]:
        """The algorithms in the registry's order, `native` always among them."""
        return [name for name in ALGORITHMS if name in {*self.algorithms, "native"}]

    def document(self) -> dict[str, Any]:
        """Return the configuration as it stands in a JSON file."""
        return asdict(self)


def whole_elements(config: Config) -> dict[int, list[int]]:
    """Return the sizes rounded up to whole elements, each with the sizes that were asked for.

    Raises Unsupported where there is no such dtype, or not this operation on it.
    """
    dtype = arrays.dtype_named(config.dtype)
    arrays.combine_for(config.op, dtype)
    rounded: dict[int, list[int]] = {}
    for nbytes in config.sizes:
        count = -(-nbytes // dtype.itemsize)
        rounded.setdefault(count * dtype.itemsize, []).append(nbytes)
    return rounded


def check_memory(config: Config, machine: Machine) -> None:
    """Raise UsageError where the largest size does not fit, before anything runs."""
    # Send, receive and expected values, and the scratch of each algorithm's plan.
    per_rank = (3 + len(config.names)) * max(config.sizes)
    for ranks, available in zip(machine.nodes, machine.memory, strict=True):
        needed = per_rank * len(ranks)
        if needed > available:
            raise UsageError(
                f"{format_size(max(config.sizes))} on {len(ranks)} ranks of"
                f" {machine.hosts[ranks[0]]} needs {format_amount(needed)} of memory,"
                f" {format_amount(available)} is available"
            )


def run(
    comm: MPI.Intracomm,
    config: Config,
    topology: Topology | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Iterator[tuple[Point, ...]]:
    """Yield the points of each size, in the order of `config.sizes`. Collective.

    `report` is told what goes on, in a few words.
    """
    dtype = arrays.dtype_named(config.dtype)
    for nbytes in whole_elements(config):
        yield _Measurement(comm, config, dtype, nbytes, topology, report).points()


class _Measurement:
    """All algorithms at one number of bytes, on one set of buffers."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        config: Config,
        dtype: DType,
        nbytes: int,
        topology: Topology | None,
        report: Callable[[str], None],
    ) -> None:
        self.comm = comm
        self.config = config
        self.topology = topology
        self.report_to = report
        self.case = Case(nbytes // dtype.itemsize, dtype, config.op, comm.size, config.seed)
        self.sendbuf = self.case.contribution(comm.rank)
        self.recvbuf = self.sendbuf.copy()  # touches its pages, before anything is timed
        self.expected = self.make_expected() if config.check else None
        self.order = random.Random(f"{config.seed} {nbytes}")  # the same on all ranks

    def points(self) -> tuple[Point, ...]:
        """Verify, sample, and return a point for each algorithm."""
        names = self.config.names
        points: dict[str, dict[str, Any]] = {name: {} for name in names}
        plans: dict[str, Plan] = {}
        for name in names:
            try:
                plan = self.prepare(name)
            except MpiringError as error:
                points[name]["note"] = f"n/a: {error}"
                continue
            points[name] |= self.describe(plan)
            if self.expected is not None:
                self.report(f"checking {name}")
                fault = self.verify(plan)
                points[name] |= {"check_ok": not fault}
                if fault:
                    points[name]["note"] = f"WRONG: {fault}"
                    plan.free()
                    continue
            plans[name] = plan

        for name, samples in self.sample(plans).items():
            points[name]["samples_s"] = samples
        for plan in plans.values():
            plan.free()
        native = Point(**self.common("native"), **points["native"]).median_s
        return tuple(
            Point(**self.common(name), native_median_s=native, **points[name]) for name in names
        )

    def report(self, text: str) -> None:
        self.report_to(f"{format_size(self.sendbuf.nbytes)}: {text}")

    def common(self, name: str) -> dict[str, Any]:
        """Return what is the same for all points of this size, and the name."""
        return {
            "algorithm": name,
            "nbytes": self.sendbuf.nbytes,
            "count": self.case.count,
            "dtype": self.config.dtype,
            "op": self.config.op,
            "in_place": self.config.in_place,
            "ranks": self.comm.size,
        }

    def prepare(self, name: str) -> Plan:
        return allreduce_init(
            MPI.IN_PLACE if self.config.in_place else self.sendbuf,
            self.recvbuf,
            PREDEFINED[self.config.op],
            comm=self.comm,
            algorithm=name,
            topology=self.topology,
        )

    def describe(self, plan: Plan) -> dict[str, Any]:
        """Return what the plan does: rounds and bytes of the busiest rank."""
        if plan.traffic is None:
            return {"note": plan.remark}
        most = np.array([plan.traffic.rounds, plan.traffic.elements_sent])
        self.comm.Allreduce(MPI.IN_PLACE, most, MPI.MAX)
        rounds, elements = map(int, most)
        nbytes = elements * self.case.dtype.itemsize
        return {"note": plan.remark, "rounds": rounds, "bytes_sent_per_rank": nbytes}

    def verify(self, plan: Plan) -> str:
        """Run once, and return what is wrong on the lowest rank where something is."""
        assert self.expected is not None
        before = arrays.fingerprint(self.sendbuf)
        poison(self.recvbuf, self.expected)
        self.reset()
        plan()
        fault = find_fault(self.recvbuf, self.expected)
        if arrays.fingerprint(self.sendbuf) != before:
            fault = fault or "the send buffer was changed"
            arrays.copy(self.sendbuf, self.case.contribution(self.comm.rank))  # others need it
        faults = self.comm.allgather(fault)
        return next((f"rank {rank}: {text}" for rank, text in enumerate(faults) if text), "")

    def make_expected(self) -> Array:
        """Return the right result. Each rank works out its chunk, and hands it to the others."""
        expected = arrays.empty(self.case.count, self.case.dtype)
        split = Split(self.case.count, self.comm.size)
        mine = split.slice(self.comm.rank)
        expected[mine] = self.case.expected(mine)
        for rank in range(self.comm.size):
            self.comm.Bcast((arrays.raw(expected[split.slice(rank)]), MPI.BYTE), root=rank)
        return expected

    def reset(self) -> None:
        """Put the contribution back where it was reduced in place."""
        if self.config.in_place:
            arrays.copy(self.recvbuf, self.sendbuf)

    def sample(self, plans: dict[str, Plan]) -> dict[str, tuple[float, ...]]:
        """Return the samples of each plan, in seconds."""
        if not plans:
            return {}
        once_s = sum(float(times[0]) for times in self.repeat(plans, 1).values())
        warmup = _fitting(self.config.warmup, WARMUP, TIME_PER_SIZE_S / 5, once_s)
        repetitions = _fitting(self.config.repetitions, REPETITIONS, TIME_PER_SIZE_S, once_s)
        self.report(f"{repetitions} repetitions, after {warmup} to warm up")
        self.repeat(plans, warmup)
        return {name: tuple(map(float, t)) for name, t in self.repeat(plans, repetitions).items()}

    def repeat(self, plans: dict[str, Plan], repetitions: int) -> dict[str, Any]:
        """Run the plans in turn, and return the time of each run on its slowest rank."""
        mine = {name: np.empty(repetitions) for name in plans}
        order = list(plans)
        gc.collect()
        gc.disable()
        try:
            for repetition in range(repetitions):
                self.order.shuffle(order)
                for name in order:
                    plan = plans[name]
                    self.reset()
                    self.comm.Barrier()
                    begin = perf_counter()
                    plan()
                    mine[name][repetition] = perf_counter() - begin
        finally:
            gc.enable()
        for times in mine.values():
            self.comm.Allreduce(MPI.IN_PLACE, times, MPI.MAX)
        return mine


def _fitting(asked: int | None, bounds: tuple[int, int], budget_s: float, once_s: float) -> int:
    """Return what was asked for, or as many as fit. The times are maxima, so all ranks agree."""
    if asked is not None:
        return asked
    fewest, most = bounds
    return max(fewest, min(most, int(budget_s / max(once_s, 1e-9))))
