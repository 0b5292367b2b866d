"""Tell what each part of an allreduce of 8 B takes, on rank 0, in calls that follow each other."""

from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
from mpi4py import MPI

import mpiring
from mpiring.implementation import mpi_library
from mpiring.trace import kind_of

NAMES = ("native", "native_persistent", "naive", "recursive_doubling", "ring", "shared", "auto")
KINDS = ("library", "start", "wait", "memory", "reduction", "copy")
BATCHES, CALLS = 30, 500


def whole(comm, call):
    """Return the us of a call, the median over batches of them."""
    batches = []
    for _ in range(BATCHES):
        comm.Barrier()
        begin = perf_counter()
        for _ in range(CALLS):
            call()
        batches.append((perf_counter() - begin) / CALLS)
    return 1e6 * median(batches)


def parts(comm, plan):
    """Return the us in the calls of a run, by kind: each the median over runs."""
    comm.Barrier()
    runs = [plan.traced(perf_counter) for _ in range(CALLS)]
    taken = dict.fromkeys(KINDS, 0.0)
    for samples in zip(*runs, strict=True):
        call = samples[0][0]
        taken[kind_of(call)] += 1e6 * median(after - before for _, before, after in samples)
    return taken


def clock_us():
    """Return what a look at the clock adds to each call of a run that is looked into."""
    looks = [perf_counter() for _ in range(CALLS)]
    return 1e6 * median(np.diff(looks))


def main():
    """Print a row for each algorithm."""
    comm = MPI.COMM_WORLD
    sendbuf, recvbuf = np.ones(2, "f4"), np.empty(2, "f4")
    arguments = (sendbuf, 2, MPI.FLOAT), (recvbuf, 2, MPI.FLOAT), MPI.SUM
    rows = [("comm.Allreduce", whole(comm, partial(comm.Allreduce, *arguments)), {})]
    for name in NAMES:
        with mpiring.allreduce_init(sendbuf, recvbuf, algorithm=name) as plan:
            called = name if name == plan.algorithm else f"{name}: {plan.algorithm}"
            rows.append((called, whole(comm, plan), parts(comm, plan)))
    if comm.rank == 0:
        print(f"{mpi_library()}, {comm.size} ranks, float32 sum of 8 B, us per call")
        print(f"{'':24}{'whole':>8}" + "".join(f"{kind:>10}" for kind in KINDS) + f"{'Python':>10}")
        for name, taken, by_kind in rows:
            known = "".join(f"{by_kind[kind]:10.2f}" if by_kind else " " * 10 for kind in KINDS)
            rest = f"{taken - sum(by_kind.values()):10.2f}" if by_kind else ""
            print(f"{name:24}{taken:8.2f}{known}{rest}")
        print(f"a look at the clock takes {clock_us():.2f}")


if __name__ == "__main__":
    main()
