"""Hold what `mpiring bench` measured on ordinary and node-shared arrays against MPI_Allreduce."""

import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from targets import Targets

from mpiring.report.files import read
from mpiring.stats import NEUTRAL_BAND, bootstrap_speedup, paired_speedup
from mpiring.units import format_size

KIB, MIB = 1 << 10, 1 << 20
LEVELS = ("multiple", "single")  # of threads: the usual one first
CROWDED = 0.7  # of a target counts with more ranks than cores
LARGE = {"impi": 1.2}  # what ordinary arrays from 32 MiB on are to gain, else 1.5
SHORTEST = 8  # bytes, where auto is to be no slower than mpi4py's call with prepared arguments
OVER_COPY = 0.9  # the share of the concurrent copy's time that node-shared arrays may take


def ordinary_target(mpi, nbytes):
    """How many times as fast as MPI_Allreduce `auto` has to be on ordinary arrays."""
    return LARGE.get(mpi, 1.5) if nbytes >= 32 * MIB else 0.97


def shared_target(nbytes):
    """How many times as fast as MPI_Allreduce node-shared arrays have to be; None for no matter."""
    if nbytes >= 4 * MIB:
        return 2.0
    if 64 * KIB <= nbytes <= MIB:
        return 3.0
    return 1.5 if nbytes == 16 * KIB else None


class Measured:
    """The samples of all launches, by kind of buffers, thread level, size and algorithm."""

    def __init__(self, folder, mpi):
        self.samples, self.ran, limits = defaultdict(list), {}, defaultdict(list)
        for path in sorted(Path(folder).glob(f"{mpi}-*.json")):
            _, kind, level, _ = path.stem.split("-")
            result = read(str(path))
            for point in result.points:
                self.samples[kind, level, point.nbytes, point.algorithm] += point.samples_s
                self.ran[kind, level, point.nbytes, point.algorithm] = point.ran
                if point.limit_s:
                    limits[point.nbytes].append(point.limit_s)
            if level == "multiple":  # as mpi4py has it
                self.environment = result.environment
        self.limits = {nbytes: median(some) for nbytes, some in limits.items()}
        self.sizes = sorted({nbytes for _, _, nbytes, _ in self.samples})

    def names(self, kind, nbytes):
        """Return what was timed, beside native."""
        timed = (at for at, some in self.samples.items() if some)
        names = [name for a_kind, _, size, name in timed if (a_kind, size) == (kind, nbytes)]
        return [name for name in dict.fromkeys(names) if name != "native"]

    def of(self, kind, level, nbytes, name):
        """Return some samples."""
        return self.samples[kind, level, nbytes, name]

    def level(self, kind, nbytes, name):
        """Return the thread level at which it is faster."""
        levels = [level for level in LEVELS if self.of(kind, level, nbytes, name)]
        return min(levels, key=lambda level: median(self.of(kind, level, nbytes, name)))

    def best(self, kind, nbytes, name):
        """Return its samples at that level."""
        return self.of(kind, self.level(kind, nbytes, name), nbytes, name)

    def over_native(self, kind, nbytes, name):
        """Return how many times as fast it is as native, each at its better level.

        Samples of the same launch alternate, so each is then held against the one beside it.
        """
        native, ours = (self.best(kind, nbytes, one) for one in ("native", name))
        same = self.level(kind, nbytes, "native") == self.level(kind, nbytes, name)
        return (paired_speedup if same else bootstrap_speedup)(native, ours, NEUTRAL_BAND)

    def shown(self, kind, nbytes, name, called=""):
        """Return what it is called, its median in us, and the level if it is not the usual one."""
        level = self.level(kind, nbytes, name)
        words = (called, us(self.best(kind, nbytes, name)), "" if level == LEVELS[0] else level)
        return " ".join(filter(None, words))


def us(samples):
    """Return the median in microseconds, if there is one."""
    return f"{median(samples) * 1e6:.1f}" if samples else "-"


def shown(ratio):
    """Return a ratio with its interval."""
    low, high = ratio.interval or (ratio.ratio, ratio.ratio)
    return f"{ratio.ratio:.2f} ({low:.2f}..{high:.2f})"


class OverNative(Targets):
    """Judges ratios by targets that depend on the library and on how many ranks share a core."""

    def __init__(self, mpi, crowded):
        super().__init__()
        self.mpi = mpi
        self.factor = CROWDED if crowded else 1.0

    def at_least(self, what, ratio, target):
        """Return a ratio in words, with its target, if it has one."""
        if target is None:
            return shown(ratio)
        least = target * self.factor
        return f"{shown(ratio)}, at least {least:.2f}: {self.judge(what, ratio.ratio >= least)}"

    def at_most(self, what, share, target):
        """Return a share in words, with its target."""
        most = target / self.factor
        return f"{share:.2f} of the copy, at most {most:.2f}: {self.judge(what, share <= most)}"

    def no_slower(self, what, ratio):
        """Return a ratio in words that has to be 1 at least, as far as can be told."""
        passes = ratio.interval is None or ratio.interval[1] >= 1
        return f"{shown(ratio)} of comm.Allreduce, no slower: {self.judge(what, passes)}"


def row(measured, targets, nbytes):
    """Return the cells of a size."""
    size = format_size(nbytes)
    own = [name for name in measured.names("ordinary", nbytes) if name != "auto"]
    best = min(own, key=lambda name: median(measured.best("ordinary", nbytes, name)))
    shared = min(
        measured.names("shared", nbytes),
        key=lambda name: median(measured.best("shared", nbytes, name)),
    )
    level = measured.level("ordinary", nbytes, "auto")
    picked = measured.ran["ordinary", level, nbytes, "auto"].removeprefix("auto: ")
    auto = targets.at_least(
        f"auto at {size}",
        measured.over_native("ordinary", nbytes, "auto"),
        ordinary_target(targets.mpi, nbytes),
    )
    if nbytes == SHORTEST:
        both = (measured.of("ordinary", LEVELS[0], nbytes, name) for name in ("native", "auto"))
        beside = paired_speedup(*both, NEUTRAL_BAND)
        auto += f"; {targets.no_slower('auto beside comm.Allreduce', beside)}"
    stored = targets.at_least(
        f"shared at {size}", measured.over_native("shared", nbytes, shared), shared_target(nbytes)
    )
    limit = measured.limits.get(nbytes)
    if nbytes >= 4 * MIB:
        share = median(measured.best("shared", nbytes, shared)) / limit
        what = f"shared beside the copy at {size}"
        stored += f"; {targets.at_most(what, share, OVER_COPY)}"
    return (
        size,
        *(us(measured.of("ordinary", level, nbytes, "native")) for level in LEVELS),
        measured.shown("ordinary", nbytes, best, best),
        measured.shown("ordinary", nbytes, "auto", picked),
        measured.shown("shared", nbytes, shared),
        f"{limit * 1e6:.1f}" if limit else "-",
        auto,
        stored,
    )


def main(folder, mpi, table):
    """Print a line for each size, and leave with 1 where a target is missed."""
    measured = Measured(folder, mpi)
    at = measured.environment
    targets = OverNative(mpi, at["oversubscribed"])
    title = (
        f"{at['mpi_library']}, {at['ranks']} ranks on {sum(at['cores_per_node'])} cores"
        f" ({at['cpu_model']}), {at['started'][:10]}, mpiring {at['mpiring']}, float32 sum, us"
    )
    columns = ("size", "native", "single", "best of ours", "auto", "node-shared", "copy",
               "auto over native", "shared over native")  # fmt: skip
    rows = [row(measured, targets, nbytes) for nbytes in measured.sizes]
    print(f"\n{title}")
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for cells in (columns, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print(line.rstrip())
    print(f"missed: {', '.join(targets.missed) or 'none'}")
    if table:
        with Path(table).open("a") as file:
            file.write(f"{title}\n\n")
            for cells in (columns, ["---"] * len(columns), *rows):
                file.write(f"| {' | '.join(cells)} |\n")
            file.write("\n")
    targets.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
