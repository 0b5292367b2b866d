"""Time how long it takes until something is on the screen, and to walk a long schedule."""

import subprocess
from pathlib import Path
from statistics import median
from time import perf_counter

from targets import Targets

from mpiring.algorithms import ALGORITHMS
from mpiring.cost import total
from mpiring.topology import flat

BENCH = str(Path(__file__).parent / "bench")
COMMANDS = {  # with the limit in seconds
    "mpiring --help": (["mpiring", "--help"], 0.3),
    "mpirun -n 4 mpiring bench --sizes 8": (
        ["mpirun", "-n", "4", "mpiring", "bench", "--sizes", "8"],
        3.0,
    ),
    "scripts/bench --help (once set up)": ([BENCH, "--help"], 1.0),
}
RANKS, WALK_LIMIT_S = 1024, 10.0


def seconds(action):
    """Return the median of three runs, after one to warm up."""
    times = []
    for _ in range(4):
        begin = perf_counter()
        action()
        times.append(perf_counter() - begin)
    return median(times[1:])


def run(command):
    """Run a command, whose output does not matter."""
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def walk():
    """Count every step of every rank."""
    topology = flat(RANKS)
    total(ALGORITHMS["ring"].scheduled(topology), topology, count=1 << 20, itemsize=4)


def main():
    """Print a line for each figure, and leave with 1 where a limit is missed."""
    figures = [(name, seconds(lambda: run(c)), limit) for name, (c, limit) in COMMANDS.items()]  # noqa: B023
    begin = perf_counter()
    walk()
    figures.append((f"the ring of all {RANKS} ranks", perf_counter() - begin, WALK_LIMIT_S))
    targets = Targets()
    print(f"{'what':36} {'seconds':>8} {'limit':>8}")
    for name, figure, limit in figures:
        verdict = targets.judge(name, figure <= limit)
        print(f"{name:36} {figure:8.2f} {limit:8.2f}  {verdict}")
    targets.leave()


if __name__ == "__main__":
    main()
