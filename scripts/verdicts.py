"""Sample a ring beside itself, and beside itself made 10 % slower, twenty times each."""

import sys
from time import perf_counter

import numpy as np
from mpi4py import MPI
from targets import Targets

import mpiring
from mpiring.implementation import mpi_library
from mpiring.noise import measure_noise
from mpiring.sampling import Sampler, Sampling
from mpiring.stats import NEUTRAL_BAND, paired_speedup

RUNS, RIGHT = 20, 19
SIZES = [1 << 10, 256 << 10]
SLOWDOWN = 0.10


def slowed(plan, extra_s):
    """Return a call of the plan that takes so many seconds more, on every rank."""

    def call():
        plan()
        end = perf_counter() + extra_s
        while perf_counter() < end:
            pass

    return call


def main(seconds):
    """Print how often each verdict came, and leave with 1 where too few are right."""
    comm = MPI.COMM_WORLD
    tick_s = measure_noise(comm).tick_s
    sampling = Sampling(time_limit_s=seconds)
    targets = Targets()
    if comm.rank == 0:
        print(
            f"{mpi_library()}, {comm.size} ranks, ring beside itself in one run:"
            f" up to {seconds} s and {sampling.most} repetitions of all",
            flush=True,
        )
    for nbytes in SIZES:
        sendbuf = np.ones(nbytes // 4, "f4")
        recvbuf = np.empty_like(sendbuf)  # the same for both: where it lies can make 5 % and more
        plan, again = (mpiring.allreduce_init(sendbuf, recvbuf, comm=comm) for _ in range(2))
        alone = Sampler(comm, sampling, seed=0, tick_s=tick_s).sample({"ring": plan})["ring"]
        extra_s = SLOWDOWN * float(np.median(alone.slowest))
        verdicts = {"tie": [], "slower": []}
        for run in range(RUNS):
            calls = {"ring": plan, "tie": again, "slower": slowed(again, extra_s)}
            sampler = Sampler(comm, sampling, seed=run, tick_s=tick_s)
            samples = sampler.sample(calls)
            for name, said in verdicts.items():
                times = samples["ring"].slowest.tolist(), samples[name].slowest.tolist()
                said.append(paired_speedup(*times, NEUTRAL_BAND).verdict)
        for name, said in verdicts.items():
            right = said.count(name)
            verdict = targets.judge(name, right >= RIGHT)
            if comm.rank == 0:
                print(
                    f"{nbytes:>7} B, expected {name:6}: {right} of {RUNS} (at least {RIGHT})"
                    f"  {verdict}",
                    flush=True,
                )
    targets.leave()


if __name__ == "__main__":
    main(float(sys.argv[1]))
