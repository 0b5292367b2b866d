"""Time the plan of our ring beside a ring written by hand, in turn, sample by sample."""

import sys
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from mpi4py import MPI
from targets import Targets

import mpiring
from mpiring.communicator import private
from mpiring.implementation import mpi_library
from mpiring.machine import survey
from mpiring.noise import measure_noise
from mpiring.sampling import Sampler, Sampling
from mpiring.units import format_size

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from oracle import ring_allreduce

SIZES = [8, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
LIMITS = {8: 1.00}  # ours may take this many times as long
LIMIT_FROM_64_KIB = 1.05


def main():
    """Print the table, and leave with 1 where a limit is missed."""
    comm = MPI.COMM_WORLD
    cores = sum(survey(comm, private(comm).topology.nodes).cores)
    tick_s, targets = measure_noise(comm).tick_s, Targets()
    if comm.rank == 0:
        print(f"mpiring {mpiring.__version__}, {mpi_library()}, {comm.size} ranks on {cores} cores")
        print(f"{'size':>8} {'ours (us)':>12} {'by hand (us)':>12} {'ratio':>7} {'limit':>7}")
    for nbytes in SIZES:
        sendbuf = np.arange(nbytes // 4, dtype="f4") * 1e-3 + comm.rank
        ours, by_hand = np.empty_like(sendbuf), np.empty_like(sendbuf)
        scratch = np.empty(-(-sendbuf.size // comm.size), "f4")
        with mpiring.allreduce_init(sendbuf, ours, comm=comm, algorithm="ring") as plan:
            calls = {
                "ours": plan,
                "by hand": partial(ring_allreduce, comm, sendbuf, by_hand, scratch),
            }
            number = max(15, min(1000, (64 << 20) // nbytes))
            sampling = Sampling(fewest=number, most=number, warmup=3)
            samples = Sampler(comm, sampling, seed=1, tick_s=tick_s).sample(calls)
        if not comm.allreduce(np.allclose(ours, by_hand), MPI.LAND):
            sys.exit(f"the two results differ at {nbytes} bytes")
        mine, theirs = (float(median(samples[name].slowest)) for name in calls)
        limit = LIMITS.get(nbytes, LIMIT_FROM_64_KIB)
        verdict = targets.judge(nbytes, mine / theirs <= limit)
        if comm.rank == 0:
            print(
                f"{format_size(nbytes):>8} {mine * 1e6:12.1f} {theirs * 1e6:12.1f}"
                f" {mine / theirs:7.2f} {limit:7.2f}  {verdict}",
                flush=True,
            )
    targets.leave()


if __name__ == "__main__":
    main()
