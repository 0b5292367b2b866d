"""How far a run is, on standard error: a bar on a terminal, a line now and then in a log."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic
from typing import Literal, Protocol, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

LINE_EVERY_S = 5.0
Verbosity: TypeAlias = Literal["quiet", "usual", "verbose"]


class Reporter(Protocol):
    """What is told of a run of several steps."""

    def doing(self, text: str) -> None:
        """Say what goes on now."""

    def done(self) -> None:
        """Count a step that is finished."""

    def aside(self) -> AbstractContextManager[None]:
        """Make room on the terminal for other output, for the length of a `with` block."""


def progress(
    steps: int, verbosity: Verbosity, called: str = "sizes"
) -> AbstractContextManager[Reporter]:
    """Return what shows the progress of `steps` steps, for the length of a `with` block."""
    if verbosity == "quiet":
        return nullcontext(_Silent())
    if verbosity == "verbose":
        return nullcontext(_Lines(steps, called, every_s=0))
    if sys.stderr.isatty():
        return _Bar(steps, called)
    return nullcontext(_Lines(steps, called, every_s=LINE_EVERY_S))


class _Silent:
    def doing(self, text: str) -> None:
        pass

    def done(self) -> None:
        pass

    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()


class _Lines:
    def __init__(self, steps: int, called: str, every_s: float) -> None:
        self.steps = f"{steps} {called}"
        self.every_s = every_s
        self.finished = 0
        self.said = monotonic()

    def doing(self, text: str) -> None:
        if monotonic() - self.said >= self.every_s:
            self.said = monotonic()
            print(f"mpiring: {self.finished} of {self.steps} done; {text}", file=sys.stderr)

    def done(self) -> None:
        self.finished += 1

    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()


class _Bar(AbstractContextManager["_Bar"]):
    def __init__(self, steps: int, called: str) -> None:
        self.bar = Progress(
            BarColumn(),
            TextColumn(f"{{task.completed}} of {{task.total}} {called}"),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,  # a thread that draws would disturb what is measured
            redirect_stdout=False,
        )
        self.task = self.bar.add_task("", total=steps)

    def __enter__(self) -> "_Bar":
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def doing(self, text: str) -> None:
        self.bar.update(self.task, description=text, refresh=True)

    def done(self) -> None:
        self.bar.update(self.task, advance=1, refresh=True)

    @contextmanager
    def aside(self) -> Iterator[None]:
        self.bar.stop()
        yield
        self.bar.start()
