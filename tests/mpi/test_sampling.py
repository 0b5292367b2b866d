"""Clocks, starts and samples on real ranks. What is asserted are decisions, never speeds."""

import gc
import time
from contextlib import nullcontext
from itertools import count

import numpy as np
import pytest

from mpiring import noise as noise_module
from mpiring import sampling as sampling_module
from mpiring.clock import GlobalClock
from mpiring.errors import UsageError
from mpiring.limits import limit_calls, limit_s
from mpiring.noise import Noise, measure_noise, tick
from mpiring.sampling import Sampler, Sampling, last_level_cache
from mpiring.starts import WindowStart
from mpiring.stats import median_interval

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


def test_the_clocks_are_looked_at_after_twice_the_time_and_at_least_every_five_seconds(comm):
    now = 0.0
    clock = GlobalClock(comm, lambda: now)
    for renewed, fresh, due in [(0.1, 0.19, 0.21), (3, 5.9, 6.1), (100, 104.9, 105.1)]:
        now = renewed
        clock.renew()
        now = fresh
        assert not clock.stale()
        now = due
        assert clock.stale()


def test_what_the_harness_takes_is_measured(comm):
    noise = measure_noise(comm)
    assert 0 < noise.tick_s < 1e-3
    assert 0 < noise.call_s < 1e-3
    assert noise.barrier_skew_s >= 0
    assert (noise.clock_error_s > 0) == (comm.size > 1)
    assert len(set(comm.allgather(noise))) == 1


def test_the_noise_floor_of_a_call_has_its_share_of_the_start_and_the_clock():
    noise = Noise(tick_s=1.0, call_s=2.0, barrier_skew_s=30.0, clock_error_s=500.0)
    assert [noise.floor_s(sync) for sync in ("barrier", "window")] == [33, 503]
    assert [noise.floor_s(sync, 10) for sync in ("barrier", "window")] == [5.1, 52.1]


def test_a_clock_that_stands_still_on_one_rank_is_an_error_on_all(comm, monkeypatch):
    assert tick(lambda: 5.0) == float("inf")
    steps = count()
    assert tick(lambda: next(steps) // 3) == 1
    if comm.rank == comm.size - 1:
        monkeypatch.setattr(noise_module, "tick", lambda: float("inf"))
    with pytest.raises(UsageError, match="does not advance"):
        measure_noise(comm)


def sampler(comm, **options):
    return Sampler(comm, Sampling(**options), seed=3, tick_s=1e-9)


def test_a_sample_is_the_time_of_the_slowest_rank(comm):
    def slow_on_the_last():
        time.sleep(0.1 if comm.rank == comm.size - 1 else 0)  # others may wait long for a core

    samples = sampler(comm, fewest=3, most=3, warmup=0).sample({"call": slow_on_the_last})["call"]
    assert len(samples.slowest) == 3
    assert np.all(samples.slowest >= 0.1)
    assert samples.rank_means.shape == (comm.size,)
    assert samples.rank_means.argmax() == comm.size - 1
    assert samples.batch == 1


def test_a_long_warm_up_is_not_kept(comm, monkeypatch):
    """It runs as often as asked, in pieces, of which the last is a whole one."""
    monkeypatch.setattr(sampling_module, "WARM_AT_ONCE", 8)
    calls, pieces = [], []
    block = Sampler._block

    def observed(self, turn, repetitions, pace_s):
        pieces.append(repetitions)
        return block(self, turn, repetitions, pace_s)

    monkeypatch.setattr(Sampler, "_block", observed)
    sampler(comm, fewest=3, most=3, warmup=20).sample({"call": lambda: calls.append(0)})
    assert pieces == [1, 4, 8, 8, 3]
    assert len(calls) >= 1 + 20 + 3


@pytest.mark.parametrize("seconds", [1e-300, 1e308])
def test_any_time_limit_can_be_reckoned_with(comm, seconds):
    limited = sampler(comm, fewest=3, most=6, time_limit_s=seconds)
    assert 3 <= len(limited.sample({"call": lambda: None})["call"].slowest) <= 6


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
    """Takes its samples from a function of the call's name in place of a clock."""

    draw = None

    def _repeat(self, turn, repetitions):
        times = np.array([[self.draw(name) for name in turn.calls] for _ in range(repetitions)])
        return times, np.ones(repetitions, bool)


def scripted(comm, draw, *options, tick_s=1e-9, **more):
    script = Scripted(comm, Sampling(*options, time_limit_s=1e9, **more), seed=1, tick_s=tick_s)
    script.draw = draw
    return script


@pytest.mark.parametrize(
    ("spread", "least", "most"), [(0.0, 6, 6), (0.05, 7, 199), (1.0, 200, 200)], ids=str
)
def test_repetitions_grow_until_the_median_is_known(comm, spread, least, most):
    """Samples without spread are known at once, those with a wide one at no number."""
    random = np.random.default_rng(1 + comm.rank)
    script = scripted(comm, lambda name: 1 + spread * random.exponential(), 6, 200, 0)
    assert least <= len(script.sample({"call": None})["call"].slowest) <= most


@pytest.mark.mpi(max_size=1)
@pytest.mark.parametrize("spread", [0.05, 0.15])
def test_intervals_hold_though_sampling_stops_when_they_look_narrow(comm, monkeypatch, spread):
    """Whoever stops at a lucky moment is wrong more often than 5 times of 100; but only slightly.

    The number of samples doubles from look to look, so there are few moments to be lucky in.
    """
    monkeypatch.setattr(sampling_module, "_collector_at_rest", nullcontext)
    random = np.random.default_rng(11)
    script = scripted(comm, lambda name: 1 + spread * random.exponential(), 6, 1000, 0)
    true, runs, numbers, hits = 1 + spread * np.log(2), 400, [], 0
    for _ in range(runs):
        samples = script.sample({"call": None})["call"].slowest.tolist()
        low, high = median_interval(samples)
        hits += low <= true <= high
        numbers.append(len(samples))
    assert min(numbers) < max(numbers) < 1000  # it was chance that stopped them
    assert hits / runs >= 0.92


def test_what_runs_beside_the_calls_does_not_prolong_the_sampling(comm):
    random = np.random.default_rng(1 + comm.rank)
    script = scripted(comm, lambda name: 1 if name == "call" else random.exponential(), 6, 200, 0)
    samples = script.sample({"call": None}, {"limit": None})
    assert [len(samples[name].slowest) for name in ("call", "limit")] == [6, 6]


def test_repetitions_in_which_a_rank_came_too_late_are_made_again(comm, monkeypatch):
    monkeypatch.setattr(sampling_module, "LONGEST_BLOCK_S", 1e9)
    blocks = []

    class Late(Scripted):
        def _repeat(self, turn, repetitions):
            times, in_time = super()._repeat(turn, repetitions)
            blocks.append(repetitions)
            if 1 < len(blocks) <= 4 and comm.rank == comm.size - 1:
                in_time[::2] = False
                times[::2] = 1000.0
            return times, in_time

    late = Late(comm, Sampling(20, 20, 0), seed=1, tick_s=1e-9)
    late.draw = lambda name: 1.0 + comm.rank
    samples = late.sample({"call": None})["call"].slowest
    np.testing.assert_array_equal(samples, np.full(20, float(comm.size)))
    assert blocks == [1, 20, 10, 5, 3]


def test_the_time_limit_holds_but_for_the_fewest(comm):
    samples = sampler(comm, fewest=7, most=1000, warmup=0, time_limit_s=1e-3)
    samples = samples.sample({"call": lambda: time.sleep(0.005)})["call"]
    assert len(samples.slowest) == 7


def test_repetitions_come_in_blocks_that_leave_time_to_look_at_the_clocks(comm, monkeypatch):
    monkeypatch.setattr(sampling_module, "LONGEST_BLOCK_S", 0.05)
    blocks = []

    class Recorded(Sampler):
        def _repeat(self, turn, repetitions):
            blocks.append(repetitions)
            return super()._repeat(turn, repetitions)

    recorded = Recorded(comm, Sampling(20, 20, 12), seed=1, tick_s=1e-9)
    recorded.sample({"call": lambda: time.sleep(0.01)})
    assert sum(blocks) == 1 + 12 + 20
    assert max(blocks) <= 5


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(comm, enabled):
    resting = []
    (gc.enable if enabled else gc.disable)()
    try:
        sampler(comm, most=6).sample({"call": lambda: resting.append(not gc.isenabled())})
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
    assert all(resting)


def test_each_call_has_the_batch_that_the_end_of_the_warm_up_asks_for(comm):
    """100 readings of this clock take 1 s."""
    seconds = {"short": 0.01, "middle": 0.4, "long": 2.0, "limit": 0.1}
    runs = count()

    def draw(name):
        cold = 100 if next(runs) < 4 * 3 else 1  # in the first three repetitions
        return cold * seconds[name] * (1 if comm.rank == comm.size - 1 else 0.5)

    script = scripted(comm, draw, 6, 6, 10, tick_s=0.01)
    samples = script.sample(dict.fromkeys(("short", "middle", "long")), {"limit": None})
    batches = {name: samples[name].batch for name in seconds}
    assert batches == {"short": 100, "middle": 3, "long": 1, "limit": 10}


def test_short_calls_are_timed_in_batches_unless_each_has_to_be_prepared(comm):
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
    single = long_tick.sample({"call": lambda: calls.append(1)}, reset=lambda: resets.append(1))
    assert single["call"].batch == 1
    assert len(calls) == len(resets) == 7


def test_a_start_that_is_always_missed_is_an_error(comm):
    window = WindowStart(comm)
    for _ in range(13):  # 50 us, doubled so often, are still below the longest
        window.settle(missed=1.0)
    with pytest.raises(UsageError, match="use --sync barrier"):
        window.settle(missed=1.0)


def test_a_late_start_is_not_for_ever(comm):
    window = WindowStart(comm)
    assert window.clock.look.when > window.clock.first.when  # two looks tell the drift
    window.settle(missed=1.0)
    assert window.window_s == 2 * WindowStart.FIRST_S
    for _ in range(10):
        window.settle(missed=0.1)
    assert window.window_s == 2 * WindowStart.FIRST_S
    for _ in range(10):
        window.settle(missed=0.0)
    assert window.window_s == WindowStart.FIRST_S


@pytest.mark.mpi(max_size=2)  # each rank fills twice the last cache, seven times
def test_cold_samples_empty_the_caches_before_each_call(comm):
    """Also where the clock is so coarse that short calls are timed in batches otherwise."""
    calls = []
    cold = Sampler(comm, Sampling(6, 6, 0, cold=True), seed=1, tick_s=1e-3)
    assert cold.evict.nbytes >= 2 * last_level_cache() >= 1 << 16
    assert cold.sample({"call": lambda: calls.append(1)})["call"].batch == 1
    assert len(calls) == 7  # the first look is cold too
    assert np.all(cold.evict == 7)


def test_a_batch_cannot_be_cold():
    assert Sampling(cold=True, batch=1).cold
    with pytest.raises(UsageError, match="--batch and --cold exclude each other"):
        Sampling(cold=True, batch=2)


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
