"""mpiring as a regression test of ReFrame, to drop into a centre's suite.

    reframe -C SETTINGS.py -c scripts/reframe/mpiring_check.py -r
    reframe ... -S num_tasks=128 -S num_tasks_per_node=64 -n 'mpiring_check.*algorithm=ring'

A test for each algorithm and size, on any system and environment where `mpiring` is on PATH: load
what it needs in the environment of the settings. It passes if all ranks were there and every result
was right, and if its performance is within the references of the system, where there are some.
"""

import json
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    parameter,
    performance_function,
    run_after,
    run_before,
    sanity_function,
    variable,
)

# What a system has to reach, with the shares that it may be below and above:
# {"cluster:partition": {("ring", "16MiB"): {"busbw": (11.5, -0.1, None, "GB/s")}}}
REFERENCES: dict[str, dict[tuple[str, str], dict[str, tuple]]] = {}


@rfm.simple_test
class mpiring_check(rfm.RunOnlyRegressionTest):
    """One algorithm at one size, beside MPI_Allreduce."""

    algorithm = parameter(["ring", "tree", "recursive_doubling", "rabenseifner"])
    size = parameter(["8", "64KiB", "16MiB"])
    options = variable(str, value="")
    """More options of mpiring bench, such as --topology FILE."""

    descr = "allreduce algorithms beside MPI_Allreduce"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    num_tasks = 4
    time_limit = "10m"
    executable = "mpiring"
    tags = {"mpi", "performance"}
    keep_files = ["result.json"]

    @run_after("init")
    def set_reference(self):
        """Take those of this algorithm and size."""
        self.reference = {
            system: points[self.algorithm, self.size]
            for system, points in REFERENCES.items()
            if (self.algorithm, self.size) in points
        }

    @run_before("run")
    def set_options(self):
        """Measure, and write a result file."""
        asked = ["-a", self.algorithm, "-s", self.size, "-o", "result.json"]
        self.executable_opts = ["bench", "-q", *asked, *self.options.split()]

    @sn.deferrable
    def result(self):
        """Return the result document."""
        return json.loads((Path(self.stagedir) / "result.json").read_text())

    @sn.deferrable
    def measured(self):
        """Return the point of the algorithm."""
        return next(p for p in self.result()["points"] if p["algorithm"] == self.algorithm)

    @sanity_function
    def every_result_is_right(self):
        """All ranks were there, the run came to its end, and the check found nothing wrong."""
        said = (Path(self.stagedir) / sn.evaluate(self.stderr)).read_text().strip()
        # Some batch systems tell ReFrame no status: it is None then.
        left = sn.assert_in(self.job.exitcode, (0, None), "mpiring left with {0}: " + said)
        sn.evaluate(left)  # first: without a result there is nothing else to look at
        result = self.result()
        checks = [point["check"]["ok"] for point in result["points"]]
        return sn.all(
            [
                sn.assert_eq(result["environment"]["ranks"], self.num_tasks, "{0} ranks, not {1}"),
                sn.assert_eq(result["status"], "complete"),
                sn.assert_eq(checks, [True, True], "not right: {0}"),
            ]
        )

    @performance_function("us")
    def time(self):
        """Median."""
        return self.measured()["time_s"]["median"] * 1e6

    @performance_function("GB/s")
    def busbw(self):
        """Of the median."""
        return self.measured()["busbw_GBps"]

    @performance_function("x")
    def speedup_vs_native(self):
        """How many times as fast as MPI_Allreduce."""
        return self.measured()["speedup_vs_native"]
