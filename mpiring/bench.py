"""Measure: at each size prepare and verify every algorithm, then sample them all in turn."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from mpi4py import MPI

from mpiring import arrays
from mpiring.algorithms import ALGORITHMS
from mpiring.algorithms.algorithm import NATIVE
from mpiring.arrays import Array
from mpiring.chunks import Split
from mpiring.clock import GlobalClock
from mpiring.collective import allreduce_init, empty
from mpiring.cost import crossings, traffic
from mpiring.decision import NODE_SHARED, ORDINARY, Pick, Table
from mpiring.errors import MpiringError, UsageError
from mpiring.limits import limit_calls, limit_s
from mpiring.machine import Machine
from mpiring.noise import Noise
from mpiring.operations import PREDEFINED
from mpiring.options import DEFAULTS, Options
from mpiring.plan import Plan
from mpiring.results import Point, with_native
from mpiring.sampling import Sampler, Samples, Sampling
from mpiring.timeline import RankTrace, Run
from mpiring.topology import Groups, Topology
from mpiring.trace import record
from mpiring.units import format_size
from mpiring.verify import Case, Exactness, find_fault, poison


@dataclass(frozen=True)
class Config:
    """What is measured, and how it is sampled."""

    algorithms: tuple[str, ...]
    sizes: tuple[int, ...]
    dtype: str = "float32"
    op: str = "sum"
    in_place: bool = False
    buffers: str = ORDINARY
    """Where arrays lie: `ordinary`, each rank's own, or `node-shared` (see `mpiring.empty`)."""
    check: bool = True
    seed: int = 0
    options: Options = DEFAULTS
    decision: str | None = None
    """The file with the table of `auto`; None for the built-in one."""
    decision_digest: str | None = None
    """Of what is in that file."""
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        """Raise UsageError where a contribution would have to be put back within a batch."""
        if self.in_place and (self.sampling.batch or 1) > 1:
            raise UsageError("--batch and --in-place exclude each other")

    @property
    def names(self) -> list[str]:
        """The algorithms in the registry's order, `native` always among them."""
        return [name for name in ALGORITHMS if name in {*self.algorithms, NATIVE}]

    def pick_of(self, name: str) -> Pick:
        """Return the algorithm of this name, with those of the options that it heeds."""
        return Pick(name, self.options.only(ALGORITHMS[name].heeded))

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


def check_preconditions(config: Config, topology: Topology) -> None:
    """Raise UsageError where an algorithm cannot run with the options on these ranks."""
    itemsize = arrays.dtype_named(config.dtype).itemsize
    for name in config.names:
        pick = config.pick_of(name)
        if ALGORITHMS[pick.algorithm].schedule:
            ALGORITHMS[pick.algorithm].scheduled(topology, pick.options, 1, itemsize)


def check_memory(config: Config, machine: Machine) -> None:
    """Raise UsageError where the largest size does not fit, before anything runs."""
    # Send, receive and expected values, data that round, and the scratch of each plan.
    largest = max(config.sizes)
    per_rank = (4 + len(config.names)) * largest
    shared_per_rank = 2 * largest if config.buffers == NODE_SHARED else 0
    machine.check_memory(largest, per_rank, shared_per_rank)


class Bench:
    """A benchmark on the ranks of one communicator. Making and running it is collective."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        config: Config,
        topology: Topology,
        noise: Noise,
        report: Callable[[str], None] = lambda text: None,
        stop: Callable[[], None] = lambda: None,
        trace: bool = False,
        decision: Table | None = None,
    ) -> None:
        """`report` is told what goes on, in a few words; `trace` keeps a run of each in `runs`;
        `decision` is what `auto` goes by, beside the built-in table.

        `stop` is called between samples, and may raise, on all ranks together.
        """
        self.comm = comm
        self.config = config
        self.topology = topology
        self.noise = noise
        self.report = report
        self.stop = stop
        self.decision = decision
        self.dtype = arrays.dtype_named(config.dtype)
        self.sampler = Sampler(comm, config.sampling, config.seed, noise.tick_s, stop)
        self.clock = GlobalClock(comm) if trace else None
        self.runs: list[Run] = []
        """The traced runs, on rank 0."""

    def run(self, sizes: Iterable[int]) -> Iterator[tuple[Point, ...]]:
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
        contribution = self.case.contribution(self.comm.rank)
        if bench.config.buffers == NODE_SHARED:
            self.sendbuf, self.recvbuf = (
                empty(self.case.count, bench.dtype, comm=self.comm) for _ in range(2)
            )
            arrays.copy(self.sendbuf, contribution)
        else:
            self.sendbuf = contribution
            self.recvbuf = contribution.copy()  # touches its pages, before anything is timed

    @property
    def nodes(self) -> Groups:
        """The ranks that share memory, by the topology in use."""
        return self.bench.topology.nodes

    def begin(self, text: str) -> None:
        """Say what comes next, unless the run is to stop. Collective."""
        self.bench.stop()
        self.bench.report(f"{format_size(self.sendbuf.nbytes)}: {text}")

    def points(self) -> tuple[Point, ...]:
        """Verify, sample, and return a point for each algorithm."""
        points = {name: self.blank(name) for name in self.config.names}
        plans: dict[str, Plan] = {}
        for name, point in points.items():
            try:
                plans[name] = self.prepare(name)
            except MpiringError as error:
                points[name] = replace(point, note=f"n/a: {error}")
            else:
                points[name] = self.described(point, plans[name])
        if self.config.check:
            points = self.verified(points, plans)
        if self.bench.clock:
            for name, plan in plans.items():
                if points[name].check_ok is not False:
                    points[name] = self.traced(points[name], plan, self.bench.clock)
        for name in [name for name in plans if points[name].check_ok is False]:
            plans.pop(name).free()
        points = self.sampled(points, plans)
        for plan in plans.values():
            plan.free()
        return with_native(tuple(points.values()))

    def blank(self, name: str) -> Point:
        """Return the point of which nothing is known yet."""
        return Point(
            algorithm=name,
            nbytes=self.sendbuf.nbytes,
            count=self.case.count,
            dtype=self.config.dtype,
            op=self.config.op,
            in_place=self.config.in_place,
            ranks=self.comm.size,
            noise_floor_s=self.floor_s(batch=1),
        )

    def floor_s(self, batch: int) -> float:
        return self.bench.noise.floor_s(self.config.sampling.sync, batch)

    def prepare(self, name: str) -> Plan:
        pick = self.config.pick_of(name)
        return allreduce_init(
            MPI.IN_PLACE if self.config.in_place else self.sendbuf,
            self.recvbuf,
            PREDEFINED[self.config.op],
            comm=self.comm,
            algorithm=pick.algorithm,
            topology=self.bench.topology,
            options=pick.options,
            decision=self.bench.decision,
        )

    def described(self, point: Point, plan: Plan) -> Point:
        """Add what the plan does: rounds and bytes of the busiest rank, messages between nodes."""
        asked, ran = self.config.pick_of(point.algorithm), Pick(plan.algorithm, plan.options)
        picked = "" if ran.algorithm == asked.algorithm else f"{asked.algorithm}: "
        point = replace(point, ran=f"{picked}{ran}", note=plan.remark)
        if plan.traffic is None or plan.schedule is None:
            return point
        most = np.array([plan.traffic.rounds, plan.traffic.elements_sent])
        self.comm.Allreduce(MPI.IN_PLACE, most, MPI.MAX)
        split = Split(self.case.count, plan.schedule.chunks)
        mine = crossings(plan.schedule, self.comm.rank, split, self.nodes)
        return replace(
            point,
            rounds=int(most[0]),
            bytes_sent_per_rank=int(most[1]) * self.case.dtype.itemsize,
            node_crossings=self.comm.allreduce(mine) / max(1, int(most[0])),
        )

    def verified(self, points: dict[str, Point], plans: dict[str, Plan]) -> dict[str, Point]:
        """Run each plan on data that are exact in any order, and on data that round."""
        points = dict(points)
        expected = self.make_expected()
        for name, plan in plans.items():
            self.begin(f"checking {name}")
            fault = self.find_fault(plan, expected) or self.miscounted(plan)
            note = f"WRONG: {fault}" if fault else points[name].note
            points[name] = replace(points[name], check_ok=not fault, note=note)
        exactness = Exactness.of(self.case)
        if exactness is None:
            return points
        arrays.copy(self.sendbuf, exactness.contribution(self.comm.rank))
        reference = exactness.reference(self.comm.allgather(exactness.probe(self.sendbuf)))
        for name, plan in plans.items():
            if points[name].check_ok:
                self.reset()
                plan()
                bits = self.comm.allgather(arrays.fingerprint(self.recvbuf))
                error = exactness.error(self.recvbuf, reference)
                points[name] = replace(
                    points[name],
                    max_ulp=self.comm.allreduce(error, MPI.MAX),
                    ranks_equal=len(set(bits)) == 1,
                )
        arrays.copy(self.sendbuf, self.case.contribution(self.comm.rank))
        return points

    def traced(self, point: Point, plan: Plan, clock: GlobalClock) -> Point:
        """Keep what each rank did in one more run, which is warm and checked like the first."""
        self.begin(f"tracing {point.algorithm}")
        clock.renew()
        expected = self.make_expected()
        ranks: list[RankTrace] = []

        def run() -> None:
            nonlocal ranks
            ranks = record(self.comm, plan, self.case.count, clock)

        fault = self.find_fault(run, expected)
        if ranks:
            self.bench.runs.append(Run(point.algorithm, point.nbytes, ranks))
        return replace(point, check_ok=False, note=f"WRONG: {fault}") if fault else point

    def find_fault(self, run: Callable[[], None], expected: Array) -> str:
        """Run once, and return what is wrong on the lowest rank where something is."""
        before = arrays.fingerprint(self.sendbuf)
        poison(self.recvbuf, expected)
        self.reset()
        run()
        fault = find_fault(self.recvbuf, expected)
        if arrays.fingerprint(self.sendbuf) != before:
            fault = fault or "the send buffer was changed"
            arrays.copy(self.sendbuf, self.case.contribution(self.comm.rank))  # others need it
        return self.first(fault)

    def first(self, fault: str) -> str:
        """Return what is wrong on the lowest rank where something is."""
        faults = self.comm.allgather(fault)
        return next((f"rank {rank}: {text}" for rank, text in enumerate(faults) if text), "")

    def miscounted(self, plan: Plan) -> str:
        """Return where what was handed to MPI is not what the schedule says."""
        fault = ""
        if plan.schedule is not None:
            split = Split(self.case.count, plan.schedule.chunks)
            planned = traffic(plan.schedule.rounds(self.comm.rank), split)
            if planned != plan.traffic:
                fault = f"what MPI is handed is {plan.traffic}, its schedule has {planned}"
        return self.first(fault)

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

    def sampled(self, points: dict[str, Point], plans: dict[str, Plan]) -> dict[str, Point]:
        """Add what was sampled of each plan, beside the limit."""
        if not plans:
            return points
        limits = limit_calls(self.comm, self.nodes, self.sendbuf, self.recvbuf)
        reset = self.reset if self.config.in_place else None
        samples = self.bench.sampler.sample(plans, limits, reset, self.begin)
        limit = limit_s({n: float(np.median(samples[n].slowest)) for n in limits}, self.nodes)
        return points | {name: self.timed(points[name], samples[name], limit) for name in plans}

    def timed(self, point: Point, samples: Samples, limit: float) -> Point:
        means = samples.rank_means
        return replace(
            point,
            samples_s=tuple(map(float, samples.slowest)),
            batch=samples.batch,
            rank_means_s=(float(means.mean()), float(means.min()), float(means.max())),
            slowest_rank=int(means.argmax()),
            limit_s=limit,
            noise_floor_s=self.floor_s(samples.batch),
        )
