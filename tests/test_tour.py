from itertools import permutations

import numpy as np
import pytest
from machines import dealt

from mpiring import tour
from mpiring.tour import find_tour, length, nearest_neighbour

pytestmark = pytest.mark.pure


def random_costs(size, seed):
    costs = np.random.default_rng(seed).random((size, size))
    costs = np.maximum(costs, costs.T)
    np.fill_diagonal(costs, 0)
    return costs


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 17, 60])
def test_a_tour_has_each_rank_once_and_is_no_longer_than_the_nearest_neighbours(size):
    for seed in range(10):
        costs = random_costs(size, seed)
        found = find_tour(costs)
        assert sorted(found) == list(range(size))
        assert found[0] == 0
        assert size < 3 or found[1] < found[-1]
        assert length(costs, list(found)) <= length(costs, nearest_neighbour(costs))
        assert found == find_tour(costs)


def test_two_opt_finds_more_than_the_nearest_neighbour():
    better = 0
    for seed in range(20):
        costs = random_costs(40, seed)
        first, found = nearest_neighbour(costs), list(find_tour(costs))
        better += length(costs, found).worst < 0.7 * length(costs, first).worst
    assert better >= 18


def test_most_small_tours_are_the_best_there_are():
    best = 0
    for seed in range(40):
        costs = random_costs(7, seed)
        all_tours = ([0, *rest] for rest in permutations(range(1, 7)))
        shortest = min(length(costs, tour) for tour in all_tours)
        found = length(costs, list(find_tour(costs)))
        assert found >= shortest
        best += found == shortest
    assert best >= 34


@pytest.mark.parametrize(("size", "nodes"), [(4, 2), (8, 2), (12, 3), (64, 8), (13, 4)])
def test_ranks_that_were_dealt_out_come_node_by_node(size, nodes):
    node_of = np.empty(size, int)
    for index, node in enumerate(dealt(size, nodes)):
        node_of[list(node)] = index
    costs = np.where(node_of[:, None] == node_of[None, :], 1.0, 40.0)
    np.fill_diagonal(costs, 0)
    found = np.array(find_tour(costs))
    assert np.sum(node_of[found] != node_of[np.roll(found, 1)]) == nodes


def test_one_bad_link_is_avoided():
    costs = np.ones((6, 6)) - np.eye(6)
    costs[2, 3] = costs[3, 2] = 1.01
    assert length(costs, list(find_tour(costs))) == (1, 6)


def test_the_work_is_bounded(monkeypatch):
    costs = random_costs(40, 1)
    monkeypatch.setattr(tour, "MOST_WEIGHED", 0)
    starts = range(0, 40, 5)
    assert length(costs, list(find_tour(costs))) == min(
        length(costs, nearest_neighbour(costs, start)) for start in starts
    )
