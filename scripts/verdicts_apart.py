"""Run `mpiring bench` again and again, nothing changed; compare each run with the one before."""

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from mpiring.report.files import read
from mpiring.stats import NEUTRAL_BAND, bootstrap_speedup
from mpiring.units import format_size

SIZES = "1KiB,256KiB"

PAIRS = 20


def measured(ranks, seconds, path):
    """Return the samples that one run takes of ring and native, by algorithm and size."""
    command = ["mpirun", "-n", ranks, "mpiring", "bench", "-q", "-a", "ring", "-s", SIZES]
    command += ["--time-limit", seconds, "-o", path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {(p.algorithm, p.nbytes): p.samples_s for p in read(str(path)).points}


def main(ranks, seconds):
    """Print how often an unchanged repeat in a run of its own was a tie."""
    with TemporaryDirectory() as folder:
        runs = [measured(ranks, seconds, Path(folder) / f"{run}.json") for run in range(PAIRS + 1)]
    print(f"mpiring bench -a ring --time-limit {seconds}, each run beside the one before:")
    for algorithm, nbytes in runs[0]:
        samples = [run[algorithm, nbytes] for run in runs]
        ratios = [bootstrap_speedup(old, new, NEUTRAL_BAND) for old, new in pairwise(samples)]
        said = Counter(ratio.verdict for ratio in ratios)
        apart = max(max(ratio.ratio, 1 / ratio.ratio) for ratio in ratios)
        print(
            f"{algorithm:6} {format_size(nbytes):>8}: a tie {said['tie']} times of {PAIRS},"
            f" medians up to {100 * (apart - 1):.0f} % apart"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
