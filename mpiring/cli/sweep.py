"""One run of `mpiring bench`: checked beforehand, measured size after size, told as it goes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from mpi4py import MPI

from mpiring.agreement import on_rank_zero, together
from mpiring.bench import Bench, Config, check_memory, check_preconditions, whole_elements
from mpiring.budget import Budget
from mpiring.cli.job import survey_job
from mpiring.cli.resume import Earlier
from mpiring.cli.screen import Screen, warn
from mpiring.communicator import read_decision
from mpiring.decision_file import digest
from mpiring.environment import environment
from mpiring.errors import Stopped
from mpiring.noise import measure_noise
from mpiring.report.files import TRACE, ResultFile, check_apart, check_writable, save
from mpiring.report.progress import Verbosity, progress
from mpiring.results import Point, Result
from mpiring.stop import Stop
from mpiring.timeline import Run, to_trace
from mpiring.units import counted


@dataclass(frozen=True)
class Wishes:
    """Where results go, and how much is said of the run."""

    output: str | None
    trace: str | None
    form: str
    verbosity: Verbosity


class Sweep:
    """A benchmark over sizes. Making one checks all that can be checked beforehand. Collective."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        stop: Stop,
        config: Config,
        topology_file: str | None,
        wishes: Wishes,
        earlier: Earlier | None,
    ) -> None:
        """`earlier` is the run that this one goes on with."""
        self.comm = comm
        self.stop = stop
        self.wishes = wishes
        self.earlier = earlier
        self.machine, self.topology = survey_job(comm, topology_file)
        self.decision = read_decision(comm, config.decision)
        known = digest(self.decision) if self.decision else None
        self.config = config = replace(config, decision_digest=known)
        self.rounded = together(comm, lambda: whole_elements(config))
        check_preconditions(config, self.topology)
        check_memory(config, self.machine)
        self.noise = measure_noise(comm)
        # Rank 0's result counts: other ranks have variables and processors of their own.
        self.result = on_rank_zero(comm, self._begun)
        output = wishes.output
        self.file = on_rank_zero(comm, lambda: ResultFile(output) if output else None)
        on_rank_zero(comm, self._check_trace)
        self._save_trace([])
        self.screen = Screen(comm.rank == 0, wishes.form, list(self.rounded), config.names)
        self.measured: list[Point] = []
        """By this run."""
        self.stopped: Stopped | None = None
        """Why it ended early, if it did."""

    def run(self) -> None:
        """Measure what is lacking and fits into the time there is, or go on until it is stopped."""
        config, wishes, screen = self.config, self.wishes, self.screen
        sizes = [nbytes for nbytes in self.rounded if not self.result.has(nbytes, config.names)]
        screen.begin(self.result)
        if screen.speaks:
            warn(self.machine, self.rounded)
        verbosity = wishes.verbosity if screen.speaks else "quiet"
        with progress(len(sizes), verbosity) as reporter:
            bench = Bench(
                self.comm,
                config,
                self.topology,
                self.noise,
                reporter.doing,
                self.stop,
                trace=wishes.trace is not None,
                decision=self.decision,
            )
            try:
                for points in bench.run(self._in_time(sizes)):
                    self._save_trace(bench.runs)
                    self._add(points)
                    reporter.done()
                    with reporter.aside():
                        screen.show(points)
                self.result = self.result.complete()
            except Stopped as stopped:
                self.stopped = stopped
        self._save()
        screen.end(self.result)
        if self.stopped:
            screen.say(f"{self.stopped}: {self._share()}")

    def _begun(self) -> Result:
        """Return the result without a point, or with those of the earlier run that stay."""
        config, floor_s = self.config, self.noise.floor_s(self.config.sampling.sync)
        at = environment(self.machine, self.topology, self.noise, floor_s)
        begun = Result(at, config.document())
        if self.earlier is None:
            return begun
        sizes = list(self.rounded)
        return begun.resume(self.earlier.result, self.earlier.path, sizes, config.names)

    def _in_time(self, sizes: Sequence[int]) -> Iterator[int]:
        """Yield the sizes that fit into the time there is, each chosen by what is measured so far.

        Raises Stopped on all ranks where no other one fits.
        """
        sampling, rest = self.config.sampling, list(sizes)
        budget = Budget(len(self.config.names), sampling.fewest, sampling.time_limit_s)
        while rest:
            left_s = self.stop.deadline - monotonic()
            order = partial(budget.order, tuple(rest), self.result.points, left_s)
            fitting = on_rank_zero(self.comm, order)
            if not fitting:
                raise self.stop.time_is_up()
            if not self.measured and len(fitting) < len(rest):
                self.screen.say(
                    f"in {left_s:.0f} s there is time for about {len(fitting)} of"
                    f" {counted(len(rest), 'size')}: the most informative first"
                )
            rest.remove(fitting[0])
            yield fitting[0]

    def _add(self, points: Sequence[Point]) -> None:
        self.measured += points
        self.result = self.result.with_points(tuple(points))
        self._save()

    def _save(self) -> None:
        """Write what is measured. What an earlier run has beside it is lost to no file."""
        kept = self.result.with_rest_of(self.earlier.result) if self.earlier else self.result
        if file := self.file:
            on_rank_zero(self.comm, lambda: file.write(kept))

    def _check_trace(self) -> None:
        """On rank 0 alone: links lead elsewhere on another host."""
        if path := self.wishes.trace:
            check_apart(path, self.wishes.output)
            check_writable(path, TRACE)

    def _save_trace(self, runs: Sequence[Run]) -> None:
        if path := self.wishes.trace:
            on_rank_zero(self.comm, lambda: save(path, to_trace(runs, self.noise.clock_error_s)))

    def _share(self) -> str:
        """Say how much is measured, and what measures the rest."""
        done = sum(self.result.has(nbytes, self.config.names) for nbytes in self.rounded)
        said = f"{done} of {counted(len(self.rounded), 'size')} measured"
        output = self.wishes.output or ""
        readable = output.lower().endswith(".json")
        return f"{said}; --resume {output} measures the rest" if readable else said
