"""Results as CSV, a line for each point."""

import csv
import io
from collections.abc import Sequence

from mpiring.results import Point

COLUMNS = (
    "algorithm",
    "nbytes",
    "count",
    "dtype",
    "op",
    "in_place",
    "ranks",
    "repetitions",
    "median_s",
    "mean_s",
    "min_s",
    "max_s",
    "algbw_GBps",
    "busbw_GBps",
    "speedup_vs_native",
    "check",
    "rounds",
    "bytes_sent_per_rank",
    "note",
)


def to_csv(points: Sequence[Point]) -> str:
    """Return the points with a header line; what is not known is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for point in points:
        row = point.document()
        row |= {f"{name}_s": value for name, value in row["time_s"].items()}
        row |= {"ranks": point.ranks, "repetitions": len(point.samples_s)}
        row["check"] = {True: "ok", False: "wrong", None: ""}[point.check_ok]
        writer.writerow(row)
    return text.getvalue()
