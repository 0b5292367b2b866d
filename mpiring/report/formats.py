"""A whole result as text for other programs: JSON, CSV, and columns of well-known benchmarks."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean

from mpiring.results import Point, Result

CSV_COLUMNS = (
    *("algorithm", "ran", "nbytes", "count", "dtype", "op", "in_place", "ranks"),
    *("repetitions", "batch", "median_s", "interval95_low_s", "interval95_high_s", "mean_s"),
    *("min_s", "max_s", "p90_s", "p99_s", "cv", "rank_mean_s", "fastest_rank_mean_s"),
    *("slowest_rank_mean_s", "slowest_rank", "algbw_GBps", "busbw_GBps", "speedup_vs_native"),
    *("speedup_interval95_low", "speedup_interval95_high", "verdict", "limit_s"),
    *("percent_of_limit", "noise_floor_s", "below_noise_floor", "noisy", "check", "max_ulp"),
    *("ranks_equal", "rounds", "bytes_sent_per_rank", "node_crossings", "note"),
)


def to_csv(result: Result) -> str:
    """Return a line for each point, below a header; what is not known is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for point in result.points:
        row = point.document()
        times, ranks = row["time_s"], row["rank_mean_s"]
        low, high = times["interval95"] or (None, None)
        slow, fast = row["speedup_interval95"] or (None, None)
        row |= {f"{name}_s": times[name] for name in ("median", "mean", "min", "max", "p90", "p99")}
        row |= {
            "repetitions": len(point.samples_s),
            "interval95_low_s": low,
            "interval95_high_s": high,
            "cv": times["cv"],
            "rank_mean_s": ranks["mean"],
            "fastest_rank_mean_s": ranks["fastest"],
            "slowest_rank_mean_s": ranks["slowest"],
            "slowest_rank": ranks["slowest_rank"],
            "speedup_interval95_low": slow,
            "speedup_interval95_high": fast,
            "check": {True: "ok", False: "wrong", None: ""}[point.check_ok],
            "max_ulp": point.max_ulp,
            "ranks_equal": point.ranks_equal,
        }
        writer.writerow(row)
    return text.getvalue()


def to_osu(result: Result) -> str:
    """Return the columns of the OSU benchmarks: means over the repetitions, in microseconds.

    Average, fastest and slowest are those of the ranks' means, as OSU's are.
    """
    return "".join(_osu_lines(result))


def _osu_lines(result: Result) -> Iterator[str]:
    for name, points in _by_algorithm(result).items():
        yield f"# MPI Allreduce Latency Test: {name}\n"
        yield f"{'# Size':<10}{'Avg Latency(us)':>18}{'Min Latency(us)':>18}"
        yield f"{'Max Latency(us)':>18}{'Iterations':>12}\n"
        for point in points:
            if point.rank_means_s:
                means = "".join(f"{mean * 1e6:>18.2f}" for mean in point.rank_means_s)
                yield f"{point.nbytes:<10}{means}{len(point.samples_s) * point.batch:>12}\n"


def to_nccl(result: Result) -> str:
    """Return the columns of nccl-tests: the median in microseconds, bandwidths in 10^9 B/s."""
    return "".join(_nccl_lines(result))


def _nccl_lines(result: Result) -> Iterator[str]:
    for name, points in _by_algorithm(result).items():
        yield f"# allreduce: {name}\n"
        yield f"#{'out-of-place':>74}{'in-place':>35}\n"
        columns = f"{'time':>8}{'algbw':>8}{'busbw':>8}{'#wrong':>7}"
        yield f"#{'size':>12}{'count':>14}{'type':>10}{'redop':>8}{'root':>8} {columns} {columns}\n"
        units = f"{'(us)':>8}{'(GB/s)':>8}{'(GB/s)':>8}{'':>7}"
        yield f"#{'(B)':>12}{'(elements)':>14}{'':>10}{'':>8}{'':>8} {units} {units}\n"
        for point in points:
            nothing = f"{'N/A':>8}{'N/A':>8}{'N/A':>8}{'N/A':>7}"
            times = f"{'N/A':>8}{'N/A':>8}{'N/A':>8}"
            if point.median_s is not None:
                times = f"{point.median_s * 1e6:8.2f}{point.algbw or 0:8.2f}{point.busbw or 0:8.2f}"
            wrong = {True: "0", False: "1", None: "N/A"}[point.check_ok]
            figures = f"{times}{wrong:>7}"
            sides = (nothing, figures) if point.in_place else (figures, nothing)
            yield f" {point.nbytes:12}{point.count:14} {_nccl_type(point):>9} {point.op:>7}{-1:8}"
            yield f" {sides[0]} {sides[1]}\n"
        known = [point.busbw for point in points if point.busbw is not None]
        if known:
            yield f"# Avg bus bandwidth    : {fmean(known):g}\n"


def _nccl_type(point: Point) -> str:
    names = {"float32": "float", "float64": "double", "float16": "half"}
    return names.get(point.dtype, point.dtype)


def _by_algorithm(result: Result) -> dict[str, list[Point]]:
    points: dict[str, list[Point]] = {}
    for point in result.points:
        points.setdefault(point.algorithm, []).append(point)
    return points


WITHOUT_NOTES = ("osu", "nccl")
"""Formats with no place for what was not timed, and why."""

FORMATS: Mapping[str, Callable[[Result], str]] = {
    "json": Result.to_json,
    "csv": to_csv,
    "osu": to_osu,
    "nccl": to_nccl,
}
