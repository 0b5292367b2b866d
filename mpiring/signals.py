"""Signals that ask this process to end: they are noted, from before MPI is there."""

import signal
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
"""What tells that the time is nearly up."""
ENDS = (signal.SIGTERM, signal.SIGINT)
"""What tells that somebody wants an end."""
# A batch system asks with SIGTERM before it kills, or earlier with one that the user chose.
SIGNALS = (*WARNINGS, *ENDS)
"""Of several the one that comes last here counts: an end more than a warning, whenever it came."""


class Hearing(AbstractContextManager["Hearing"]):
    """Notes the signals that arrive during a `with` block; nothing ends by them.

    A second SIGINT is a KeyboardInterrupt, as in any program.
    """

    def __init__(self) -> None:
        self.heard: signal.Signals | None = None
        """The one that counts."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Hearing":
        self._before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT == self.heard:
            raise KeyboardInterrupt
        self.heard = max(filter(None, (self.heard, signal.Signals(number))), key=SIGNALS.index)
