"""Time the preparation of plans, which is apart from all other figures: here, and of 64 ranks."""

from statistics import median
from time import perf_counter
from types import SimpleNamespace

import numpy as np
from mpi4py import MPI
from targets import Targets

import mpiring
from mpiring import choice, executor
from mpiring.algorithms import find
from mpiring.arrays import buffers, combine_for
from mpiring.topology import Level, Topology

REPEATS = 200
HERE = ("native", "ring", "recursive_doubling", "shared", "auto")
HERE_AT_MOST_US = 200
SIMULATED = ("ring", "tree", "recursive_doubling", "rabenseifner")
SIMULATED_AT_MOST_US = 20_000
SIMULATED_COMM = SimpleNamespace(  # its requests are made, of this process with itself
    rank=1,
    size=64,
    Send_init=lambda buffer, peer, tag: MPI.COMM_SELF.Send_init(buffer, 0, tag),
    Recv_init=lambda buffer, peer, tag: MPI.COMM_SELF.Recv_init(buffer, 0, tag),
)


def forget():
    """Drop what the plans before have left, so that the next one is the first of its kind."""
    choice._scheduled.cache_clear()
    executor._walk.cache_clear()


def here(name):
    """Return the medians in us of the slowest rank: of a first plan of 8 B, and of another one."""
    comm = MPI.COMM_WORLD
    sendbuf, recvbuf = np.ones(2, "f4"), np.empty(2, "f4")
    first, again = [], []
    for _ in range(REPEATS):
        forget()
        for times in (first, again):
            comm.Barrier()
            begin = perf_counter()
            plan = mpiring.allreduce_init(sendbuf, recvbuf, algorithm=name)
            times.append(comm.allreduce(perf_counter() - begin, MPI.MAX))
            plan.free()
    return median(first) * 1e6, median(again) * 1e6


def simulated(name):
    """Return the same of a plan of 64 KiB on many ranks, without what they tell each other."""
    comm = SIMULATED_COMM
    topology = Topology(comm.size, (Level("node", (tuple(range(comm.size)),)),))
    sendbuf, recvbuf = np.ones(1 << 14, "f4"), np.empty(1 << 14, "f4")
    first, again = [], []
    for _ in range(REPEATS // 10):
        forget()
        for times in (first, again):
            begin = perf_counter()
            schedule = choice._scheduled(
                find(name), topology, mpiring.Options(), sendbuf.size, sendbuf.itemsize
            )
            bound = buffers(sendbuf, recvbuf, in_place=False)
            combine = combine_for("sum", bound.work.dtype)
            prepared = executor.Prepared(name, schedule, comm.rank, bound, combine)
            plan = prepared.bind(comm, 0, prepared.pieces)
            times.append(perf_counter() - begin)
            plan.free()
    return median(first) * 1e6, median(again) * 1e6


def main():
    """Print a line for each algorithm, and leave with 1 where one is over the limit."""
    comm = MPI.COMM_WORLD
    targets = Targets()
    rows = [(f"{comm.size} ranks", name, *here(name), HERE_AT_MOST_US) for name in HERE]
    if comm.rank == 0:
        many = f"{SIMULATED_COMM.size} simulated"
        rows += [(many, name, *simulated(name), SIMULATED_AT_MOST_US) for name in SIMULATED]
        print(f"\n{'preparing a plan (us)':44} first   another  at most")
        for ranks, name, first, again, most in rows:
            verdict = targets.judge(name, first <= most)
            print(f"{ranks:16} {name:20} {first:12.1f} {again:9.1f} {most:8} {verdict}")
    targets.missed = comm.bcast(targets.missed)  # most are timed on rank 0 alone
    targets.leave()


if __name__ == "__main__":
    main()
