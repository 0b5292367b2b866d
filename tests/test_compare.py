"""Two results, point by point, in one process and as the commands that users run."""

import json

import numpy as np
import pytest
from command import mpiring
from test_results import point, result

from mpiring.compare import below, compare, differences
from mpiring.errors import UsageError


def samples(median, seed, number=60):
    spread = np.random.default_rng(seed).normal(1, 0.02, number).clip(0.9, 1.1)
    return tuple((median * spread).tolist())


def one(factor, seed, **changes):
    return result(point(samples=samples(1e-5 * factor, seed)), **changes)


@pytest.mark.parametrize(("factor", "verdict"), [(1, "tie"), (1.1, "slower"), (0.9, "faster")])
def test_verdicts(factor, verdict):
    (compared,) = compare(one(1, 1), one(factor, 2), band=0.05)
    assert compared.speedup.verdict == verdict
    assert compared.speedup.ratio == pytest.approx(1 / factor, rel=0.02)


def test_points_are_compared_each_with_its_own():
    old = result(point(nbytes=8), point(nbytes=64), point("naive", nbytes=8))
    new = result(point(nbytes=64), point("tree", nbytes=8), point(nbytes=8))
    compared = compare(old, new, band=0.05)
    assert [(c.old.algorithm, c.old.nbytes) for c in compared] == [("ring", 8), ("ring", 64)]
    assert all(c.old.nbytes == c.new.nbytes for c in compared)


@pytest.mark.parametrize(
    "changes", [{"ranks": 2}, {"dtype": "float64"}, {"op": "max"}, {"in_place": True}], ids=str
)
def test_what_cannot_be_compared_is_refused_unless_forced(changes):
    (name,) = changes
    old, new = result(point()), result(point(**changes))
    with pytest.raises(UsageError, match=f"differ in {name}: .*--force"):
        compare(old, new, band=0.05)
    assert len(compare(old, new, band=0.05, force=True)) == 1


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (result(point(nbytes=4)), "share no measured point"),
        (result(point(samples=())), "share no measured point"),
        (result(point(samples=(1e-6,))), "has one sample"),
        (result(point(samples=(0.0, 1e-6))), "has a sample of 0 s"),
    ],
)
def test_what_tells_nothing_is_refused(new, message):
    with pytest.raises(UsageError, match=message):
        compare(result(point()), new, band=0.05)


def test_equal_samples_compare():
    (compared,) = compare(
        result(point(samples=[2e-6] * 9)), result(point(samples=[1e-6] * 9)), band=0.05
    )
    assert compared.speedup.interval == (2, 2)


def test_what_is_below_a_factor_for_certain():
    compared = compare(one(1, 1), one(1.3, 2), band=0.05)
    assert below(compared, 0.9) == compared
    assert below(compared, 0.7) == []


def test_differences_of_the_environment():
    old = {"numpy": "2.0", "started": "then", "hosts": ["a"]}
    new = {"numpy": "2.1", "started": "now", "hosts": ["a"], "extra": 1}
    assert list(differences(old, new)) == [("extra", None, 1), ("numpy", "2.0", "2.1")]


@pytest.fixture(name="files")
def fixture_files(tmp_path):
    names = {"old": one(1, 1), "same": one(1, 3), "slow": one(1.3, 2, mpi_library="Open MPI 5")}
    for name, content in names.items():
        (tmp_path / f"{name}.json").write_text(content.to_json())
    (tmp_path / "broken.json").write_text("{")
    return tmp_path


COMMANDS = [
    (["old", "same"], 0, "tie"),
    (["old", "slow"], 0, "slower"),
    (["old", "slow", "--fail-below", "0.9"], 3, "1 of 1 points are surely below 0.9x"),
    (["old", "same", "--fail-below", "0.9"], 0, "0 of 1 points are surely below 0.9x"),
    (["old", "slow", "--fail-below", "0.5"], 0, "0 of 1"),
    (["old", "slow", "--band", "0.5"], 0, "tie"),
    (["old", "slow"], 0, "mpi_library: MPICH 5 -> Open MPI 5"),
    (["old", "broken"], 2, "broken.json: not JSON, or cut off"),
    (["old", "missing"], 2, "missing.json: No such file or directory"),
    (["old"], 2, "Missing argument 'NEW.json'"),
    (["old", "same", "--band", "-1"], 2, "-1"),
]


@pytest.mark.parametrize(("arguments", "status", "message"), COMMANDS, ids=str)
def test_the_command(files, arguments, status, message):
    arguments = [files / f"{a}.json" if a.isalpha() else a for a in arguments]
    finished = mpiring(0, "compare", *arguments)
    assert finished.status == status, finished.stderr
    assert message in (finished.stderr if status == 2 else finished.stdout)
    assert "Traceback" not in finished.stderr


PICTURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("ending", PICTURES)
def test_plots_are_pictures(files, ending):
    picture = files / f"p.{ending}"
    finished = mpiring(0, "plot", files / "old.json", files / "slow.json", "-o", picture)
    assert finished.status == 0, finished.stderr
    assert picture.read_bytes().startswith(PICTURES[ending])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["old.json", "-o", "p.gif"], "the ending has to be one of .png, .svg, .pdf"),
        (["broken.json", "-o", "p.png"], "broken.json: not JSON"),
        (["old.json"], "Missing option '-o'"),
        (["-o", "p.png"], "Missing argument"),
        (["empty.json", "-o", "p.png"], "no measured point"),
        (["old.json", "-o", "none/p.png"], "cannot be written"),
    ],
    ids=str,
)
def test_plots_that_cannot_be_drawn(files, arguments, message):
    (files / "empty.json").write_text(result(point(samples=())).to_json())
    arguments = [files / a if a.endswith("json") or "/" in a else a for a in arguments]
    finished = mpiring(0, "plot", *arguments)
    assert finished.status == 2
    assert message in finished.stderr
    assert "Traceback" not in finished.stderr


def test_what_bench_writes_follows_the_published_schema(tmp_path):
    from pathlib import Path

    from jsonschema import validate

    schema = json.loads((Path(__file__).parent.parent / "docs/results.schema.json").read_text())
    path = tmp_path / "r.json"
    for options in (["--dtype", "bfloat16"], ["--in-place", "--no-check"], []):
        finished = mpiring(2, "bench", "-s", "0,8,1001", "--repetitions", "6", "-o", path, *options)
        assert finished.status == 0, finished.stderr
        validate(json.loads(path.read_text()), schema)
    broken = json.loads(path.read_text())
    del broken["points"][0]["samples_s"]
    with pytest.raises(Exception, match="samples_s"):
        validate(broken, schema)
