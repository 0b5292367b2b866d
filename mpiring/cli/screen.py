"""What a run says: its table or document on standard output, all else on standard error."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from mpiring.report.formats import FORMATS, WITHOUT_NOTES
from mpiring.report.points import PointsTable, header, notes, untimed
from mpiring.results import Point, Result
from mpiring.units import counted, format_size

if TYPE_CHECKING:
    from mpiring.machine import Machine


class Screen:
    """Shows a benchmark as it goes. Every rank has one, and that of rank 0 `speaks`."""

    def __init__(
        self, speaks: bool, form: str, sizes: Sequence[int], algorithms: Sequence[str]
    ) -> None:
        self.speaks = speaks
        self.form = form
        self.table = PointsTable(sizes, algorithms) if speaks and form == "table" else None

    def begin(self, result: Result) -> None:
        """Show what it runs on, and the points that were there before."""
        if self.table:
            click.echo(header(result))
            if result.points:
                click.echo(self.table.rows(result.points))

    def show(self, points: Sequence[Point]) -> None:
        """Show points that are finished."""
        if self.table:
            click.echo(self.table.rows(points))

    def end(self, result: Result) -> None:
        """Show what can be told of the whole."""
        if self.table:
            for note in notes(result.points):
                click.echo(note)
        elif self.speaks:
            click.echo(FORMATS[self.form](result), nl=False)
            for line in untimed(result.points) if self.form in WITHOUT_NOTES else ():
                self.say(line)

    def say(self, text: str) -> None:
        """Say something of the run itself."""
        if self.speaks:
            say(text)


def say(text: str) -> None:
    """Say something on standard error."""
    click.echo(f"mpiring: {text}", err=True)


def warn(machine: "Machine", rounded: Mapping[int, Sequence[int]]) -> None:
    """Say what the reader of the numbers has to know."""
    for host, ranks, cores in machine.crowded:
        say(
            f"WARNING: on {host} {ranks} ranks share {counted(cores, 'core')}: they wait for"
            " each other's turn, so these times say little about the machine"
        )
    for nbytes, asked in rounded.items():
        others = [format_size(size) for size in asked if size != nbytes]
        if others:
            say(f"{', '.join(others)} rounded up to whole elements: {format_size(nbytes)}")
