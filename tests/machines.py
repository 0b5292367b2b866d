"""Links of machines that are made up: levels with figures, noise, and what is wrong with them."""

import random

from mpiring.links import Figure, Link, Links


def healthy(a, b):
    return 1.0


def blocks(size, per_group):
    return tuple(tuple(range(first, first + per_group)) for first in range(0, size, per_group))


def dealt(size, groups):
    return tuple(tuple(range(first, size, groups)) for first in range(groups))


def links(size, levels, latencies, rates, noise=0.05, seed=0, share=healthy, pairs=None):
    """Return the links of `size` ranks; `levels` are groups from the inside to the outside.

    There is a latency and a rate for each, and one more beyond the last. A link has `share(a, b)`
    of its rate in that direction. What disturbs makes links worse, by about `noise`.
    """
    random_ = random.Random(seed)
    places = [{r: i for i, group in enumerate(g) for r in group} for g in levels]

    def figure(value, worse):
        best = value * random_.lognormvariate(0, noise / 4)
        spread = 1 + abs(random_.gauss(0, noise))
        median = best * spread if worse > 0 else best / spread
        return Figure(median, (0.99 * median, 1.01 * median), best)

    made = []
    for a in range(size):
        for b in range(a + 1, size):
            kind = sum(place[a] != place[b] for place in places)
            there, back = (figure(rates[kind] * share(*way), worse=-1) for way in ((a, b), (b, a)))
            if pairs is None or (a, b) in pairs:
                made.append(Link((a, b), figure(latencies[kind], worse=1), (there, back)))
    nodes = levels[0] if levels else (tuple(range(size)),)
    hosts = {rank: f"node{index:02}" for index, node in enumerate(nodes) for rank in node}
    return Links(tuple(hosts[rank] for rank in range(size)), nodes, 1 << 22, tuple(made))
