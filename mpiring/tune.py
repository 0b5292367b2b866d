"""Measure what `auto` should pick: at each size everything once over, then the best in earnest.

The final has samples of its own: those by which the finalists were chosen favour whoever was lucky
in them.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any

from mpi4py import MPI

from mpiring.algorithms import ALGORITHMS
from mpiring.algorithms.algorithm import NATIVE, OF_THE_LIBRARY
from mpiring.arrays import dtype_named
from mpiring.bench import Bench, Config
from mpiring.chunks import Split
from mpiring.closed_forms import closed_form
from mpiring.cost import traffic
from mpiring.decision import AUTO, FARTHEST, RUNS, Pick, Row, Situation, merged
from mpiring.decision_file import TIMES, Times, times, times_line
from mpiring.errors import UsageError
from mpiring.fields import POSITIVE
from mpiring.implementation import library_name, thread_level
from mpiring.noise import Noise
from mpiring.options import Options
from mpiring.results import Point
from mpiring.topology import Level, Topology
from mpiring.tuning import Points, fastest, winner, without_blips
from mpiring.units import format_size

FINALISTS = 3
"""Beside those, and beside what was picked at the size before."""
SEGMENTS = (32 << 10, 128 << 10, 512 << 10)
"""Bytes, tried of whatever can be cut, beside its own default."""
MORE = int(2**FARTHEST)
"""Times as many ranks tell those apart that do the same on few; rules are for no more than that."""
SHARE_OF_HEATS = 1 / 3
"""Of the time for a size; the rest is the final's."""
FEWEST_IN_HEATS = 3
MOST_TRAFFIC, FROM_NBYTES = 4, 64 << 10
"""From this size on, what sends so many times as many bytes as another one is not even tried: on
many ranks it would take all the time there is."""


@dataclass(frozen=True)
class Contest(Config):
    """A benchmark of algorithms with options of their own, each called by the words for both."""

    picks: Mapping[str, Pick] = field(default_factory=dict)
    earlier: Mapping[int, Times] = field(default_factory=dict)
    """By size in bytes, what is known from earlier runs; else all that can run takes part."""
    runs: int = 1
    """How many measurements count, with this one."""

    @classmethod
    def of_all(cls, config: Config) -> "Contest":
        """Return the one between all variants of the algorithms of a configuration."""
        picks = {str(one): one for one in variants(config.algorithms)}
        return cls(**_fields(config), picks=picks)

    @classmethod
    def again(cls, config: Config, row: Row) -> "Contest":
        """Return the one between those that were faster than `native` by the times in a row.

        Its sizes are the row's. Raises ValueError where the row has no such times, or they are of
        other data.
        """
        measured = " ".join(str(row.measured.get(name, "")) for name in ("dtype", "op"))
        if measured != f"{config.dtype} {config.op}":
            raise UsageError(f"its times are of {measured}, not of {config.dtype} {config.op}")
        known = {str(one): one for one in variants(ALGORITHMS)}
        earlier = times(row)
        names = {NATIVE: None}
        for nbytes, size in earlier.items():
            names |= dict.fromkeys((*size.us, *size.slower))
            if nbytes % row.situation.itemsize:
                raise UsageError(f"{format_size(nbytes)} are no whole elements")
        if strange := [name for name in names if name not in known]:
            raise UsageError(f"unknown algorithm {strange[0]!r} in the times of {row.situation}")
        return cls(
            **_fields(config) | {"sizes": tuple(earlier)},
            picks={name: known[name] for name in names},
            earlier=earlier,
            runs=1 + POSITIVE.check(row.measured.get(RUNS, 1), RUNS),
        )

    def still_in(self, nbytes: int, incumbent: str) -> list[str] | None:
        """Return what no run found slower than `native` at a size; None where nothing is known.

        The incumbent is among that if it was not measured here: its rule shall not end for nothing.
        """
        if nbytes not in self.earlier:
            return None
        known = self.earlier[nbytes]
        others = [name for name in (*known.us, incumbent) if name not in known.slower]
        return list(dict.fromkeys((NATIVE, *others)))

    @property
    def names(self) -> list[str]:
        """What is measured."""
        return list(self.picks)

    def pick_of(self, name: str) -> Pick:
        """Return the algorithm and its options."""
        return self.picks[name]


def _fields(config: Config) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__dataclass_fields__}


def variants(algorithms: Iterable[str]) -> Iterator[Pick]:
    """Yield what is tried of these algorithms, and of the library's own in any case."""
    for name in ALGORITHMS:
        if name != AUTO and name in (*algorithms, *OF_THE_LIBRARY):
            yield Pick(name)
            if "segment" in ALGORITHMS[name].heeded:
                yield from (Pick(name, Options(segment=segment)) for segment in SEGMENTS)


def candidates(
    comm: MPI.Intracomm, picks: Iterable[Pick], topology: Topology, count: int, itemsize: int
) -> list[Pick]:
    """Return which of `picks` to try on `count` elements, in their order. Collective.

    They can run there; of several with the same rounds on every rank only the cheapest in a larger
    job is among them; and they do not send far more than another one.
    """
    able: list[Pick] = []
    work: list[Hashable] = []
    sent: list[int] = []
    for one in picks:
        algorithm = ALGORITHMS[one.algorithm]
        if algorithm.schedule is None:
            able.append(one)
            work.append(one)
            sent.append(0)
            continue
        try:
            whole = algorithm.schedule(topology, one.options)
            segments = algorithm.segments(whole.chunks, topology, one.options, count, itemsize)
        except UsageError:  # on all ranks alike
            continue
        rounds = tuple(whole.rounds(comm.rank))
        able.append(one)
        cut = algorithm.cut if segments > 1 else None
        work.append((rounds, whole.chunks, whole.memory, segments, cut))
        sent.append(traffic(rounds, Split(count, whole.chunks)).elements_sent)
    everyone: list[tuple[list[int], list[int]]] = comm.allgather(
        (list(map(work.index, work)), sent)
    )
    same = list(zip(*(firsts for firsts, _ in everyone), strict=True))
    busiest = [max(column) for column in zip(*(sent for _, sent in everyone), strict=True)]
    least = min(filter(None, busiest), default=0)
    bound = MOST_TRAFFIC * least if count * itemsize >= FROM_NBYTES else max(busiest)
    alike: dict[Hashable, list[Pick]] = {}
    for one, group, nbytes in zip(able, same, busiest, strict=True):
        if nbytes <= bound:
            alike.setdefault(group, []).append(one)
    cost = partial(_cost, larger(topology), max(1, count * itemsize))
    kept = [group[0] if len(group) == 1 else min(group, key=cost) for group in alike.values()]
    return [one for one in able if one in kept]


def larger(topology: Topology) -> Topology:
    """Return a job like this one with more ranks: on its node, or on as many more nodes."""
    nodes, per_node = len(topology.nodes), max(map(len, topology.nodes))
    size = MORE * nodes * per_node
    if nodes == 1:
        per_node = size
    groups = (tuple(range(begin, begin + per_node)) for begin in range(0, size, per_node))
    return Topology(size, (Level("node", tuple(groups)),))


def _cost(topology: Topology, nbytes: int, pick: Pick) -> tuple[float, float]:
    """Return the messages and bytes of the busiest rank, what counts more first."""
    algorithm = ALGORITHMS[pick.algorithm]
    with suppress(UsageError):
        if form := closed_form(algorithm, topology, pick.options, nbytes, itemsize=1):
            cost = form.messages_sent, float(form.bytes_sent)
            return cost if nbytes < FROM_NBYTES else cost[::-1]
    return inf, inf


def situation_of(config: Config, topology: Topology) -> Situation:
    """Return the situation that a tuning of this configuration is for."""
    itemsize = dtype_named(config.dtype).itemsize
    return Situation.of(topology, library_name(), itemsize, config.buffers, thread_level())


class Tuning:
    """A search for the rules of one situation. Running it is collective."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        contest: Contest,
        topology: Topology,
        noise: Noise,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        """`stop` raises Stopped, on all ranks, where the search has to end early."""
        self.comm = comm
        self.contest = contest
        self.topology = topology
        self.noise = noise
        self.stop = stop
        self.report: Callable[[str], None] = lambda text: None
        """Is told what is being done."""
        self.itemsize = dtype_named(contest.dtype).itemsize
        self.finals: dict[int, Points] = {}
        """The points of the finals, by size in bytes."""
        self.picked: list[str] = []
        """What was picked at each of these sizes."""
        self.wrong: list[Point] = []
        """Those whose check failed, which is in the heats."""

    def run(self, sizes: Iterable[int]) -> Iterator[tuple[str, Points]]:
        """Yield what is picked at each size in bytes, and the points of its final.

        Sizes ascend, and are whole elements. Raises UsageError where nothing can run.
        """
        incumbent = NATIVE
        for nbytes in sizes:
            finals = self.final(nbytes, incumbent)
            if not fastest(finals, 1):
                raise UsageError(f"nothing could be timed at {format_size(nbytes)}")
            incumbent = winner(finals, incumbent)
            self.finals[nbytes] = finals
            self.picked.append(incumbent)
            yield incumbent, finals

    def row(self, **measured: Any) -> Row:
        """Return the rules, with the times beside what else is `measured`."""
        names = without_blips(self.picked, list(self.finals.values()))
        picks = [self.contest.picks[name] for name in names]
        lines = [self._line(nbytes, finals) for nbytes, finals in self.finals.items()]
        if self.contest.runs > 1:
            measured[RUNS] = self.contest.runs
        situation = situation_of(self.contest, self.topology)
        rules = merged(list(zip(self.finals, picks, strict=True)))
        return Row(situation, rules, {**measured, TIMES: lines})

    def _line(self, nbytes: int, finals: Points) -> dict[str, Any]:
        us = {name: _microseconds(point) for name, point in finals.items()}
        most = us.get(NATIVE, inf)
        before = self.contest.earlier[nbytes].slower if nbytes in self.contest.earlier else ()
        now = (name for name in us if us[name] >= most and name != NATIVE)
        return times_line(nbytes, Times(us, list(dict.fromkeys((*before, *now)))))

    def final(self, nbytes: int, incumbent: str) -> Points:
        """Measure everything, and then the best beside the library's and what was picked before."""
        sampling, picks = self.contest.sampling, self.contest.picks
        entered = self.contest.still_in(nbytes, incumbent)
        if entered is None:
            count = nbytes // self.itemsize
            able = candidates(self.comm, picks.values(), self.topology, count, self.itemsize)
            entered = list(dict.fromkeys((*map(str, able), incumbent)))
        heats_s = sampling.time_limit_s * SHARE_OF_HEATS
        heats = self.measured(
            nbytes,
            entered,
            sampling=replace(sampling, time_limit_s=heats_s, fewest=FEWEST_IN_HEATS),
        )
        self.wrong += [point for point in heats.values() if point.check_ok is False]
        ours = {name: point for name, point in heats.items() if name not in OF_THE_LIBRARY}
        finalists = dict.fromkeys((*fastest(ours, FINALISTS), incumbent, *OF_THE_LIBRARY))
        finals = self.measured(
            nbytes,
            [name for name in finalists if name in heats and heats[name].samples_s],
            sampling=replace(sampling, time_limit_s=sampling.time_limit_s - heats_s),
            check=False,  # once is enough
        )
        return {name: replace(p, check_ok=heats[name].check_ok) for name, p in finals.items()}

    def measured(self, nbytes: int, names: Iterable[str], **changes: Any) -> Points:
        """Return a point for each of these, and `native`'s samples in it."""
        picks = {name: self.contest.picks[name] for name in names}
        contest = replace(self.contest, picks=picks, **changes)
        bench = Bench(self.comm, contest, self.topology, self.noise, self.report, self.stop)
        (points,) = bench.run([nbytes])
        return {point.algorithm: point for point in points}


def _microseconds(point: Point) -> float:
    return round(1e6 * (point.median_s or 0.0), 2)
