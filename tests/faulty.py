"""`python faulty.py FAULT ARGUMENTS...`: mpiring with one fault planted in it.

The tests run it under mpirun, to show that the command line finds each kind of fault.
"""

import os
import signal
import sys
import time
from dataclasses import replace

from mpiring import algorithms, cli
from mpiring.schedule import Recv


def planted(change):
    """Put a changed ring in the place of ring."""
    ring = algorithms.ALGORITHMS["ring"]

    def schedule(topology, options):
        right = ring.schedule(topology, options)
        return replace(right, rounds=lambda rank: change(list(right.rounds(rank))))

    changed = replace(ring, schedule=schedule)
    algorithms.ALGORITHMS = {**algorithms.ALGORITHMS, "ring": changed}
    sys.modules["mpiring.bench"].ALGORITHMS = algorithms.ALGORITHMS


def skip_the_last_chunk():
    planted(lambda rounds: rounds[:-1])


def add_twice():
    planted(
        lambda rounds: [
            tuple(s._replace(reduce=True) if isinstance(s, Recv) else s for s in steps)
            for steps in rounds
        ]
    )


def return_the_input():
    planted(lambda rounds: [])


def after_each_run_of_ring(action):
    """Let `action` have the buffers, each time that a plan of ring has run."""
    bench = sys.modules["mpiring.bench"]
    init = bench.allreduce_init

    class Changing:
        def __init__(self, plan, buffers):
            self.plan = plan
            self.buffers = buffers

        def __call__(self):
            self.plan()
            action(*self.buffers)

        def __getattr__(self, name):
            return getattr(self.plan, name)

    def init_changing(*arguments, algorithm, **options):
        plan = init(*arguments, algorithm=algorithm, **options)
        return Changing(plan, arguments[:2]) if algorithm == "ring" else plan

    bench.allreduce_init = init_changing


def change_the_send_buffer():
    def change(sendbuf, recvbuf):
        sendbuf[0] += 1

    after_each_run_of_ring(change)


def round_worse_on_rank_1():
    """Let one float32 be 16 units of the last place off, where it is no whole number."""
    from mpi4py import MPI

    def change(sendbuf, recvbuf):
        if MPI.COMM_WORLD.rank == 1 and recvbuf[0] % 1:
            recvbuf[:1].view("u4")[:] ^= 16

    after_each_run_of_ring(change)


def change_the_send_buffer_and_skip_the_last_chunk():
    change_the_send_buffer()
    skip_the_last_chunk()


def raise_on_rank_1():
    from mpi4py import MPI

    def fail(*arguments):
        if MPI.COMM_WORLD.rank == 1:
            raise ValueError("planted")
        time.sleep(60)

    sys.modules["mpiring.bench"].poison = fail


def signal_rank_1():
    """At the second size; the test names the signal."""
    from mpi4py import MPI

    bench = sys.modules["mpiring.bench"]
    poison = bench.poison

    def poison_and_signal(recvbuf, expected):
        if MPI.COMM_WORLD.rank == 1 and recvbuf.nbytes == 64:
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))
        poison(recvbuf, expected)

    bench.poison = poison_and_signal


def take_long():
    """In the check of each algorithm at each size, as long as the test says."""
    bench = sys.modules["mpiring.bench"]
    poison = bench.poison

    def poison_late(*arguments):
        time.sleep(float(os.environ["TAKES_S"]))
        poison(*arguments)

    bench.poison = poison_late


def interrupt_rank_1_twice():
    def interrupt(*arguments):
        if MPI.COMM_WORLD.rank == 1:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    from mpi4py import MPI

    sys.modules["mpiring.bench"].poison = interrupt


def miscount():
    """What the plan of ring says that it handed to MPI is one element more."""
    from mpiring import executor

    class Miscounting(executor.Plan):
        def __init__(self, algorithm, *arguments, traffic=None, **options):
            if algorithm == "ring":
                traffic = traffic._replace(elements_sent=traffic.elements_sent + 1)
            super().__init__(algorithm, *arguments, traffic=traffic, **options)

    executor.Plan = Miscounting


def tell_rank_1_of_more_ranks():
    """By a launcher's variables, as they may be on one host alone."""
    from mpi4py import MPI

    from mpiring.launcher import LAUNCHERS

    if MPI.COMM_WORLD.rank == 1:
        for launcher in LAUNCHERS:
            os.environ |= {launcher.rank: "1", launcher.size: "4"}


def set_the_clock_of_rank_1_ahead():
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 1:
        sys.modules["mpiring.cli.bench"].time = lambda: time.time() + 10_000


def be_late_on_rank_1():
    """Before its first round, in each traced run."""
    from mpi4py import MPI

    from mpiring.plan import Plan

    traced = Plan.traced

    def traced_late(plan, now):
        if MPI.COMM_WORLD.rank == 1:
            time.sleep(0.1)
        return traced(plan, now)

    Plan.traced = traced_late


def raise_everywhere():
    def fail(*arguments):
        raise ValueError("planted")

    sys.modules["mpiring.bench"].poison = fail


if __name__ == "__main__":
    import mpiring.bench  # noqa: F401  the faults are planted in it

    globals()[sys.argv[1]]()
    cli.main(sys.argv[2:])
