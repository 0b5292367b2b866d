"""Standard output and error that are full or closed: one sentence, or none, and no traceback."""

import errno
import os
import sys
from typing import Any

import click

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class OutputError(click.ClickException):
    """Standard output took no more; the exit status is 1."""

    def show(self, file: Any = None) -> None:
        """Say it as all other errors of ours."""
        click.echo(f"mpiring: error: {self.message}", err=True)


class Command(click.Command):
    """A command that says in one line where its output could not be written."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if not (said := full(error)):
                raise
            # What is still in the buffer would fail once more as this process ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise OutputError(said) from None


def full(error: BaseException) -> str:
    """Return what to say if standard output took no more, and nothing for any other error.

    An error of a named file is told where that is written.
    """
    if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
        return f"standard output: {error.strerror}"
    return ""


def open_closed() -> None:
    """Let what is closed lead nowhere; the next file that is opened would take its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  until this process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
