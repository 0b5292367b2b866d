"""Messages between pairs on real ranks, and ranks that wait meanwhile."""

import time

import numpy as np
import pytest

from mpiring.pairs import tournament
from mpiring.pingpong import FEWEST, WARMUP_SHORT, Probing, Rounds, _exchange, measure
from mpiring.starts import quiet_barrier

pytestmark = pytest.mark.mpi


def test_nobody_leaves_a_quiet_barrier_before_all_have_come(comm):
    for last in range(comm.size):
        if comm.rank == last:
            time.sleep(0.03)
        came = time.perf_counter()
        quiet_barrier(comm)
        left = time.perf_counter()
        assert max(comm.allgather(came)) <= min(comm.allgather(left))  # one host, one clock


@pytest.mark.parametrize("nbytes", [1, 5, 300_000])
def test_each_pair_is_measured_in_both_directions(comm, nbytes):
    pairs = list(tournament(comm.size))
    said, done = [], []
    rounds = Rounds([[pair] for pair in pairs], [[pair] for pair in reversed(pairs)])
    probing = Probing(nbytes=nbytes, time_limit_s=1e-9)
    links = measure(comm, rounds, probing, said.append, lambda: done.append(1))
    assert len(said) == len(done) == 2 * len(pairs)
    assert [link.ranks for link in links] == (sorted(pairs) if comm.rank == 0 else [])
    for _, latency, (there, back) in links:
        assert latency.best <= latency.median
        assert all(figure.best >= figure.median > 0 for figure in (there, back))


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_the_leader_decides_how_many_messages_there_are(comm, pair):
    buffer = np.full(8, comm.rank, np.uint8)
    seconds = []
    if comm.rank in pair:
        seconds = _exchange(comm, pair, buffer, buffer[:1], WARMUP_SHORT, 1e-9)
    assert len(seconds) == FEWEST * (comm.rank == pair[0])
    quiet_barrier(comm)
