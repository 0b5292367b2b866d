"""One run of `mpiring tune`: checked beforehand, measured size after size, told as it goes."""

from typing import Any

import click
from mpi4py import MPI

from mpiring.agreement import on_rank_zero, together
from mpiring.bench import Config, check_memory, whole_elements
from mpiring.cli.job import survey_job
from mpiring.cli.screen import say, warn
from mpiring.decision import Table
from mpiring.decision_file import read, to_toml
from mpiring.environment import environment
from mpiring.errors import Stopped, UsageError
from mpiring.noise import measure_noise
from mpiring.report.files import check_place, save
from mpiring.report.points import header, tuned_header, tuned_row, untimed
from mpiring.report.progress import Verbosity, progress
from mpiring.results import Result
from mpiring.stop import Stop
from mpiring.texts import read_text
from mpiring.topology import Topology
from mpiring.tune import Contest, Tuning, situation_of
from mpiring.units import counted

ABOUT = (
    *("started", "mpiring", "mpi4py", "mpi_library", "thread_level"),
    *("cpu_model", "cores_per_node"),
)
"""What a decision file says of the run, of all that there is to say."""


class Search:
    """A tuning over sizes. Making one checks all that can be checked beforehand. Collective."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        stop: Stop,
        config: Config,
        topology_file: str | None,
        output: str,
        verbosity: Verbosity,
        confirm: bool = False,
    ) -> None:
        """`confirm`: measure again what `output` has of this situation, and nothing else."""
        self.comm = comm
        self.output = output
        self.speaks = comm.rank == 0
        self.verbosity: Verbosity = verbosity if self.speaks else "quiet"
        self.machine, topology = survey_job(comm, topology_file)
        known = on_rank_zero(comm, lambda: _known(output))
        self.contest = contest = together(
            comm, lambda: _again(config, known, topology) if confirm else Contest.of_all(config)
        )
        self.rounded = together(comm, lambda: whole_elements(contest))
        check_memory(contest, self.machine)
        noise = measure_noise(comm)
        self.at = environment(self.machine, topology, noise, noise.floor_s(contest.sampling.sync))
        self.tuning = Tuning(comm, contest, topology, noise, stop)
        self.stopped: Stopped | None = None
        """Why it ended early, if it did."""

    @property
    def wrong(self) -> bool:
        """Whether any data were wrong."""
        return bool(self.tuning.wrong)

    def run(self) -> None:
        """Measure all sizes, and write what is picked; after a signal, leave the file as it was."""
        sizes, tuning = sorted(self.rounded), self.tuning
        if self.speaks:
            click.echo(header(Result(self.at, self.contest.document())))
            click.echo(tuned_header())
            warn(self.machine, self.rounded)
        with progress(len(sizes), self.verbosity) as reporter:
            tuning.report = reporter.doing
            try:
                for name, finals in tuning.run(sizes):
                    reporter.done()
                    if self.speaks:
                        with reporter.aside():
                            click.echo(tuned_row(finals[name]))
            except Stopped as stopped:
                self.stopped = stopped
            finally:
                for line in untimed(tuning.wrong) if self.speaks else ():
                    with reporter.aside():
                        say(line)
        if self.stopped is None:
            self._save()
        elif self.speaks:
            done = f"{len(tuning.picked)} of {counted(len(sizes), 'size')} measured"
            say(f"{self.stopped}: {done}; nothing is written to {self.output}")

    def _save(self) -> None:
        measured: dict[str, Any] = {name: self.at[name] for name in ABOUT}
        row = self.tuning.row(**measured, dtype=self.contest.dtype, op=self.contest.op)
        if self.speaks:
            click.echo(f"\n{row.sentence()}")
        # The file is read once more: another run may have written to it meanwhile.
        on_rank_zero(
            self.comm, lambda: save(self.output, to_toml(_known(self.output).with_row(row)))
        )
        if self.speaks:
            click.echo(f"{self.output} is written")


def _again(config: Config, known: Table, topology: Topology) -> Contest:
    situation = situation_of(config, topology)
    row = known.row(situation)
    if row is None:
        raise UsageError(f"{known.source}: nothing to confirm, it has no rules for {situation}")
    try:
        return Contest.again(config, row)
    except ValueError as error:
        raise UsageError(f"{known.source}: nothing to confirm: {error}") from None


def _known(path: str) -> Table:
    """Return what the file says already, if there is one, and see that it can be written."""
    text = read_text(path) if check_place(path) else ""
    try:
        return read(text, path) if text else Table((), path)
    except UsageError as error:
        raise UsageError(f"{error}, so it is not overwritten") from None
