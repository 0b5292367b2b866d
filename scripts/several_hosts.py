"""Sample tree and auto beside native, and a ring in two orders, over links between hosts."""

import sys

import numpy as np
from mpi4py import MPI
from targets import Targets

import mpiring
from mpiring.communicator import private
from mpiring.implementation import mpi_library
from mpiring.noise import measure_noise
from mpiring.options import Options
from mpiring.sampling import Sampler, Sampling
from mpiring.stats import NEUTRAL_BAND, paired_speedup, summarise

NBYTES = 16 << 20
RATE = 125e6  # bytes per second, headers included
CALLS = {
    "tree": {
        "tree": ("tree", Options()),
        "auto": ("auto", Options()),
        "ring": ("ring", Options()),
        "native": ("native", Options()),
    },
    "order": {
        "ring, topology order": ("ring", Options()),
        "ring, rank order": ("ring", Options(ring_order="rank")),
    },
}
# By number of hosts: how many times the limit of its link tree and auto may take, and how many
# times as fast as native tree has to be.
OVER_LIMIT = {2: 1.15, 4: 1.25}
OVER_NATIVE = {2: 1.5}
OVER_RANK_ORDER = 1.6


def main(figures, seconds):
    """Print what was sampled, with targets, and leave with 1 where one is missed."""
    comm = MPI.COMM_WORLD
    nodes = len(private(comm).topology.nodes)
    limit_s = 2 * (nodes - 1) / nodes * NBYTES / RATE
    sendbuf = np.arange(NBYTES // 4, dtype="f4") * 1e-3 + comm.rank
    recvbuf = np.empty_like(sendbuf)
    plans = {
        name: mpiring.allreduce_init(sendbuf, recvbuf, algorithm=algorithm, options=options)
        for name, (algorithm, options) in CALLS[figures].items()
    }
    sampling = Sampling(time_limit_s=seconds)
    samples = Sampler(comm, sampling, 0, measure_noise(comm).tick_s).sample(plans)
    for plan in plans.values():
        plan.free()
    if comm.rank:
        return
    times = {name: taken.slowest.tolist() for name, taken in samples.items()}
    print(
        f"\n{mpi_library()}, {comm.size} ranks on {nodes} hosts, 16 MiB float32 sum; the limit of a"
        f" link of 1 Gbit/s is {limit_s * 1e3:.1f} ms"
    )
    for name, taken in times.items():
        summary = summarise(taken)
        low, high = summary.interval or (min(taken), max(taken))
        print(
            f"{name:20} {summary.median * 1e3:6.1f} ms ({low * 1e3:.1f}..{high * 1e3:.1f}),"
            f" {summary.median / limit_s:.2f} times the limit"
        )
    targets = Targets()
    for figure, target, met in _targets(figures, nodes, times, limit_s):
        print(f"  {figure}; {target}: {targets.judge(figure, met)}", flush=True)
    targets.leave()


def _targets(figures, nodes, times, limit_s):
    """Yield each figure that has a target here, the target, and whether it is met."""
    if figures == "order":
        yield _faster(times, "ring, topology order", "ring, rank order", OVER_RANK_ORDER)
        return
    most = OVER_LIMIT[nodes]
    for name in ("tree", "auto"):
        over = summarise(times[name]).median / limit_s
        yield f"{name} over the limit: {over:.2f}", f"at most {most}", over <= most
    if nodes in OVER_NATIVE:
        yield _faster(times, "tree", "native", OVER_NATIVE[nodes])


def _faster(times, name, other, target):
    speedup = paired_speedup(times[other], times[name], NEUTRAL_BAND)
    low, high = speedup.interval or (speedup.ratio, speedup.ratio)
    figure = f"{name} over {other}: {speedup.ratio:.2f} ({low:.2f}..{high:.2f}) times as fast"
    return figure, f"at least {target}", speedup.ratio >= target


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
