"""Levels, outliers and topologies from links of made-up machines."""

import random
from dataclasses import replace

import pytest
from machines import blocks, dealt, links

from mpiring.clusters import find_levels, to_topology
from mpiring.outliers import find_outliers
from mpiring.pairs import choose
from mpiring.report.links import outlier_lines
from mpiring.topology import Level, Topology
from mpiring.topology_file import read, to_toml

pytestmark = pytest.mark.pure


def everyone(size):
    return (tuple(range(size)),)


def groups_of(measured):
    return [level.groups for level in find_levels(measured)]


def slow_lines(measured):
    return list(outlier_lines(find_outliers(find_levels(measured)), measured.hosts))


@pytest.mark.parametrize("noise", [0.05, 0.3, 1])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 16])
def test_noise_makes_no_level(size, noise):
    for seed in range(20):
        measured = links(size, [], [0.5], [8], noise, seed)
        assert groups_of(measured) == [everyone(size)], seed


@pytest.mark.parametrize("noise", [0.05, 0.15])
@pytest.mark.parametrize(
    ("latencies", "rates"),
    [([0.5, 30], [5, 0.117]), ([1.3, 2.5], [8, 24]), ([1.3, 1.4], [8, 4])],
    ids=["both", "by latency alone, where rates look better", "by rate alone"],
)
@pytest.mark.parametrize(
    "nodes", [blocks(4, 2), dealt(4, 2), blocks(8, 2), blocks(12, 4), dealt(9, 3)]
)
def test_two_levels(nodes, latencies, rates, noise):
    size = sum(map(len, nodes))
    for seed in range(5):
        measured = links(size, [nodes], latencies, rates, noise, seed)
        inside, between = find_levels(measured)
        assert inside.groups == nodes
        assert between.groups == everyone(size)
        assert len(inside.links) + len(between.links) == measured.pairs
        for level, latency, rate in zip((inside, between), latencies, rates, strict=True):
            assert level.latency_us.median == pytest.approx(latency, rel=3 * noise)
            assert level.gbytes_per_s.median == pytest.approx(rate, rel=3 * noise)
            low, high = level.gbytes_per_s.interval
            assert low <= level.gbytes_per_s.median <= high


def test_three_levels_of_which_one_shows_in_the_rate_alone():
    nodes, switches = blocks(16, 4), blocks(16, 8)
    measured = links(16, [nodes, switches], [0.5, 2, 2.2], [8, 11, 4])
    assert groups_of(measured) == [nodes, switches, everyone(16)]


@pytest.mark.parametrize(
    "nodes", [((0, 1), (2,)), ((0, 1), (2, 3), (4, 5), (6,)), ((0,), (1, 2, 3))]
)
def test_a_node_may_have_one_rank(nodes):
    size = sum(map(len, nodes))
    measured = links(size, [nodes], [0.5, 30], [5, 0.117])
    assert groups_of(measured) == [nodes, everyone(size)]


def test_a_node_with_one_rank_shows_among_others_by_little():
    nodes = ((0, 1), (2, 3), (4, 5), (6,))
    assert groups_of(links(7, [nodes], [1.3, 2.5], [8, 24])) == [nodes, everyone(7)]


@pytest.mark.parametrize("share", [0.6, 0.3])
def test_a_slow_rank_makes_no_level_and_is_named(share):
    def slow(a, b):
        return share if 3 in (a, b) else 1

    alone = links(6, [], [0.5], [10], share=slow)
    assert groups_of(alone) == [everyone(6)]
    (line,) = slow_lines(alone)
    assert line.startswith("rank 3 on node00: ")
    assert line.endswith(" GB/s")
    figure, level = line.split()[4:7:2]
    assert float(figure) / float(level) == pytest.approx(share, rel=0.15)
    nodes = blocks(6, 3)
    two = links(6, [nodes], [0.5, 2], [10, 1.5], share=slow)
    assert groups_of(two) == [nodes, everyone(6)]
    assert [line.split(":")[0] for line in slow_lines(two)] == 2 * ["rank 3 on node01"]


@pytest.mark.parametrize(
    ("share", "named"),
    [
        (lambda a, b: 0.3 if a == 3 else 1, "rank 3 on node00, sending: "),
        (lambda a, b: 0.3 if b == 3 else 1, "rank 3 on node00, receiving: "),
        (lambda a, b: 0.3 if (a, b) == (4, 1) else 1, "rank 4 on node00 to rank 1 on node00: "),
        (lambda a, b: 0.3 if {a, b} == {4, 1} else 1, "rank 1 on node00 and rank 4 on node00: "),
    ],
)
def test_what_is_slow_is_named_with_its_direction(share, named):
    measured = links(6, [], [0.5], [10], share=share)
    assert groups_of(measured) == [everyone(6)]
    assert [line[: len(named)] for line in slow_lines(measured)] == [named]


@pytest.mark.parametrize("hosts", [3, 4])
def test_a_slow_host_is_no_level(hosts):
    nodes = blocks(2 * hosts, 2)
    slow = nodes[-1]

    def share(a, b):
        return 0.5 if (a in slow) != (b in slow) else 1

    measured = links(2 * hosts, [nodes], [0.5, 30], [5, 0.117], share=share)
    assert groups_of(measured) == [nodes, everyone(2 * hosts)]
    named = sorted(line.split(":")[0] for line in slow_lines(measured))
    assert named == [f"rank {rank} on node{hosts - 1:02}" for rank in slow]
    if hosts == 4:  # half of the links are slow, and the level's rate is that of the others
        assert find_levels(measured)[1].gbytes_per_s.median == pytest.approx(0.117, rel=0.1)


def test_latency_that_is_off():
    measured = links(4, [], [2], [10])
    fast, *rest = measured.links
    far = fast._replace(latency_us=fast.latency_us._replace(median=9.1, best=9.0))
    assert slow_lines(replace(measured, links=(far, *rest)))[0].startswith(
        "rank 0 on node00 and rank 1 on node00: 9.1 us instead of 2"
    )


def with_figures(measured, pair, latency=None, rates=None):
    """Change what was measured of one pair."""
    changed = [
        link
        if link.ranks != pair
        else link._replace(
            latency_us=link.latency_us._replace(**(latency or {})),
            gbytes_per_s=tuple(figure._replace(**(rates or {})) for figure in link.gbytes_per_s),
        )
        for link in measured.links
    ]
    return replace(measured, links=tuple(changed))


def test_samples_that_were_disturbed_divide_no_group():
    nodes = blocks(4, 2)
    healthy = links(4, [nodes], [0.5, 30], [5, 0.117])
    disturbed = {"latency": {"median": 900}, "rates": {"median": 0.01}}
    assert groups_of(with_figures(healthy, (0, 1), **disturbed)) == [nodes, everyone(4)]
    by_rate = with_figures(links(4, [nodes], [1.3, 1.4], [8, 4]), (0, 1), rates={"median": 0.01})
    assert groups_of(by_rate) == [nodes, everyone(4)]
    # Even the best latency and rate are far off, but the rate is still one of inside.
    disturbed = {"latency": {"best": 25}, "rates": {"best": 0.8}}
    assert groups_of(with_figures(healthy, (0, 1), **disturbed)) == [nodes, everyone(4)]


def test_a_direction_that_was_disturbed_divides_no_group():
    nodes = blocks(4, 2)

    def share(a, b):
        return 0.3 if (a, b) == (0, 1) else 1

    assert groups_of(links(4, [nodes], [1.3, 1.4], [8, 4], share=share)) == [nodes, everyone(4)]


def test_of_a_pair_that_has_no_other_link_neither_rank_is_to_blame():
    def share(a, b):
        return 0.3 if {a, b} == {0, 1} else 1

    (line,) = slow_lines(links(4, [blocks(4, 2)], [0.5, 30], [5, 0.117], share=share))
    assert line.startswith("rank 0 on node00 and rank 1 on node00: ")


def test_a_link_that_was_disturbed_is_not_named():
    measured = links(4, [], [2], [10])
    first, *rest = measured.links
    disturbed = first._replace(latency_us=first.latency_us._replace(median=90, interval=(80, 95)))
    assert slow_lines(replace(measured, links=(disturbed, *rest))) == []


def test_many_outliers_are_cut_off():
    uneven = random.Random(0)
    measured = links(20, [], [2], [10], share=lambda a, b: uneven.choice([1, 1, 1, 0.3]))
    lines = slow_lines(measured)
    assert len(lines) == 21
    assert lines[-1].startswith("and ")


@pytest.mark.parametrize("nodes", [blocks(40, 8), dealt(40, 5)])
def test_levels_of_a_sample(nodes):
    pairs = set(choose(40, 60, nodes))
    measured = links(40, [nodes], [0.5, 30], [5, 0.117], pairs=pairs)
    assert len(measured.links) == 60
    assert groups_of(measured) == [nodes, everyone(40)]


def topology(measured, *known):
    given = known or (Level("node", measured.nodes),)
    return to_topology(measured, find_levels(measured), Topology(measured.size, given, "MPI"))


def test_what_is_found_reads_back_unchanged():
    nodes, switches = dealt(16, 4), dealt(16, 2)
    measured = links(16, [nodes, switches], [0.5, 2, 5], [8, 11, 4])
    found = topology(measured)
    node, switch = found.levels
    assert (node.name, node.groups) == ("node", nodes)
    assert node.gbytes_per_s == pytest.approx(11, rel=0.1)  # of the links beyond a node
    assert (switch.name, switch.groups) == ("level 2", switches)
    assert switch.latency_us == pytest.approx(5, rel=0.1)
    assert found.crossings(found.tour) == 4
    again = read(to_toml(found), measured.hosts, "measured")
    assert (again.levels, again.tour) == (found.levels, found.tour)
    assert (
        topology(measured, Level("node", nodes), Level("rack", switches)).levels[1].name == "rack"
    )


def test_where_all_links_are_alike_the_nodes_are_those_that_are_known():
    one = topology(links(4, [], [0.5], [8]))
    assert one.levels == (Level("node", everyone(4)),)
    assert one.tour == (0, 1, 2, 3)
    singles = topology(links(4, [blocks(4, 1)], [2, 2], [8, 8]))
    assert singles.levels[0].groups == blocks(4, 1)
    assert singles.levels[0].gbytes_per_s == pytest.approx(8, rel=0.1)
    switches = blocks(8, 4)
    above = topology(links(8, [blocks(8, 1), switches], [1, 2, 4], [8, 8, 8]))
    assert [level.groups for level in above.levels] == [blocks(8, 1), switches]
    assert [level.latency_us for level in above.levels] == pytest.approx([2, 4], rel=0.1)


def test_one_rank_has_no_links():
    alone = links(1, [], [], [])
    assert find_levels(alone) == ()
    assert topology(alone).tour == (0,)


@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_the_tour_goes_node_by_node_whatever_looks_best_by_chance(noise):
    nodes = dealt(12, 4)
    for seed in range(10):
        measured = links(12, [nodes], [1.3, 2.5], [8, 24], noise, seed)  # one pair at a time
        found = topology(measured)
        assert found.crossings(found.tour) == 4

        def one_slow_host(a, b):
            return 0.5 if (a % 4 == 3) != (b % 4 == 3) else 1

        found = topology(links(12, [nodes], [0.5, 30], [5, 0.1], noise, seed, one_slow_host))
        assert found.crossings(found.tour) == 4


def test_the_tour_avoids_a_slow_link():
    nodes = blocks(8, 4)
    slow = {1, 2}
    measured = links(
        8, [nodes], [0.5, 30], [5, 0.1], share=lambda a, b: 0.01 if {a, b} == slow else 1
    )
    tour = topology(measured).tour
    steps = [{a, b} for a, b in zip(tour, (*tour[1:], tour[0]), strict=True)]
    assert slow not in steps
    assert topology(measured).crossings(tour) == 2
