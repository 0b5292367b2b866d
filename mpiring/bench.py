"""Measure: at each size prepare and verify every algorithm, then sample them all in turn."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from mpi4py import MPI

from mpiring import arrays
from mpiring.algorithms import ALGORITHMS
from mpiring.arrays import Array
from mpiring.chunks import Split
from mpiring.collective import allreduce_init
from mpiring.errors import MpiringError, UsageError
from mpiring.executor import Plan
from mpiring.limits import limit_calls, limit_s
from mpiring.machine import Machine
from mpiring.noise import Noise
from mpiring.operations import PREDEFINED
from mpiring.results import Point, with_native
from mpiring.sampling import Call, Sampler, Samples, Sampling
from mpiring.topology import Groups, Topology
from mpiring.units import format_amount, format_size
from mpiring.verify import Case, Exactness, find_fault, poison


@dataclass(frozen=True)
class Config:
    """What is measured, and how it is sampled."""

    algorithms: tuple[str, ...]
    sizes: tuple[int, ...]
    dtype: str = "float32"
    op: str = "sum"
    in_place: bool = False
    check: bool = True
    seed: int = 0
    sampling: Sampling = field(default_factory=Sampling)

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
    # Send, receive and expected values, data that round, and the scratch of each plan.
    per_rank = (4 + len(config.names)) * max(config.sizes)
    for ranks, available in zip(machine.nodes, machine.memory, strict=True):
        needed = per_rank * len(ranks)
        if needed > available:
            raise UsageError(
                f"{format_size(max(config.sizes))} on {len(ranks)} ranks of"
                f" {machine.hosts[ranks[0]]} needs {format_amount(needed)} of memory,"
                f" {format_amount(available)} is available"
            )


class Bench:
    """A benchmark on the ranks of one communicator. Making and running it is collective."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        config: Config,
        topology: Topology,
        noise: Noise,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`report` is told what goes on, in a few words."""
        self.comm = comm
        self.config = config
        self.topology = topology
        self.noise = noise
        self.report = report
        self.dtype = arrays.dtype_named(config.dtype)
        self.sampler = Sampler(comm, config.sampling, config.seed, noise.tick_s)

    def run(self, sizes: Iterator[int]) -> Iterator[tuple[Point, ...]]:
        """Yield the points of each size, in bytes, whole elements each."""
        for nbytes in sizes:
            yield _Measurement(self, nbytes).points()


class _Measurement:
    """All algorithms at one number of bytes, on one set of buffers."""

    def __init__(self, bench: Bench, nbytes: int) -> None:
        self.bench = bench
        self.comm = bench.comm
        self.config = bench.config
        self.case = Case(
            nbytes // bench.dtype.itemsize,
            bench.dtype,
            bench.config.op,
            bench.comm.size,
            bench.config.seed,
        )
        self.sendbuf = self.case.contribution(self.comm.rank)
        self.recvbuf = self.sendbuf.copy()  # touches its pages, before anything is timed

    @property
    def nodes(self) -> Groups:
        """The ranks that share memory, by the topology in use."""
        return self.bench.topology.nodes

    def report(self, text: str) -> None:
        self.bench.report(f"{format_size(self.sendbuf.nbytes)}: {text}")

    def points(self) -> tuple[Point, ...]:
        """Verify, sample, and return a point for each algorithm."""
        points: dict[str, dict[str, Any]] = {name: {} for name in self.config.names}
        plans: dict[str, Plan] = {}
        for name in points:
            try:
                plans[name] = self.prepare(name)
            except MpiringError as error:
                points[name]["note"] = f"n/a: {error}"
            else:
                points[name] |= self.describe(plans[name])
        if self.config.check:
            for name, verified in self.verify(plans).items():
                points[name] |= verified
                if not verified["check_ok"]:
                    plans.pop(name).free()
        for name, samples in self.sample(plans).items():
            points[name] |= samples
        for plan in plans.values():
            plan.free()
        common: dict[str, Any] = {
            "nbytes": self.sendbuf.nbytes,
            "count": self.case.count,
            "dtype": self.config.dtype,
            "op": self.config.op,
            "in_place": self.config.in_place,
            "ranks": self.comm.size,
            "noise_floor_s": self.bench.noise.floor_s(self.config.sampling.sync),
        }
        return with_native(
            tuple(Point(algorithm=name, **common, **known) for name, known in points.items())
        )

    def prepare(self, name: str) -> Plan:
        return allreduce_init(
            MPI.IN_PLACE if self.config.in_place else self.sendbuf,
            self.recvbuf,
            PREDEFINED[self.config.op],
            comm=self.comm,
            algorithm=name,
            topology=self.bench.topology,
        )

    def describe(self, plan: Plan) -> dict[str, Any]:
        """Return what the plan does: rounds and bytes of the busiest rank."""
        known: dict[str, Any] = {"ran": plan.algorithm, "note": plan.remark}
        if plan.traffic is not None:
            most = np.array([plan.traffic.rounds, plan.traffic.elements_sent])
            self.comm.Allreduce(MPI.IN_PLACE, most, MPI.MAX)
            known["rounds"] = int(most[0])
            known["bytes_sent_per_rank"] = int(most[1]) * self.case.dtype.itemsize
        return known

    def verify(self, plans: dict[str, Plan]) -> dict[str, dict[str, Any]]:
        """Run each plan on data that are exact in any order, and on data that round."""
        verified: dict[str, dict[str, Any]] = {}
        expected = self.make_expected()
        for name, plan in plans.items():
            self.report(f"checking {name}")
            fault = self.find_fault(plan, expected)
            verified[name] = {"check_ok": not fault}
            if fault:
                verified[name]["note"] = f"WRONG: {fault}"
        exactness = Exactness.of(self.case)
        if exactness is None:
            return verified
        arrays.copy(self.sendbuf, exactness.contribution(self.comm.rank))
        reference = exactness.reference(self.comm.allgather(exactness.probe(self.sendbuf)))
        for name, plan in plans.items():
            if verified[name]["check_ok"]:
                self.reset()
                plan()
                bits = self.comm.allgather(arrays.fingerprint(self.recvbuf))
                verified[name]["max_ulp"] = exactness.error(self.recvbuf, reference)
                verified[name]["ranks_equal"] = len(set(bits)) == 1
        arrays.copy(self.sendbuf, self.case.contribution(self.comm.rank))
        return verified

    def find_fault(self, plan: Plan, expected: Array) -> str:
        """Run once, and return what is wrong on the lowest rank where something is."""
        before = arrays.fingerprint(self.sendbuf)
        poison(self.recvbuf, expected)
        self.reset()
        plan()
        fault = find_fault(self.recvbuf, expected)
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

    def sample(self, plans: dict[str, Plan]) -> dict[str, dict[str, Any]]:
        """Return what was sampled of each plan, beside the limit."""
        limits = limit_calls(self.comm, self.nodes, self.sendbuf, self.recvbuf) if plans else {}
        calls: dict[str, Call] = {**plans, **limits}
        reset = self.reset if self.config.in_place else None
        samples = self.bench.sampler.sample(calls, reset, self.report)
        if not samples:
            return {}
        limit = limit_s({n: float(np.median(samples[n].slowest)) for n in limits}, self.nodes)
        return {name: _sampled(samples[name], limit) for name in plans}


def _sampled(samples: Samples, limit: float) -> dict[str, Any]:
    means = samples.rank_means
    return {
        "samples_s": tuple(map(float, samples.slowest)),
        "batch": samples.batch,
        "rank_means_s": (float(means.mean()), float(means.min()), float(means.max())),
        "slowest_rank": int(means.argmax()),
        "limit_s": limit,
    }
