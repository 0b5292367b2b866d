"""`python faulty.py FAULT ARGUMENTS...`: mpiring with one fault planted in it.

The tests run it under mpirun, to show that the command line finds each kind of fault.
"""

import os
import signal
import sys
import time

from mpiring import algorithms, cli
from mpiring.schedule import Recv


def planted(change):
    """Put a changed ring in the place of ring."""
    ring = algorithms.ALGORITHMS["ring"]

    def schedule(rank, topology):
        return change(list(ring.schedule(rank, topology)))

    changed = algorithms.Algorithm(**{**vars(ring), "schedule": schedule})
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


def change_the_send_buffer():
    bench = sys.modules["mpiring.bench"]
    init = bench.allreduce_init

    class Changing:
        """A plan that changes the send buffer when it has run."""

        def __init__(self, plan, sendbuf):
            self.plan = plan
            self.sendbuf = sendbuf

        def __call__(self):
            self.plan()
            self.sendbuf[0] += 1

        def __getattr__(self, name):
            return getattr(self.plan, name)

    def init_changing(sendbuf, *arguments, algorithm, **options):
        plan = init(sendbuf, *arguments, algorithm=algorithm, **options)
        return Changing(plan, sendbuf) if algorithm == "ring" else plan

    bench.allreduce_init = init_changing


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


def interrupt_rank_1():
    def interrupt(*arguments):
        if MPI.COMM_WORLD.rank == 1:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    from mpi4py import MPI

    sys.modules["mpiring.bench"].poison = interrupt


def raise_everywhere():
    def fail(*arguments):
        raise ValueError("planted")

    sys.modules["mpiring.bench"].poison = fail


if __name__ == "__main__":
    import mpiring.bench  # noqa: F401  the faults are planted in it

    globals()[sys.argv[1]]()
    cli.main(sys.argv[2:])
