"""Every algorithm in the simulator: right, in order where promised, and as cheap as it claims."""

import random
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import bytes_sent
from shapes import ON_NODES, RINGS, SCHEDULED, cases, divided, options_of

from mpiring.algorithms import ALGORITHMS, Algorithm, _registry, find
from mpiring.algorithms.double_binary_tree import depth, first_tree, second_tree
from mpiring.algorithms.phases import ALLGATHERS, ALLREDUCES, BCASTS, REDUCE_SCATTERS
from mpiring.algorithms.ring import ring
from mpiring.algorithms.swing import peer
from mpiring.algorithms.torus_ring import nearest_factors
from mpiring.chunks import Split
from mpiring.closed_forms import closed_form, lower_bound
from mpiring.cost import PAGE, scratch_length, total, traffic
from mpiring.errors import UsageError
from mpiring.options import DEFAULTS, Options
from mpiring.schedule import MOST_MESSAGES, Recv, ScheduleError, Send, depends
from mpiring.simulate import simulate
from mpiring.topology import Level, Topology, flat

pytestmark = pytest.mark.proof

SIZES = [*range(1, 34), 48, 64, 127, 128]


def weights(size, count):
    """Numbers for each rank and element such that a sum tells what is in it, and how often."""
    rng = np.random.default_rng([size, count])
    return rng.integers(0, 2**62, (size, count), dtype=np.uint64)


def check_sum(schedule, count, seed=0):
    """Each rank ends with each contribution exactly once, in some order of events."""
    shuffle = random.Random(seed)
    brought = weights(schedule.size, count)
    everything = brought.sum(axis=0)
    held = simulate(schedule, count, lambda rank: brought[rank].copy(), np.add, shuffle)
    for rank, values in enumerate(held):
        np.testing.assert_array_equal(values, everything, err_msg=f"rank {rank}")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("algorithm", SCHEDULED, ids=lambda algorithm: algorithm.name)
def test_every_rank_ends_with_every_contribution_exactly_once(algorithm, size):
    edges = sorted({0, 1, size - 1, size, size + 1})
    for number, (_, topology, options) in enumerate(cases(size, [algorithm])):
        schedule = algorithm.schedule(topology, options)
        plain = (topology, options) == (flat(size), DEFAULTS)
        if plain or size <= 17 or size == 33:
            check_sum(schedule, 7 * size + 3)
        if size <= 9 or plain:
            for count in edges:
                check_sum(schedule, count)
        if size <= 9 or (plain and size <= 33):
            check_sum(algorithm.cut(schedule, 2), 7 * size + 3)
        if size <= 9:
            check_sum(algorithm.cut(schedule, 6), 40 * size, seed=number)


# Without segments, segmented_ring is ring.
@pytest.mark.parametrize(
    "algorithm", [a for a in SCHEDULED if a.name != "segmented_ring"], ids=lambda a: a.name
)
def test_a_thousand_ranks(algorithm):
    """Sparse: with one element most messages of those that cut the buffer are empty."""
    size = 300 if algorithm.name == "naive" else 1000  # it would send a million messages
    topology = divided(size, 40) if algorithm.name in ON_NODES else flat(size)
    check_sum(algorithm.schedule(topology, DEFAULTS), count=1)


@st.composite
def nested(draw, size):
    """Ranks in random groups, and these in random groups, up to three levels."""
    groups = [(rank,) for rank in draw(st.permutations(range(size)))]
    levels = []
    for name in draw(st.sampled_from([("node",), ("node", "switch"), ("core", "node", "switch")])):
        labels = draw(st.lists(st.integers(0, 3), min_size=len(groups), max_size=len(groups)))
        merged = {}
        for group, label in zip(groups, labels, strict=True):
            merged[label] = merged.get(label, ()) + group
        groups = list(merged.values())
        levels.append(Level(name, tuple(groups)))
    return Topology(size, tuple(levels))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_no_counterexample_is_found(data):
    size = data.draw(st.integers(1, 14), "size")
    topology = data.draw(nested(size), "topology")
    algorithm = data.draw(st.sampled_from(SCHEDULED), "algorithm")
    options = data.draw(st.sampled_from(list(options_of(algorithm, size))), "options")
    segments = data.draw(st.sampled_from([1, 2, 4, 8]), "segments")
    count = data.draw(st.integers(0, 60), "count")
    seed = data.draw(st.integers(0, 999), "order")
    check_sum(algorithm.cut(algorithm.schedule(topology, options), segments), count, seed)


@pytest.mark.parametrize(
    "algorithm", [a for a in SCHEDULED if not a.commutative], ids=lambda a: a.name
)
@pytest.mark.parametrize("size", range(1, 34))
def test_rank_order_is_kept_where_the_operation_need_not_commute(algorithm, size):
    for options in options_of(algorithm, size):
        schedule = algorithm.schedule(flat(size), options)
        assert schedule.chunks == 1, "an operation on several elements must not be cut apart"
        for values in simulate(schedule, 3):
            assert values == [tuple(range(size))] * 3


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 27, 32])
def test_rounds_messages_and_bytes_equal_the_closed_forms(size):
    for algorithm, topology, options in cases(size):
        even = len({len(node) for node in topology.nodes}) == 1 and len(topology.levels) == 1
        if (options.tree and size > 1) or (not even and algorithm.name in ON_NODES):
            assert closed_form(algorithm, topology, options, 8, 4) is None
            continue
        chunks = algorithm.schedule(topology, options).chunks
        for segments in (1, 2, 4):
            count = 600 * chunks * segments
            cut = replace(options, segment=600 * 8)
            schedule = algorithm.scheduled(topology, cut, count, 8)
            assert schedule.chunks == chunks * segments
            walked, _, scratch = total(schedule, topology, count, 8)
            assert scratch <= max(8 * count, PAGE) + 8 * size
            form = closed_form(algorithm, topology, cut, count, 8)
            where = (algorithm.name, topology, str(cut))
            assert form.rounds == max(t.rounds for t in walked), where
            assert form.messages_sent == max(t.messages_sent for t in walked), where
            assert form.bytes_sent == 8 * max(t.elements_sent for t in walked), where
            assert sum(t.elements_sent for t in walked) == sum(t.elements_received for t in walked)
            assert sum(t.messages_sent for t in walked) == sum(t.messages_received for t in walked)


@pytest.mark.parametrize("size", range(1, 18))
def test_the_bytes_of_uneven_chunks_are_those_counted_by_hand(size):
    for algorithm, topology, _ in cases(size):
        if algorithm.name not in ("naive", "reduce_scatter", "tree", "ring"):
            continue
        if len(topology.levels) > 1 or (algorithm.name == "ring" and topology != flat(size)):
            continue
        schedule = algorithm.schedule(topology, DEFAULTS)
        for count in (0, 1, size - 1, size, 3 * size + 1, 5040 * size):
            for rank in range(size):
                counted = traffic(schedule.rounds(rank), Split(count, schedule.chunks))
                expected = bytes_sent(algorithm.name, rank, size, count, topology.nodes)
                assert counted.elements_sent == expected, (algorithm.name, topology, count, rank)


OPTIMAL = (
    "reduce_scatter",
    "ring",
    "segmented_ring",
    "hierarchical_ring",
    "torus_ring",
    "tree",
    "shared",
)


@pytest.mark.parametrize("size", [1, 2, 4, 6, 16, 1000000])
def test_the_bandwidth_optimal_ones_meet_the_lower_bound(size):
    optimal = OPTIMAL + (("rabenseifner", "swing") if size & (size - 1) == 0 else ())
    for algorithm in SCHEDULED:
        sent = closed_form(algorithm, flat(size), DEFAULTS, 720720, 1).bytes_sent
        bound = lower_bound(size, 720720)
        assert (sent == bound) == (algorithm.name in optimal) or size < 4, algorithm.name
        assert sent >= bound or size == 1


def test_a_million_ranks_at_once():
    nodes = divided(1 << 20, 1 << 17)
    forms = {a.name: closed_form(a, nodes, DEFAULTS, 1 << 26, 4) for a in SCHEDULED}
    assert forms["ring"].rounds == 2 * (2**20 - 1)
    assert forms["recursive_doubling"].rounds == 20
    assert forms["rabenseifner"].rounds == 40
    assert forms["tree"].rounds == 4
    assert forms["torus_ring"].rounds == 4 * (2**10 - 1)
    assert forms["hierarchical_ring"].rounds == 2 * 7 + 2 * (2**17 - 1)


DEALT = divided(6, 2, deal=True)


@pytest.mark.parametrize("name", RINGS)
def test_neighbours_in_a_ring_are_those_of_a_node(name):
    algorithm = ALGORITHMS[name]
    ring = algorithm.schedule(DEALT, DEFAULTS)
    follows = {rank: next(iter(ring.rounds(rank)))[0].peer for rank in range(6)}
    assert follows == {0: 2, 2: 4, 4: 1, 1: 3, 3: 5, 5: 0}
    assert "2 of 6 messages of a round cross nodes, 6 in rank" in algorithm.remark(DEALT, DEFAULTS)
    by_rank = algorithm.schedule(DEALT, Options(ring_order="rank"))
    assert next(iter(by_rank.rounds(0)))[0].peer == 1
    with pytest.raises(UsageError, match="no order was measured"):
        algorithm.schedule(DEALT, Options(ring_order="measured"))
    measured = replace(DEALT, tour=(5, 3, 1, 0, 2, 4))
    ring = algorithm.schedule(measured, Options(ring_order="measured"))
    assert next(iter(ring.rounds(1)))[0].peer == 0


def test_rings_of_nodes_follow_the_order_too():
    """Two nodes whose ranks are written backwards: rank order turns that round."""
    nodes = ((5, 3, 1), (4, 2, 0))
    crooked = replace(DEALT, levels=(Level("node", nodes),), tour=(2, 0, 4, 1, 5, 3))
    algorithm = ALGORITHMS["hierarchical_ring"]
    follows = {
        order: next(iter(algorithm.schedule(crooked, Options(ring_order=order)).rounds(0)))[0].peer
        for order in ("topology", "rank", "measured")
    }
    assert follows == {"topology": 2, "rank": 2, "measured": 4}
    between = {
        order: {
            step.peer
            for steps in algorithm.schedule(crooked, Options(ring_order=order)).rounds(0)
            for step in steps
        }
        - {0, 2, 4}
        for order in follows
    }
    assert between == {"topology": {1}, "rank": {1}, "measured": {5}}
    torus = ALGORITHMS["torus_ring"]
    first = {
        order: next(iter(torus.schedule(crooked, options).rounds(0)))[0].peer
        for order in follows
        for options in [Options(torus=(2, 3), ring_order=order)]
    }
    assert first == {"topology": 2, "rank": 1, "measured": 4}


def test_a_tour_names_every_rank_once():
    with pytest.raises(UsageError, match="tour is not each of the ranks once: rank 5 is missing"):
        replace(DEALT, tour=(0, 1, 2, 3, 4, 4))


def test_order_by_topology_keeps_the_groups_of_every_level_together():
    nodes = ((0, 4), (1, 5), (2, 6), (3, 7))
    switches = ((0, 4, 2, 6), (1, 5, 3, 7))
    topology = Topology(8, (Level("node", nodes), Level("switch", switches)))
    assert topology.ring_order("topology") == (0, 4, 2, 6, 1, 5, 3, 7)


@pytest.mark.parametrize("size", [2, 3, 4, 7, 8, 9, 16, 33])
def test_one_range_of_tags_that_does_not_grow(size):
    """Messages of a round from one rank to another are told apart by tags from a small range."""
    for algorithm, topology, options in cases(size):
        for segments in (1, 2, 16):
            schedule = algorithm.cut(algorithm.schedule(topology, options), segments)
            for rank in range(size):
                for steps in schedule.rounds(rank):
                    kinds = [(type(step), step.peer) for step in steps]
                    assert all(kinds.count(kind) <= MOST_MESSAGES for kind in kinds)


def busy(schedule, rank):
    """The chunks and the receiver of each message, round by round."""
    return [
        [(step.first, step.chunks, step.peer) for step in steps if isinstance(step, Send)]
        for steps in schedule.rounds(rank)
    ]


def test_the_algorithm_of_each_level_of_a_tree_can_be_chosen():
    nodes, switches = divided(16, 8).nodes, divided(16, 2).nodes
    topology = Topology(16, (Level("node", nodes), Level("switch", switches)))
    chosen = Options(tree=(("node", "reduce_scatter"), ("switch", "ring"), ("top", "naive")))
    schedule = ALGORITHMS["tree"].schedule(topology, chosen)
    peers = [{peer for *_, peer in steps} for steps in busy(schedule, 0)]
    assert peers == [{1}, {2}, {2}, {2}, {8}, {2}, {2}, {2}, {1}]
    check_sum(schedule, 100)
    assert schedule.chunks == 2 * 4
    direct = ALGORITHMS["tree"].schedule(topology, DEFAULTS)
    assert [{peer for *_, peer in steps} for steps in busy(direct, 0)] == [
        {1}, {2, 4, 6}, {8}, {2, 4, 6}, {1},
    ]  # fmt: skip


def test_shared_between_nodes_is_what_is_chosen_and_in_them_memory():
    options = Options(tree=(("top", "rabenseifner"),), leaders=2)
    schedule = ALGORITHMS["shared"].schedule(divided(16, 4), options)
    assert schedule.memory == divided(16, 4).nodes
    by_message = ALGORITHMS["multi_leader"].schedule(divided(16, 4), Options(leaders=2))
    for rank in range(16):
        assert tuple(schedule.rounds(rank)) == tuple(by_message.rounds(rank))
    with pytest.raises(UsageError, match="shared, level node: memory is used there"):
        ALGORITHMS["shared"].schedule(divided(16, 4), Options(tree=(("node", "ring"),)))


def test_the_leaders_of_a_tree_alone_talk_to_other_nodes():
    schedule = ALGORITHMS["tree"].schedule(divided(8, 2), Options(leaders=1))
    across = [
        rank
        for rank in range(8)
        for steps in busy(schedule, rank)
        for *_, peer in steps
        if (peer < 4) != (rank < 4)
    ]
    assert across == [0, 4]


def test_segments_of_a_tree_keep_the_slow_link_busy():
    """While a segment is between the nodes, the next one is under way before it is waited for."""
    tree = ALGORITHMS["tree"]
    whole = tree.schedule(divided(4, 2), DEFAULTS)
    schedule = tree.cut(whole, 6)
    rounds = list(schedule.rounds(0))
    across = [k for k, steps in enumerate(rounds) if any(step.peer == 2 for step in steps)]
    assert len(across) == 6
    assert all(b - a < schedule.in_flight for a, b in pairwise(across))
    # What starts in between does not depend on what is on the link.
    for here, there in pairwise(across):
        assert not any(depends(rounds[k], rounds[here]) for k in range(here + 1, there + 1))


def test_between_two_nodes_a_tree_sends_its_share_alone():
    """8 ranks in two nodes of 4, as taught: each rank sends a quarter over the slow link."""
    schedule = ALGORITHMS["tree"].schedule(divided(8, 2), DEFAULTS)
    for rank in range(8):
        split = Split(800, schedule.chunks)
        across = [
            (step.peer, split.length(step.first, step.chunks))
            for steps in schedule.rounds(rank)
            for step in steps
            if isinstance(step, Send) and (step.peer < 4) != (rank < 4)
        ]
        assert across == [((rank + 4) % 8, 200)]


def test_ring_first_rounds_as_taught():
    """4 ranks, chunks a b c d: 0 sends a to 1, 1 sends b to 2, 2 sends c to 3, 3 sends d to 0."""
    first = [next(iter(ring(rank, 4))) for rank in range(4)]
    assert [steps[0] for steps in first] == [Send(1, 0), Send(2, 1), Send(3, 2), Send(0, 3)]
    # After the reduce-scatter rank 0 holds the full b, 1 the full c, 2 the full d, 3 the full a.
    gather = [list(ring(rank, 4))[3][0] for rank in range(4)]
    assert [step.first for step in gather] == [1, 2, 3, 0]


@pytest.mark.parametrize("size", range(1, 130))
def test_double_binary_trees_are_trees(size):
    inside = []
    for tree in (first_tree, second_tree):
        places = [tree(rank, size) for rank in range(size)]
        assert sum(place.parent is None for place in places) == 1
        for rank, place in enumerate(places):
            assert len(place.children) <= 2
            assert all(places[child].parent == rank for child in place.children)
            assert place.parent is None or rank in places[place.parent].children
        assert max(depth(tree, rank, size) for rank in range(size)) == (size - 1).bit_length()
        inside.append({rank for rank in range(size) if places[rank].children})
    both = inside[0] & inside[1]
    assert both <= ({0} if size % 2 else set()), "nobody does the work of two"


@pytest.mark.parametrize("bits", range(1, 8))
def test_swing_meets_near_ranks_and_comes_back(bits):
    size = 1 << bits
    for rank in range(size):
        peers = [peer(rank, step, size) for step in range(bits)]
        assert [peer(other, step, size) for step, other in enumerate(peers)] == [rank] * bits
        sign = -1 if rank % 2 else 1
        expected = [(rank + sign * d) % size for d in (1, -1, 3, -5, 11, -21, 43)[:bits]]
        assert peers == expected


def test_nearest_factors():
    assert [nearest_factors(n) for n in (1, 2, 7, 12, 16, 36, 1000)] == [
        (1, 1), (1, 2), (1, 7), (3, 4), (4, 4), (6, 6), (25, 40),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 13])
def test_the_phases_leave_what_their_collective_promises(size):
    count = 3 * size
    brought = weights(size, count)
    split = Split(count, size)
    for make in REDUCE_SCATTERS.values():
        held = simulate(make(size), count, lambda rank: brought[rank].copy(), np.add)
        for rank in range(size):
            where = split.slice(rank)
            np.testing.assert_array_equal(held[rank][where], brought.sum(axis=0)[where])
    for make in ALLGATHERS.values():
        for values in simulate(make(size), size, lambda rank: [rank] * size):
            assert values == list(range(size))
    for make in BCASTS.values():
        for root in range(size):
            held = simulate(make(size, root), 2, lambda rank: [rank] * 2)
            assert held == [[root] * 2] * size


def test_a_schedule_is_made_once():
    """Each call of a collective makes a plan; of a schedule that it knows it walks no rounds."""
    for makers in (ALLREDUCES, REDUCE_SCATTERS, ALLGATHERS):
        for make in makers.values():
            assert make(5) is make(5)
            assert make(5) is not make(6)
    for make in BCASTS.values():
        assert make(5, 1) is make(5, 1)
        assert make(5, 1) is not make(5, 2)


def test_scratch_of_an_unsegmented_run():
    def scratch(name):
        schedule = ALGORITHMS[name].schedule(flat(8), DEFAULTS)
        return scratch_length(schedule.rounds(3), Split(80, schedule.chunks))

    assert scratch("ring") == 10
    assert scratch("reduce_scatter") == 70
    assert scratch("naive") == 560
    assert scratch("recursive_doubling") == 80


# Planted faults. Each changes one step of one rank, wherever it is, and must not go unnoticed.


def without(steps, index):
    return steps[:index] + steps[index + 1 :]


def instead(steps, index, step):
    return (*steps[:index], step, *steps[index + 1 :])


FAULTS = {
    "skip": lambda steps, i, size, chunks: without(steps, i),
    "to another peer": lambda steps, i, size, chunks: instead(
        steps, i, steps[i]._replace(peer=(steps[i].peer + 1) % size)
    ),
    "another chunk": lambda steps, i, size, chunks: (
        instead(steps, i, steps[i]._replace(first=(steps[i].first + 1) % chunks))
        if chunks > 1
        else None
    ),
    "twice": lambda steps, i, size, chunks: (*steps, steps[i]),
    "reduce or not": lambda steps, i, size, chunks: (
        instead(steps, i, steps[i]._replace(reduce=not steps[i].reduce))
        if isinstance(steps[i], Recv)
        else None
    ),
}


def planted(schedule, fault, rank, number, index):
    """The schedule with one step of one rank changed; None where the fault has no sense there."""
    rounds = list(schedule.rounds(rank))
    changed = FAULTS[fault](rounds[number], index, schedule.size, schedule.chunks)
    if changed is None:
        return None
    rounds[number] = changed
    return replace(
        schedule, rounds=lambda other: rounds if other == rank else schedule.rounds(other)
    )


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("algorithm", SCHEDULED, ids=lambda a: a.name)
def test_a_planted_fault_is_found(algorithm, fault):
    size = 6
    schedule = algorithm.schedule(divided(size, 2), DEFAULTS)
    tried = 0
    for rank in range(size):
        for number, steps in enumerate(schedule.rounds(rank)):
            for index in range(len(steps)):
                wrong = planted(schedule, fault, rank, number, index)
                if wrong is None:
                    continue
                tried += 1
                with pytest.raises((ScheduleError, AssertionError)):
                    check_sum(wrong, 2 * schedule.chunks)
    assert tried or (fault == "another chunk" and schedule.chunks == 1)


def test_rounds_that_depend_on_each_other_are_never_in_flight_together():
    for algorithm in SCHEDULED:
        plain = algorithm.schedule(divided(6, 2), DEFAULTS)
        for seed in range(3):
            check_sum(replace(plain, in_flight=3), 2 * plain.chunks, seed)


# What is refused.


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean reduce_scatter"):
        find("reduce-scatter")
    with pytest.raises(UsageError, match="did you mean rabenseifner"):
        find("rabenseifer")
    with pytest.raises(UsageError, match="there are naive, reduce_scatter, tree, ring"):
        find("xyzzy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radix": 1}, "radix is 1, it has to be a number from 2 on"),
        ({"radix": 2.5}, "radix is 2.5"),
        ({"segment": 0}, "segment is 0"),
        ({"root": -1}, "root is -1"),
        ({"leaders": 0}, "leaders is 0"),
        ({"torus": (0, 4)}, "torus is"),
        ({"torus": (2.0, 2)}, "torus is"),
        ({"radix": True}, "radix is True"),
        ({"rendezvous": "no"}, "rendezvous is 'no', it has to be True or False"),
        ({"ring_order": "random"}, "ring_order is 'random', it can be rank, topology, measured"),
        ({"torus": (2, 2, 2)}, "torus is"),
        ({"tree": ("node", "ring")}, "tree is ('node', 'ring'), it has to be pairs"),
        ({"tree": 3}, "tree is 3, it has to be pairs"),
        ({"tree": [("node", 1)]}, "it has to be pairs of a level and a name"),
    ],
)
def test_options_that_mean_nothing(options, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        Options(**options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("torus_ring", Options(torus=(3, 4)), "a torus of 3 x 4 has 12 ranks, the job has 8"),
        ("parameter_server", Options(root=8), "root is rank 8, the job has 8"),
        ("ring", Options(segment=2), "a segment of 2 B is smaller than an element of 4 B"),
        ("ring", Options(segment=4), "segments of 4 B would be 12500 of a chunk, at most 4096"),
    ],
)
def test_preconditions_that_are_not_met(name, options, message):
    with pytest.raises(UsageError, match=message):
        ALGORITHMS[name].scheduled(flat(8), options, 100000, 4)


def test_whole_numbers_of_any_kind_are_options():
    options = Options(segment=np.int64(64), root=np.uint8(1), torus=[2, np.int32(3)])
    assert options == Options(segment=64, root=1, torus=(2, 3))
    assert hash(options) == hash(Options(segment=64, root=1, torus=(2, 3)))
    assert type(options.segment) is int


def test_an_option_chosen_in_vain_is_refused():
    with pytest.raises(UsageError, match="ring has no radix and no root"):
        ALGORITHMS["ring"].check_heeds(Options(radix=3, root=1))
    with pytest.raises(UsageError, match="native has no segment and no rendezvous"):
        ALGORITHMS["native"].check_heeds(Options(segment=8, rendezvous=True))


def test_a_name_cannot_be_registered_twice():
    twice = Algorithm("a", "", None)
    with pytest.raises(ValueError, match="twice"):
        _registry(twice, twice)


def test_an_algorithm_cannot_heed_what_is_no_option():
    with pytest.raises(ValueError, match=r"a heeds what is no option: \['segments'\]"):
        _registry(Algorithm("a", "", None, heeds=frozenset({"root", "segments"})))


def test_each_module_says_what_a_reader_needs():
    for algorithm in SCHEDULED:
        for word in ("Rounds", "Bytes sent", "Cost", "Source:"):
            assert word in algorithm.description, (algorithm.name, word)
