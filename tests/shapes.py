"""Topologies and options to try algorithms on, and what becomes of one."""

from functools import cache
from itertools import pairwise

from mpiring.algorithms import ALGORITHMS
from mpiring.algorithms.tree import TOP
from mpiring.explain import frames
from mpiring.options import DEFAULTS, Options
from mpiring.topology import Level, Topology, flat

SCHEDULED = [algorithm for algorithm in ALGORITHMS.values() if algorithm.schedule]
ON_NODES = ("tree", "hierarchical_ring", "multi_leader", "shared")
RINGS = ("ring", "segmented_ring")


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
    if size > 4:  # three nodes under two switches
        nodes = divided(size, 3).nodes
        switches = (nodes[0] + nodes[1], nodes[2])
        some.append(Topology(size, (Level("node", nodes), Level("switch", switches))))
    return some


def options_of(algorithm, size):
    """The choices that an algorithm heeds, at both ends and in the middle."""
    yield DEFAULTS
    if "radix" in algorithm.heeds:
        yield from (Options(radix=radix) for radix in (2, 3, 5, size) if radix >= 2)
    if "ring_order" in algorithm.heeds:
        yield Options(ring_order="rank")
    if "root" in algorithm.heeds:
        yield from (Options(root=root) for root in {size // 2, size - 1})
    if "leaders" in algorithm.heeds:
        yield from (Options(leaders=leaders) for leaders in (1, 3))
    if "tree" in algorithm.heeds:
        inside = () if algorithm.name == "shared" else (("node", "ring"),)
        yield Options(tree=(*inside, (TOP, "rabenseifner")))
        yield Options(tree=((TOP, "binomial_tree"),), leaders=2)
    if "torus" in algorithm.heeds:
        sides = (x for x in range(1, size + 1) if size % x == 0)
        yield from (Options(torus=(x, size // x)) for x in sides)


def cases(size, algorithms=SCHEDULED):
    """Each algorithm with each topology that makes a difference to it, and with each option.

    Options are tried on the plainest of those topologies and on the most crooked one.
    """
    for algorithm in algorithms:
        plain, *others = topologies(size)
        crooked = others[-1:]
        if algorithm.name not in ON_NODES:
            others = crooked if "ring_order" in algorithm.heeds else []
        for topology in (plain, *others):
            every = topology is plain or topology in crooked
            for options in options_of(algorithm, size) if every else [DEFAULTS]:
                yield algorithm, topology, options


def moments(name, size, nodes=1, segments=1):
    algorithm = ALGORITHMS[name]
    schedule = algorithm.schedule(divided(size, nodes), DEFAULTS)
    schedule = algorithm.cut(schedule, segments)
    return schedule, list(frames(schedule))
