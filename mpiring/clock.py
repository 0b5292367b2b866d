"""One clock for all ranks: where each rank's own clock stands beside that of rank 0.

Rank 0 and each other rank exchange short messages; the exchange that took least time tells best
what the other clock showed in its middle (Cristian, Probabilistic clock synchronization, 1989). Two
such looks some time apart give the drift. The next is due when as much time again has gone by: what
the looks could not tell of the drift has then moved the clock by no more than they may be wrong.
"""

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
from mpi4py import MPI

EXCHANGES = 40
RENEW_AFTER_S = 5.0
"""At the latest, since drift itself changes."""


class _Look(NamedTuple):
    """At local time `when`, the clock of rank 0 was ahead by `offset`, give or take `error`."""

    when: float
    offset: float
    error: float


class GlobalClock:
    """The clock of rank 0, as this rank can tell it. Seconds. Making it is collective."""

    def __init__(self, comm: MPI.Intracomm, local: Callable[[], float] = perf_counter) -> None:
        self.comm = comm
        self.local = local
        self.drift = 0.0
        self.look = self._look()
        self.first = self.look

    @property
    def error_s(self) -> float:
        """Half the time of the quickest exchange: how wrong the offset can be."""
        return self.look.error

    def now(self) -> float:
        """Return the time on the clock of rank 0."""
        return self.to_global(self.local())

    def to_global(self, local: float) -> float:
        """Return the time of rank 0 at a local time."""
        return local + self.look.offset + self.drift * (local - self.look.when)

    def renew(self) -> None:
        """Look again, and learn the drift since the first look. Collective."""
        self.look = self._look()
        elapsed = self.look.when - self.first.when
        # A drift smaller than what the two looks may be wrong by is none that we know of.
        moved = self.look.offset - self.first.offset
        known = abs(moved) > self.look.error + self.first.error
        self.drift = moved / elapsed if known and elapsed > 0 else 0.0

    def stale(self) -> bool:
        """Return whether it is time to look again, as rank 0 sees it. Collective."""
        due = self.look.when + min(RENEW_AFTER_S, self.look.when - self.first.when)
        return bool(self.comm.bcast(self.local() > due))

    def _look(self) -> _Look:
        comm, stamp = self.comm, np.empty(1)
        best = _Look(self.local(), 0.0, 0.0)
        for peer in range(1, comm.size):
            if comm.rank == 0:
                for _ in range(EXCHANGES):
                    comm.Recv(stamp, peer)
                    stamp[0] = self.local()
                    comm.Send(stamp, peer)
            elif comm.rank == peer:
                looks = []
                for _ in range(EXCHANGES):
                    sent = self.local()
                    comm.Send(stamp, 0)
                    comm.Recv(stamp, 0)
                    back = self.local()
                    middle = (sent + back) / 2
                    looks.append(_Look(middle, float(stamp[0]) - middle, (back - sent) / 2))
                best = min(looks, key=lambda look: look.error)
        return best
