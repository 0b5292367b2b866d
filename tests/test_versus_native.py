"""What scripts/versus-native makes of results: each target beside its figure, and a status."""

import re
import sys
from pathlib import Path

import pytest
from command import run

from mpiring.report.files import write
from mpiring.results import COMPLETE, Point, Result

pytestmark = pytest.mark.pure

SCRIPT = Path(__file__).parent.parent / "scripts" / "versus_native.py"
AT = {
    "mpi_library": "MPICH 5.0.2", "ranks": 2, "cores_per_node": [2], "cpu_model": "a processor",
    "started": "2026-11-29T00:00:00+00:00", "mpiring": "0.1.0", "oversubscribed": False,
}  # fmt: skip
NBYTES = 64 << 10


def results(
    folder,
    oversubscribed=False,
    mpi="mpich",
    nbytes=NBYTES,
    limit=1,
    levels=("multiple", "single"),
    **times_us,
):
    """Files of one round, in which each algorithm has such a time; `single` is native's at single.

    `stored` is that of `shared` on node-shared arrays, `limit` that of copying, also in us.
    """
    kinds = {"ordinary": ("native", "auto", "ring"), "shared": ("native", "shared")}
    for kind, names in kinds.items():
        for level in levels:
            points = []
            for name in names:
                key = "stored" if name == "shared" else name
                time_us = (
                    times_us["single"] if (name, level) == ("native", "single") else times_us[key]
                )
                samples = tuple(time_us * 1e-6 * (1 + 0.001 * step) for step in range(8))
                points.append(
                    Point(name, nbytes, nbytes // 4, "float32", "sum", False, 2, samples,
                          ran="auto: ring" if name == "auto" else name, limit_s=limit * 1e-6)
                )  # fmt: skip
            at = AT | {"oversubscribed": oversubscribed}
            path = folder / f"{mpi}-{kind}-{level}-1.json"
            write(str(path), Result(at, {}, tuple(points), COMPLETE))


def judged(folder, table="", mpi="mpich"):
    return run([sys.executable, SCRIPT, folder, mpi, table])


def test_what_meets_its_targets_passes(tmp_path):
    results(tmp_path, native=100, single=90, auto=60, ring=60, stored=20)
    finished = judged(tmp_path, tmp_path / "t.md")
    assert finished.status == 0, finished.stderr
    assert "1.50 (" in finished.stdout, "against the better of both thread levels"
    assert "4.50 (" in finished.stdout
    assert finished.stdout.count("PASS") == 2
    assert "missed: none" in finished.stdout
    assert "| 64 KiB |" in (tmp_path / "t.md").read_text()


@pytest.mark.parametrize(
    ("slow", "missed"),
    [({"auto": 95}, "missed: auto at 64 KiB"), ({"stored": 31}, "missed: shared at 64 KiB")],
    ids=str,
)
def test_what_misses_a_target_fails(tmp_path, slow, missed):
    results(tmp_path, **{"native": 100, "single": 90, "auto": 60, "ring": 60, "stored": 20} | slow)
    finished = judged(tmp_path)
    assert finished.status == 1
    assert missed in finished.stdout


def test_with_more_ranks_than_cores_targets_are_lower_and_one_level_will_do(tmp_path):
    results(tmp_path, True, levels=["multiple"], native=100, auto=130, ring=60, stored=42)
    finished = judged(tmp_path)
    assert finished.status == 0, finished.stdout
    assert re.search(r"^64 KiB +100\.\d +- ", finished.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("nbytes", "slow", "missed"),
    [
        (8, {}, "none"),
        (8, {"auto": 101}, "auto beside comm.Allreduce"),
        (8, {"auto": 104}, "auto at 8 B, auto beside comm.Allreduce"),
        (8, {"single": 90}, "auto at 8 B"),
        (16 << 10, {"stored": 67}, "shared at 16 KiB"),
        (4 << 20, {}, "none"),
        (4 << 20, {"stored": 51, "limit": 60}, "shared at 4 MiB"),
        (4 << 20, {"limit": 44}, "shared beside the copy at 4 MiB"),
        (32 << 20, {}, "auto at 32 MiB"),
        (32 << 20, {"auto": 66}, "none"),
    ],
)
def test_each_size_has_targets_of_its_own(tmp_path, nbytes, slow, missed):
    times = {"native": 100, "single": 100, "auto": 100, "ring": 100, "stored": 40, "limit": 50}
    results(tmp_path, nbytes=nbytes, **times | slow)
    assert judged(tmp_path).stdout.splitlines()[-1] == f"missed: {missed}"


def test_intel_mpi_has_another_target_for_large_buffers(tmp_path):
    times = {"native": 100, "single": 100, "auto": 82, "ring": 82, "stored": 40, "limit": 50}
    results(tmp_path, mpi="impi", nbytes=32 << 20, **times)
    assert judged(tmp_path, mpi="impi").status == 0
