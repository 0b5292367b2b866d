"""What an algorithm takes on any number of ranks, by the closed forms in the registry."""

import re
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from mpiring.algorithms.algorithm import Algorithm
from mpiring.algorithms.torus_ring import nearest_factors
from mpiring.cost import pieces
from mpiring.formula import evaluate
from mpiring.options import Options
from mpiring.topology import Topology


class Busiest(NamedTuple):
    """What the closed forms of an algorithm give: the rounds, and what the busiest rank sends."""

    rounds: int
    messages_sent: int
    bytes_sent: Fraction


def closed_form(
    algorithm: Algorithm, topology: Topology, options: Options, count: int, itemsize: int
) -> Busiest | None:
    """Return what a run of `count` elements takes, without a look at its rounds.

    Exact where chunks come out even and none is empty. None where the forms need one level of equal
    nodes, and the topology has something else, or where other phases were chosen. Raises
    UsageError for an unmet precondition.
    """
    size, nodes = topology.size, topology.nodes
    assert algorithm.schedule is not None
    schedule = algorithm.schedule(topology, options)
    if size == 1:
        return Busiest(0, 0, Fraction(0))
    equal = len(topology.levels) == 1 and len({len(node) for node in nodes}) == 1
    if options.tree or (not equal and re.search(r"\b[PGL]\b", algorithm.rounds)):
        return None
    x, y = options.torus or nearest_factors(size)
    values = {"N": size, "n": count * itemsize, "k": options.radix, "X": x, "Y": y}
    if equal:
        per_node = len(nodes[0])
        leaders = options.leaders or algorithm.leaders or per_node
        values |= {"G": len(nodes), "P": per_node, "L": min(leaders, per_node)}
    rounds, messages, nbytes, scratch = (
        evaluate(form, **values)
        for form in (
            algorithm.rounds,
            algorithm.messages,
            algorithm.bytes_sent,
            algorithm.scratch,
        )
    )
    segments = algorithm.segments(schedule.chunks, topology, options, count, itemsize)
    rounds = rounds + segments - 1 if algorithm.cut.overlapped else rounds * segments
    if segments > 1 and not algorithm.cut.overlapped:
        scratch = scratch * algorithm.cut(schedule, segments).in_flight / segments
    cut = pieces(ceil(scratch), count, itemsize)
    return Busiest(int(rounds) * cut, int(messages) * segments * cut, nbytes)


def lower_bound(size: int, nbytes: int) -> Fraction:
    """Return the fewest bytes that the busiest rank of an allreduce has to send: 2(N-1)/N n."""
    return Fraction(2 * (size - 1), size) * nbytes
