"""Every algorithm in the simulator: right, in order where promised, and as cheap as it claims."""

from functools import cache
from itertools import pairwise

import pytest
from oracle import bytes_sent

from mpiring.algorithms import ALGORITHMS, Algorithm, _registry, find
from mpiring.algorithms.ring import ring
from mpiring.chunks import Split
from mpiring.cost import scratch_length, traffic
from mpiring.errors import UsageError
from mpiring.schedule import Recv, Send
from mpiring.simulate import ScheduleError, simulate
from mpiring.topology import Level, Topology, flat

SCHEDULED = [algorithm for algorithm in ALGORITHMS.values() if algorithm.schedule]
SIZES = [*range(1, 18), 32]


def divided(size, groups, deal=False):
    """`size` ranks in `groups` nodes, block by block or dealt in turn, as evenly as can be."""
    if deal:
        nodes = tuple(tuple(range(group, size, groups)) for group in range(groups))
    else:
        edges = [size * group // groups for group in range(groups + 1)]
        nodes = tuple(tuple(range(a, b)) for a, b in pairwise(edges))
    return Topology(size, (Level("node", nodes),))


@cache
def topologies(size):
    some = [flat(size)]
    some += [divided(size, groups) for groups in (2, 3, size) if 1 < groups <= size]
    some += [divided(size, groups, deal=True) for groups in (2, 3) if groups < size]
    if size > 2:  # one lonely rank, in the middle, and the others in no order
        others = [r for r in range(size - 1, -1, -1) if r != 1]
        some.append(Topology(size, (Level("node", ((1,), tuple(others))),)))
    return some


def cases(size):
    for algorithm in SCHEDULED:
        for topology in topologies(size) if algorithm.name == "tree" else [flat(size)]:
            yield algorithm, topology


def held(algorithm, topology, count, contribution):
    return simulate(
        lambda rank: algorithm.schedule(rank, topology),
        topology.size,
        Split(count, algorithm.chunks(topology)),
        contribution,
    )


def check_exactly_once(algorithm, topology, count):
    """Each rank brings a digit of its own in base 256: the sum tells how often each was added."""
    everyone = sum(256**rank for rank in range(topology.size))
    for values in held(algorithm, topology, count, lambda rank, index: 256**rank):
        assert values == [everyone] * count, (algorithm.name, topology, count)


@pytest.mark.parametrize("size", SIZES)
def test_every_rank_ends_with_every_contribution_exactly_once(size):
    for algorithm, topology in cases(size):
        # On the larger topologies of the tree, one count of each kind; elsewhere, every count.
        few = topology != flat(size) and size > 9
        edges = (0, 1, 2, size - 1, size, size + 1, 3 * size + 1)
        for count in edges if few else range(3 * size + 2):
            check_exactly_once(algorithm, topology, count)


@pytest.mark.parametrize(
    "algorithm", [a for a in SCHEDULED if not a.commutative], ids=lambda a: a.name
)
@pytest.mark.parametrize("size", SIZES)
def test_rank_order_is_kept_where_the_operation_need_not_commute(algorithm, size):
    for values in held(algorithm, flat(size), 3, lambda rank, index: (rank,)):
        assert values == [tuple(range(size))] * 3


@pytest.mark.parametrize("size", SIZES)
def test_bytes_sent_equal_the_closed_forms(size):
    for algorithm, topology in cases(size):
        for count in (0, 1, size - 1, size, 3 * size + 1, 5040 * size):
            split = Split(count, algorithm.chunks(topology))
            for rank in range(size):
                counted = traffic(algorithm.schedule(rank, topology), split)
                expected = bytes_sent(algorithm.name, rank, size, count, topology.nodes)
                assert counted.elements_sent == expected, (algorithm.name, topology, count, rank)


@pytest.mark.parametrize("size", SIZES[1:])
def test_rounds_equal_the_closed_forms(size):
    def rounds(name, topology):
        algorithm = ALGORITHMS[name]
        split = Split(10000, algorithm.chunks(topology))
        return max(traffic(algorithm.schedule(r, topology), split).rounds for r in range(size))

    assert rounds("naive", flat(size)) == 1
    assert rounds("reduce_scatter", flat(size)) == 2
    assert rounds("ring", flat(size)) == 2 * (size - 1)
    assert rounds("tree", flat(size)) == 2
    if size % 2 == 0 and size > 2:
        assert rounds("tree", divided(size, 2)) == 3
    if size % 3 == 0 and size > 3:
        assert rounds("tree", divided(size, 3)) == 4


@pytest.mark.parametrize("size", [2, 4, 16])
def test_bandwidth_optimal_algorithms_meet_the_lower_bound(size):
    for name in ("ring", "reduce_scatter"):
        schedule = ALGORITHMS[name].schedule(1, flat(size))
        assert traffic(schedule, Split(size * 100, size)).elements_sent == 2 * (size - 1) * 100


def test_between_two_nodes_a_tree_sends_its_share_alone():
    """8 ranks in two nodes of 4, as taught: each rank sends a quarter over the slow link."""
    topology = divided(8, 2)
    for rank in range(8):
        schedule = ALGORITHMS["tree"].schedule(rank, topology)
        split = Split(800, ALGORITHMS["tree"].chunks(topology))
        across = [
            (step.peer, split.length(step.first, step.chunks))
            for steps in schedule
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


def test_scratch_of_an_unsegmented_run():
    assert scratch_length(ring(0, 8), Split(80, 8)) == 10
    assert scratch_length(ALGORITHMS["reduce_scatter"].schedule(3, flat(8)), Split(80, 8)) == 70
    assert scratch_length(ALGORITHMS["naive"].schedule(3, flat(8)), Split(80, 1)) == 560


def skip_last(rounds):
    return list(rounds)[:-1]


def do_not_reduce(rounds):
    return [
        tuple(s._replace(reduce=False) if isinstance(s, Recv) else s for s in r) for r in rounds
    ]


def reduce_always(rounds):
    return [tuple(s._replace(reduce=True) if isinstance(s, Recv) else s for s in r) for r in rounds]


def another_chunk(rounds):
    return [tuple(s._replace(first=(s.first + 1) % 4) for s in r) for r in list(rounds)[:1]]


@pytest.mark.parametrize("fault", [skip_last, do_not_reduce, reduce_always, another_chunk])
@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("name", ["reduce_scatter", "ring"])
def test_a_planted_fault_is_found(name, fault, everywhere):
    def schedule(rank):
        rounds = ALGORITHMS[name].schedule(rank, flat(4))
        return fault(rounds) if everywhere or rank == 2 else rounds

    try:
        ranks = simulate(schedule, 4, Split(9, 4))
    except (ScheduleError, ValueError):
        return
    assert any(sorted(element) != [0, 1, 2, 3] for values in ranks for element in values)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean reduce_scatter"):
        find("reduce-scatter")
    with pytest.raises(UsageError, match="there are naive, reduce_scatter, tree, ring, native"):
        find("xyzzy")


def test_a_name_cannot_be_registered_twice():
    twice = Algorithm("a", "", "", "", None)
    with pytest.raises(ValueError, match="twice"):
        _registry(twice, twice)
