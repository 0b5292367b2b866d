"""Points and results of runs that are made up."""

import numpy as np

from mpiring.results import Point, Result, with_native


def point(algorithm="ring", nbytes=1024, samples=(2e-6, 3e-6, 4e-6), **changes):
    common = {
        "count": nbytes // 4,
        "dtype": "float32",
        "op": "sum",
        "in_place": False,
        "ranks": 4,
        "rank_means_s": (2.5e-6, 2e-6, 3e-6),
        "slowest_rank": 3,
        "check_ok": True,
        "max_ulp": 1.5,
        "ranks_equal": True,
        "limit_s": 1e-6,
        "ran": algorithm,
        "rounds": 6,
        "bytes_sent_per_rank": 1536,
        "node_crossings": 2.5,
    }
    return Point(algorithm, nbytes, samples_s=tuple(samples), **{**common, **changes})


def result(*points, status="complete", **environment):
    points = points or with_native((point(), point("native", samples=(4e-6, 6e-6, 8e-6))))
    environment = {"ranks": 4, "nodes": [[0, 1, 2, 3]], "mpi_library": "MPICH 5", **environment}
    config = {"dtype": "float32", "op": "sum", "in_place": False}
    return Result(environment, config, tuple(points), status)


def samples(median, seed, number=60):
    spread = np.random.default_rng(seed).normal(1, 0.02, number).clip(0.9, 1.1)
    return tuple((median * spread).tolist())
