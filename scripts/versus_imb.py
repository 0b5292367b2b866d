"""Run IMB-MPI1 and mpiring in turn, and print what each says of the same call."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from targets import Targets

from mpiring.implementation import mpi_library
from mpiring.units import format_size

SIZES = [8, 64, 512, 4096, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
ROUNDS = 7
CALLS = 300
SMALL, SMALL_LIMIT_US = 1024, 0.5
LARGE, LARGE_LIMIT = 64 << 10, 1.05


def imb(ranks, folder):
    """Return microseconds by size: the mean over repetitions, of the slowest rank."""
    lengths = folder / "lengths"
    lengths.write_text("".join(f"{size}\n" for size in SIZES))
    command = ["mpirun", "-n", ranks, "IMB-MPI1", "allreduce", "-npmin", ranks]
    command += ["-msglen", str(lengths), "-iter", str(CALLS), "-iter_policy", "off"]
    lines = run(command).splitlines()
    rows = [line.split() for line in lines if re.fullmatch(r"(\s+[\d.]+){5}\s*", line)]
    return {int(row[0]): float(row[3]) for row in rows}


def ours(ranks, folder):
    """Return the same of `native` in mpiring, with as many calls in a row."""
    path = folder / "ours.json"
    command = ["mpirun", "-n", ranks, "mpiring", "bench", "-a", "native", "-q", "--no-check"]
    command += [
        "-s",
        ",".join(map(str, SIZES)),
        "--repetitions",
        "6",
        "--batch",
        str(CALLS),
        "-o",
        str(path),
    ]
    run(command)
    points = json.loads(path.read_text())["points"]
    return {p["nbytes"]: p["rank_mean_s"]["slowest"] * 1e6 for p in points}


def run(command):
    """Return what a command prints."""
    libraries = {"LD_LIBRARY_PATH": f"{sys.prefix}/lib"}  # IMB knows no other place for its MPI
    finished = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | libraries
    )
    return finished.stdout


def main(ranks):
    """Print a line for each size, and leave with 1 where a limit is missed."""
    with TemporaryDirectory() as folder:
        pairs = [(imb(ranks, Path(folder)), ours(ranks, Path(folder))) for _ in range(ROUNDS)]
    print(f"{mpi_library()}, {ranks} ranks, float32 sum, {CALLS} calls, median of {ROUNDS} rounds")
    print(f"{'size':>8} {'IMB (us)':>10} {'ours (us)':>10} {'ratio':>7} {'adds (us)':>10}  limit")
    targets = Targets()
    for size in SIZES:
        theirs = median(pair[0][size] for pair in pairs)
        mine = median(pair[1][size] for pair in pairs)
        ratio = median(pair[1][size] / pair[0][size] for pair in pairs)
        added = median(pair[1][size] - pair[0][size] for pair in pairs)
        limit = verdict = ""
        if size < SMALL:
            limit = f"{SMALL_LIMIT_US} us"
            verdict = targets.judge(size, abs(added) <= SMALL_LIMIT_US)
        elif size >= LARGE:
            limit = f"{LARGE_LIMIT}"
            verdict = targets.judge(size, 1 / LARGE_LIMIT <= ratio <= LARGE_LIMIT)
        print(
            f"{format_size(size):>8} {theirs:10.2f} {mine:10.2f} {ratio:7.2f} {added:10.2f}"
            f"  {limit:7} {verdict}"
        )
    targets.leave()


if __name__ == "__main__":
    main(sys.argv[1])
