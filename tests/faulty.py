"""`python faulty.py FAULT ARGUMENTS...`: mpiring with one fault planted in it.

The tests run it under mpirun, to show that the command line finds each kind of fault.
"""

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
    from mpiring.executor import Plan

    run = Plan.__call__

    def run_and_change(self):
        run(self)
        if self.algorithm == "ring":
            sys._getframe(1).f_locals["self"].sendbuf[0] += 1

    Plan.__call__ = run_and_change


def raise_on_rank_1():
    from mpi4py import MPI

    def fail(*arguments):
        if MPI.COMM_WORLD.rank == 1:
            raise ValueError("planted")
        time.sleep(60)

    sys.modules["mpiring.bench"].poison = fail


def raise_everywhere():
    def fail(*arguments):
        raise ValueError("planted")

    sys.modules["mpiring.bench"].poison = fail


if __name__ == "__main__":
    import mpiring.bench  # noqa: F401  the faults are planted in it

    globals()[sys.argv[1]]()
    cli.main(sys.argv[2:])
