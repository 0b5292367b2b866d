from collections import Counter
from itertools import combinations, combinations_with_replacement
from math import comb

import pytest
from machines import blocks

from mpiring import pairs
from mpiring.errors import UsageError
from mpiring.pairs import LOOK_BACK, choose, rounds_of, tournament

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("size", [*range(1, 10), 32])
def test_each_rank_meets_each_other_once_in_as_few_rounds_as_can_be(size):
    pairs = list(tournament(size))
    assert sorted(pairs) == list(combinations(range(size), 2))
    everyone = (tuple(range(size)),)
    rounds = rounds_of(pairs, everyone, [size])
    assert [pair for pairs in rounds for pair in pairs] == pairs
    assert len(rounds) == (0 if size == 1 else size - 1 + size % 2)
    assert all(len({r for pair in pairs for r in pair}) == 2 * len(pairs) for pairs in rounds)


@pytest.mark.parametrize("at_once", [1, 2])
def test_no_node_is_in_more_pairs_of_a_round_than_it_can_bear(at_once):
    nodes = blocks(12, 3)
    pairs = list(tournament(12))
    rounds = rounds_of(pairs, nodes, [at_once] * 4)
    assert sorted(pair for pairs in rounds for pair in pairs) == sorted(pairs)
    for pairs in rounds:
        assert len({rank for pair in pairs for rank in pair}) == 2 * len(pairs)
        load = Counter(node for pair in pairs for node in {rank // 3 for rank in pair})
        assert max(load.values()) <= at_once


def test_rounds_that_are_long_gone_get_no_more_pairs():
    pairs = [(0, rank) for rank in range(1, LOOK_BACK + 3)] + [(1, 2)]
    rounds = rounds_of(pairs, (tuple(range(LOOK_BACK + 3)),), [LOOK_BACK])
    assert rounds[2] == [(0, 3), (1, 2)]  # of the last 64, the first where neither 1 nor 2 is busy


@pytest.mark.parametrize(
    ("nodes", "most"),
    [
        (blocks(64, 8), 100),
        (blocks(64, 8), 36),
        (blocks(64, 64), 200),
        (blocks(64, 64), 2015),
        (((0,), (1, 2), tuple(range(3, 40))), 300),
        (((0,), (1, 2), tuple(range(3, 40))), 779),
    ],
)
def test_a_sample_has_each_two_nodes_and_each_rank_about_as_often(nodes, most):
    size = sum(map(len, nodes))
    pairs = choose(size, most, nodes)
    assert pairs == choose(size, most, nodes)
    assert len(pairs) == len(set(pairs)) == most
    assert all(0 <= a < b < size for a, b in pairs)
    node_of = {rank: index for index, node in enumerate(nodes) for rank in node}
    met = Counter(rank for pair in pairs for rank in pair)
    covered = {tuple(sorted(node_of[rank] for rank in pair)) for pair in pairs}
    wanted = combinations_with_replacement(range(len(nodes)), 2)
    assert covered == {(a, b) for a, b in wanted if a != b or len(nodes[a]) > 1}
    for node in nodes:
        assert max(met[r] for r in node) - min(met[r] for r in node) <= 1 + (most > 700)


def test_few_pairs_are_all_taken():
    assert choose(8, 28, blocks(8, 2)) == list(tournament(8))
    assert len(choose(8, 27, blocks(8, 2))) == 27


@pytest.mark.parametrize(
    ("most", "nodes", "size", "needed"),
    [(35, 8, 64, 36), (27, 8, 8, 28), (500, 4096, 8192, 8_390_656)],
)
def test_too_few_pairs_for_the_nodes(most, nodes, size, needed, monkeypatch):
    """How many are needed is counted, without a list of millions on each rank."""
    monkeypatch.setattr(pairs, "combinations_with_replacement", lambda *_: pytest.fail("a list"))
    said = f"--max-pairs {most} is too few: {nodes} nodes make {needed} combinations"
    with pytest.raises(UsageError, match=said):
        choose(size, most, blocks(size, size // nodes))


@pytest.mark.parametrize(
    ("size", "nodes", "number"), [(32, 1, 496), (64, 8, 500), (64, 32, 528), (50, 50, 1225)]
)
def test_where_nothing_is_asked_for_there_are_enough_pairs_for_the_nodes(size, nodes, number):
    groups = blocks(size, size // nodes)
    chosen = choose(size, None, groups)
    assert len(chosen) == len(set(chosen)) == number
    per_node = size // nodes
    seen = {(a // per_node, b // per_node) for a, b in chosen}
    assert len(seen) == comb(nodes, 2) + nodes * (per_node > 1)
