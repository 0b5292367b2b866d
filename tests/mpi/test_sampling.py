"""Clocks, starts and samples on real ranks. What is asserted are decisions, never speeds."""

import time
from itertools import count

import numpy as np
import pytest

from mpiring.clock import GlobalClock
from mpiring.errors import UsageError
from mpiring.limits import limit_calls, limit_s
from mpiring.noise import measure_noise, tick
from mpiring.sampling import Sampler, Sampling, Window, last_level_cache

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_a_global_clock_finds_offset_and_drift(comm, drift):
    """Each rank's clock is shifted, and runs so fast that it is 50 ms ahead if drift is ignored."""
    begin = time.perf_counter()

    def local():
        return (time.perf_counter() - begin) * (1 + drift * comm.rank) + 1000.0 * comm.rank

    comm.Barrier()
    clock = GlobalClock(comm, local)
    time.sleep(0.3)
    clock.renew()
    time.sleep(0.1)
    # Rank 0 asks each rank for its time; the answer has to lie between question and answer.
    stamp = np.empty(1)
    for peer in range(1, comm.size):
        if comm.rank == 0:
            asked = clock.now()
            comm.Send(stamp, peer)
            comm.Recv(stamp, peer)
            slack = 0.02  # of the scheduler, where ranks outnumber cores
            assert asked - slack <= stamp[0] <= clock.now() + slack
        elif comm.rank == peer:
            comm.Recv(stamp, 0)
            stamp[0] = clock.now()
            comm.Send(stamp, 0)


def test_the_noise_floor_is_made_of_what_was_measured(comm):
    noise = measure_noise(comm)
    assert 0 < noise.tick_s < 1e-3
    assert 0 < noise.call_s < 1e-3
    assert noise.barrier_skew_s >= 0
    assert len(set(comm.allgather(noise))) == 1
    assert noise.floor_s("barrier") == noise.floor_s("window") + noise.barrier_skew_s


def test_a_clock_that_stands_still_is_an_error():
    with pytest.raises(UsageError, match="does not advance"):
        tick(lambda: 5.0)
    steps = count()
    assert tick(lambda: next(steps) // 3) == 1


def sampler(comm, **options):
    return Sampler(comm, Sampling(**options), seed=3, tick_s=1e-9)


def test_a_sample_is_the_time_of_the_slowest_rank(comm):
    def slow_on_the_last():
        time.sleep(0.02 if comm.rank == comm.size - 1 else 0)

    samples = sampler(comm, fewest=3, most=3).sample({"call": slow_on_the_last})["call"]
    assert len(samples.slowest) == 3
    assert np.all(samples.slowest >= 0.02)
    assert samples.rank_means.shape == (comm.size,)
    assert samples.rank_means.argmax() == comm.size - 1 or comm.size > 2
    assert samples.batch == 1


def check_turns(comm, sync):
    order = []
    calls = {name: lambda name=name: order.append(name) or time.sleep(1e-3) for name in "abc"}
    samples = sampler(comm, fewest=8, most=8, warmup=2, sync=sync).sample(calls)
    assert all(len(samples[name].slowest) == 8 for name in "abc")
    assert len({tuple(o) for o in comm.allgather(order)}) == 1
    turns = [tuple(order[i : i + 3]) for i in range(0, len(order), 3)]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in turns)
    assert len(set(turns)) > 1
    return turns


def test_calls_take_turns_in_an_order_that_all_ranks_share(comm):
    assert len(check_turns(comm, "barrier")) == 1 + 2 + 8


@pytest.mark.mpi(max_size=2)  # ranks that share a core miss a common start
def test_calls_take_turns_at_a_common_instant(comm):
    assert len(check_turns(comm, "window")) >= 1 + 2 + 8


class Scripted(Sampler):
    """Takes its samples from a function in place of a clock."""

    draw = None

    def _repeat(self, calls, repetitions):
        times = np.array([[self.draw() for _ in calls] for _ in range(repetitions)])
        return times, np.ones(repetitions, bool)


@pytest.mark.parametrize(
    ("spread", "least", "most"), [(0.0, 6, 6), (0.05, 7, 199), (1.0, 200, 200)], ids=str
)
def test_repetitions_grow_until_the_median_is_known(comm, spread, least, most):
    """Samples without spread are known at once, those with a wide one at no number."""
    random = np.random.default_rng(1 + comm.rank)
    script = Scripted(comm, Sampling(6, 200, 0, time_limit_s=1e9), seed=1, tick_s=1e-9)
    script.draw = lambda: 1 + spread * random.exponential()
    assert least <= len(script.sample({"call": None})["call"].slowest) <= most


def test_repetitions_in_which_a_rank_came_too_late_are_made_again(comm):
    class Late(Scripted):
        rounds = 0

        def _repeat(self, calls, repetitions):
            times, in_time = super()._repeat(calls, repetitions)
            self.rounds += 1
            if self.rounds <= 3 and comm.rank == comm.size - 1:
                in_time[::2] = False
                times[::2] = 1000.0
            return times, in_time

    late = Late(comm, Sampling(20, 20, 0), seed=1, tick_s=1e-9)
    late.draw = lambda: 1.0 + comm.rank
    samples = late._block({"call": None}, 20)[0]["call"]
    np.testing.assert_array_equal(samples, np.full(20, float(comm.size)))
    assert late.rounds == 4


def test_the_time_limit_holds_but_for_the_fewest(comm):
    samples = sampler(comm, fewest=7, most=1000, warmup=0, time_limit_s=1e-3)
    samples = samples.sample({"call": lambda: time.sleep(0.005)})["call"]
    assert len(samples.slowest) == 7


def test_short_calls_are_timed_in_batches_unless_they_have_to_be_reset(comm):
    calls, resets = [], []
    long_tick = Sampler(comm, Sampling(fewest=6, most=6, warmup=0), seed=1, tick_s=1e-3)
    batched = long_tick.sample({"call": lambda: calls.append(1)})["call"]
    assert batched.batch > 1
    assert len(calls) == 1 + 6 * batched.batch
    calls.clear()
    asked = Sampler(comm, Sampling(6, 6, 0, batch=4), seed=1, tick_s=1e-9)
    assert asked.sample({"call": lambda: calls.append(1)})["call"].batch == 4
    assert len(calls) == 1 + 6 * 4
    calls.clear()
    single = long_tick.sample({"call": lambda: calls.append(1)}, lambda: resets.append(1))["call"]
    assert single.batch == 1
    assert len(calls) == len(resets) == 7


def test_a_start_that_is_always_missed_is_an_error(comm):
    window = Window(comm)
    for _ in range(13):  # 50 us, doubled so often, are still below the longest
        window.settle(missed=1.0)
    with pytest.raises(UsageError, match="use --sync barrier"):
        window.settle(missed=1.0)


def test_cold_samples_empty_the_caches(comm):
    cold = sampler(comm, fewest=6, most=6, warmup=0, cold=True)
    assert cold.evict.nbytes >= 2 * last_level_cache() >= 1 << 16
    cold.sample({"call": lambda: None})
    assert np.all(cold.evict == 7)  # once before each sample, and before the first look


def test_the_limit_moves_the_buffer_and_the_share_of_each_link(comm, two_nodes):
    source, target = np.arange(101.0) + comm.rank, np.zeros(101)
    calls = limit_calls(comm, two_nodes.nodes, source, target)
    for name in ("copy", "vector copy"):
        target.fill(0)
        calls[name]()
        np.testing.assert_array_equal(target, source)
    if len(two_nodes.nodes) == 1:
        assert "link" not in calls
        return
    target.fill(-1)
    calls["link"]()
    small = min(map(len, two_nodes.nodes))
    node = next(node for node in two_nodes.nodes if comm.rank in node)
    arrived = target[target != -1]
    if node.index(comm.rank) < small:
        other = next(n for n in two_nodes.nodes if comm.rank not in n)[node.index(comm.rank)]
        assert np.all(np.isin(arrived, np.arange(101.0) + other))
        assert abs(arrived.size - 101 / small) < 1
    else:
        assert arrived.size == 0
    assert limit_s({"copy": 3.0, "vector copy": 2.0, "link": 1.0}, two_nodes.nodes) == 2
    assert limit_s({"copy": 3.0, "vector copy": 2.0, "link": 5.0}, two_nodes.nodes) == 5
