"""An early end that all ranks take together: after a signal to any of them, or at a deadline."""

from math import inf
from signal import Signals
from time import monotonic

import numpy as np
from mpi4py import MPI

from mpiring.errors import Stopped, TimeIsUp
from mpiring.signals import SIGNALS, WARNINGS, Hearing

LATE = "late"
TOLD = (None, LATE, *SIGNALS)
"""What a rank tells, by its number: nothing, that time is up, or a signal. The largest counts."""


class Stop:
    """Lets all ranks know what one of them has heard."""

    def __init__(
        self, comm: MPI.Intracomm, hearing: Hearing, left_s: float = inf, whose: str = "this run"
    ) -> None:
        """There are `left_s` seconds from now on: `whose` time that is, the message says."""
        self.comm = comm
        self.hearing = hearing
        self.deadline = monotonic() + left_s
        """When time is up, on this rank's monotonic clock."""
        self.whose = whose

    def __call__(self) -> None:
        """Raise Stopped on all ranks where one has heard a signal, or has no time left. Collective.

        It waits for all ranks, so its place is between samples.
        """
        late = LATE if monotonic() > self.deadline else None
        told = np.array([TOLD.index(self.hearing.heard or late)])
        self.comm.Allreduce(MPI.IN_PLACE, told, MPI.MAX)
        reason = TOLD[told[0]]
        if reason == LATE:
            raise self.time_is_up()
        if isinstance(reason, Signals):
            kind = TimeIsUp if reason in WARNINGS else Stopped
            raise kind(f"stopped by {reason.name}")

    def time_is_up(self) -> TimeIsUp:
        """Return what to raise, on all ranks, where no time is left."""
        return TimeIsUp(f"the time of {self.whose} is up")
