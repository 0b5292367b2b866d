"""Segmented ring: the ring with each chunk cut into segments, two of which are in flight.

While a rank adds up the segment that it received, the next one is already on its way. With the
plain ring the link is idle while ranks add, and the cores while chunks move.

Rounds: 2(N-1) for each segment. Bytes sent per rank: 2(N-1)/N n, the lower bound.
Cost, with S segments: S 2(N-1) alpha + 2(N-1)/N n beta, and what is left of (N-1)/N n gamma.
Source: Patarasuk and Yuan (see `ring`); segments and double buffering are those of Open MPI's
coll/tuned component.

The rounds are those of `ring`; any algorithm can be cut like this (see `schedule.segmented`).
"""

SEGMENT = 128 << 10
"""Bytes: two of them, with what they are added to, stay in a core's cache."""
