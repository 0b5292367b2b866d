"""Two results, point by point, in one process and as the commands that users run."""

import json
import re
from contextlib import suppress
from dataclasses import replace

import pytest
from command import assert_refused, mpiring
from points import point, result, samples

from mpiring.compare import Missing, compare, differences
from mpiring.errors import UsageError
from mpiring.report.compared import compared_table, missing_lines
from mpiring.report.formats import to_csv
from mpiring.report.plain import render
from mpiring.report.plot import crossovers, draw, limit_lines, measured_lines, plot
from mpiring.report.points import PointsTable, notes
from mpiring.results import Result, parse, with_native

pytestmark = pytest.mark.pure


def one(factor, seed, **changes):
    return result(point(samples=samples(1e-5 * factor, seed)), **changes)


@pytest.mark.parametrize(("factor", "verdict"), [(1, "tie"), (1.1, "slower"), (0.9, "faster")])
def test_verdicts(factor, verdict):
    (compared,) = compare(one(1, 1), one(factor, 2), band=0.05).points
    assert compared.speedup.verdict == verdict
    assert compared.speedup.ratio == pytest.approx(1 / factor, rel=0.02)


@pytest.mark.parametrize(
    ("factor", "floors", "verdict", "fails"),
    [
        (1.5, (0, 0), "slower", True),
        (1.5, (1.2e-5, 0), "slower", True),  # it took 1.2e-5 at most, and takes more now
        (1.5, (0, 2e-5), "unknown", False),
        (1.5, (2e-5, 2e-5), "unknown", False),
        (0.5, (0, 0), "faster", False),
        (0.5, (0, 2e-5), "unknown", False),
        (0.5, (2e-5, 0), "unknown", False),
        (1, (2e-5, 0), "unknown", False),
        (1, (0, 2e-5), "unknown", False),
    ],
)
def test_a_time_below_its_noise_floor_has_no_verdict(factor, floors, verdict, fails):
    sides = (one(1, 1), one(factor, 2))
    old, new = (
        result(*(replace(p, noise_floor_s=floor) for p in side.points))
        for side, floor in zip(sides, floors, strict=True)
    )
    compared = compare(old, new, band=0.05)
    assert compared.points[0].speedup.verdict == verdict
    assert bool(compared.below(0.9)) == fails


def test_points_are_compared_each_with_its_own():
    old = result(point(nbytes=8), point(nbytes=64), point("naive", nbytes=8))
    new = result(point(nbytes=64), point("tree", nbytes=8), point(nbytes=8))
    compared = compare(old, new, band=0.05).points
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
    assert len(compare(old, new, band=0.05, force=True).points) == 1


NOT_AVAILABLE = point(samples=(), check_ok=None, note="n/a: no datatype")
WRONG = point(samples=(), check_ok=False, note="WRONG: rank 1: 2 of 3 elements are wrong")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (point(), point(nbytes=4), "share no measured point"),
        (NOT_AVAILABLE, NOT_AVAILABLE, "share no measured point"),
        (point(), point(samples=(0.0, 1e-6)), "has a sample of 0 s"),
    ],
)
def test_what_tells_nothing_is_refused(old, new, message):
    with pytest.raises(UsageError, match=message):
        compare(result(old), result(new), band=0.05)


def test_few_samples_are_compared_without_a_verdict():
    few = result(point(samples=(1e-6, 2e-6)))
    for old, new in ((few, one(1, 1)), (one(1, 1), few)):
        (compared,) = compare(old, new, band=0.05).points
        assert compared.speedup.interval is None
        assert compared.speedup.verdict == "unknown"
        assert compare(old, new, band=0.05).below(1e9) == []


OTHER = point("naive")


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ([OTHER], [OTHER], []),
        ([OTHER, point()], [OTHER], [("new", "not measured")]),
        ([OTHER, point()], [OTHER, NOT_AVAILABLE], [("new", NOT_AVAILABLE.note)]),
        ([OTHER, point()], [OTHER, WRONG], [("new", WRONG.note)]),
        ([OTHER], [OTHER, WRONG], [("new", WRONG.note)]),
        ([OTHER, WRONG], [OTHER, WRONG], [("new", WRONG.note)]),
        ([OTHER, point()], [OTHER, point(check_ok=False)], [("new", "WRONG")]),
        ([point()], [WRONG], [("new", WRONG.note)]),
        ([OTHER], [OTHER, point()], [("old", "not measured")]),
        ([OTHER, WRONG], [OTHER, point()], [("old", WRONG.note)]),
        ([OTHER, NOT_AVAILABLE], [OTHER, NOT_AVAILABLE], []),
        ([OTHER, NOT_AVAILABLE], [OTHER], []),
        ([OTHER], [OTHER, NOT_AVAILABLE], []),
    ],
)
def test_what_has_no_time_on_one_side_is_told_with_the_reason(old, new, missing):
    comparison = compare(result(*old), result(*new), band=0.05)
    assert comparison.missing == tuple(Missing("ring", 1024, *expected) for expected in missing)
    assert comparison.lost == [m for m in comparison.missing if m.side == "new"]


def test_equal_samples_compare():
    twice, once = (result(point(samples=[time] * 9)) for time in (2e-6, 1e-6))
    (compared,) = compare(twice, once, band=0.05).points
    assert compared.speedup.interval == (2, 2)


def test_what_is_below_a_factor_for_certain():
    compared = compare(one(1, 1), one(1.3, 2), band=0.05)
    assert compared.below(0.9) == list(compared.points)
    assert compared.below(0.7) == []


def test_differences_of_the_circumstances():
    environment = {
        "numpy": "2.0",
        "started": "then",
        "hosts": ["a"],
        "variables": {"UCX_TLS": "tcp"},
    }
    config = {"sizes": [8], "check": True, "sampling": {"sync": "barrier", "batch": None}}
    old = Result(environment, config)
    new = Result(
        {**environment, "numpy": "2.1", "started": "now", "extra": 1, "variables": {"FI_A": "b"}},
        {**config, "sizes": [16], "sampling": {"sync": "window", "batch": None}},
    )
    assert list(differences(old, old)) == []
    assert list(differences(old, new)) == [
        ("FI_A", None, "b"),
        ("UCX_TLS", "tcp", None),
        ("extra", None, 1),
        ("numpy", "2.0", "2.1"),
        ("sync", "barrier", "window"),
    ]


@pytest.mark.parametrize(("ranks", "said"), [(1, "MPICH 5, 1 rank, "), (4, "MPICH 5, 4 ranks, ")])
def test_the_title_of_a_picture_counts_ranks(ranks, said):
    above, _ = draw([("r", result(point(ranks=ranks), ranks=ranks))]).axes
    assert said in above.get_title("left")


def test_lists_of_all_ranks_are_not_printed_whole(tmp_path):
    lists = [[f"{name}{rank}" for rank in range(8192)] for name in "ab"]
    few, many = (
        one(1, seed, ranks_of=names, nodes=[[0]] * (1 + seed)) for seed, names in enumerate(lists)
    )
    for name, each in (("few.json", few), ("many.json", many)):
        (tmp_path / name).write_text(each.to_json())
    for command in ("compare", "scaling"):
        finished = mpiring(0, command, "few.json", "many.json", cwd=tmp_path)
        assert "ranks_of: ['a0', 'a1'" in finished.stdout
        assert max(map(len, finished.stdout.splitlines())) < 200
    sampled = replace(few, config={**few.config, "options": lists[0]})
    with pytest.raises(UsageError, match=r"its options is .*'a0'.*, that of this run") as raised:
        replace(few, config={**few.config, "options": lists[1]}).resume(sampled, "f", [8], ["ring"])
    assert len(str(raised.value)) < 200


@pytest.fixture(name="files")
def fixture_files(tmp_path):
    names = {"old": one(1, 1), "same": one(1, 3), "slow": one(1.3, 2, mpi_library="Open MPI 5")}
    naive = point("naive", samples=samples(1e-5, 4))
    names["two"] = result(*one(1, 1).points, naive, replace(naive, nbytes=4096))
    names["wrong"] = result(
        *one(1, 3).points, *(replace(WRONG, algorithm="naive", nbytes=n) for n in (1024, 4096))
    )
    names["below"] = result(*(replace(p, noise_floor_s=2e-5) for p in one(1, 1).points))
    names["all-wrong"] = result(WRONG)
    names["few"] = result(point(samples=(1e-5, 1.1e-5)))
    for name, content in names.items():
        (tmp_path / f"{name}.json").write_text(content.to_json())
    (tmp_path / "broken.json").write_text("{")
    return tmp_path


COMMANDS = [
    (["old", "same"], 0, "tie"),
    (["old", "slow"], 0, "slower"),
    (
        ["old", "slow", "--fail-below", "0.9"],
        3,
        "below 0.9x with the whole interval: 1 of 1 point;",
    ),
    (
        ["old", "same", "--fail-below", "0.9"],
        0,
        "below 0.9x with the whole interval: 0 of 1 point;",
    ),
    (["old", "slow", "--fail-below", "0.9"], 3, "repeat both sides in turn"),
    (["old", "slow", "--fail-below", "0.5"], 0, "0 of 1"),
    (["below", "old"], 0, "ring at 1 KiB: old time below the noise floor of 20.0 us"),
    (["old", "below"], 0, "ring at 1 KiB: new time below the noise floor of 20.0 us"),
    (["old", "slow", "--band", "0.5"], 0, "tie"),
    (["old", "slow"], 0, "mpi_library: MPICH 5 -> Open MPI 5"),
    (["two", "old"], 0, "naive at 1 KiB, 4 KiB: no time in the new result: not measured"),
    (["two", "wrong"], 0, f"naive at 1 KiB, 4 KiB: no time in the new result: {WRONG.note}"),
    (["old", "two", "--fail-below", "0.9"], 0, "no time in the old result: not measured"),
    (["two", "old", "--fail-below", "0.9"], 3, "0 of 1 point; lost or wrong: 2\n"),
    (["two", "wrong", "--fail-below", "0.9"], 3, "lost or wrong: 2\n"),
    (["old", "wrong", "--fail-below", "0.9"], 3, "lost or wrong: 2\n"),
    (["old", "all-wrong", "--fail-below", "0.9"], 3, "0 of 0 points; lost or wrong: 1\n"),
    (["old", "few"], 0, "-   unknown"),
    (["old", "broken"], 2, "broken.json: not JSON, or cut off"),
    (["old", "missing"], 2, "missing.json: No such file or directory"),
    (["old"], 2, "Missing argument 'NEW.json'"),
    (["old", "same", "--band=-1"], 2, "-1.0 is not in the range"),
    (["old", "same", "--band=2"], 2, "2.0 is not in the range"),
    (["old", "same", "--band=nan"], 2, "nan is not a finite number"),
    (["old", "same", "--band=inf"], 2, "inf is not in the range"),
    (["old", "same", "--fail-below=nan"], 2, "nan is not a finite number"),
    (["old", "same", "--fail-below=inf"], 2, "inf is not a finite number"),
    (["old", "same", "--fail-below=0"], 2, "0.0 is not in the range"),
]


@pytest.mark.parametrize(("arguments", "status", "message"), COMMANDS, ids=str)
def test_the_command(files, arguments, status, message):
    arguments = [files / f"{a}.json" if a[0].isalpha() else a for a in arguments]
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
    assert_refused(finished, message)


def sized(algorithm, times, number=9, **changes):
    """Points of 1, 2, 4... KiB that take so many microseconds each; none where it is None."""
    return [
        point(algorithm, 1024 << index, samples=[time * 1e-6] * number, **changes)
        for index, time in enumerate(times)
        if time is not None
    ]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"ring": (1, 2, 9), "naive": (2, 3, 4)}, [(4096, "naive")]),
        ({"ring": (1, None, 3), "naive": (2, 3, 4)}, []),
        ({"ring": (1, None, 9), "naive": (2, 3, 4)}, [(4096, "naive")]),
        ({"ring": (1, 2), "naive": (2, 1), "tree": (3, 3)}, [(2048, "naive")]),
        ({"ring": (None, 2), "naive": (2, 1)}, []),
        ({"ring": (1, 1), "naive": (1, 1)}, []),
    ],
    ids=str,
)
def test_a_crossover_needs_the_time_of_both(times, expected):
    lines = measured_lines(
        [("r", result(*(p for name in times for p in sized(name, times[name]))))]
    )
    assert [(size, line.label) for size, line in crossovers(lines)] == expected


def test_no_crossover_without_an_interval_of_the_fastest_so_far():
    few = point("ring", 2048, samples=[9e-6] * 5)
    measured = result(*sized("ring", (1,)), few, *sized("naive", (2, 3)))
    assert list(crossovers(measured_lines([("r", measured)]))) == []


def test_lines_of_several_files_can_be_told_apart():
    measured = result(*sized("ring", (1, 2)), *sized("native", (2, 3)))
    slower = result(*sized("ring", (2, 4), limit_s=2e-6), *sized("native", (4, 6), limit_s=2e-6))
    figure = draw([("a", measured), ("b", slower)])
    above, under = figure.axes
    assert above.get_yscale() == under.get_yscale() == "log"
    lines = {line.get_label(): line for line in above.get_lines()}
    assert list(lines) == [
        *("ring (a)", "native (a)", "ring (b)", "native (b)"),
        *("the machine's limit (a)", "the machine's limit (b)"),
    ]
    looks = [(line.get_color(), line.get_linestyle()) for line in lines.values()]
    assert len(set(looks)) == len(looks)
    assert list(lines["the machine's limit (b)"].get_ydata()) == [2, 2]


def test_the_limits_line_ends_where_it_is_below_the_noise_floor():
    measured = result(
        *(point(nbytes=n, limit_s=n * 1e-9, noise_floor_s=2e-6) for n in (1024, 2048, 4096))
    )
    batched = replace(measured, points=(*measured.points, point("native", limit_s=1e-6)))
    for drawn in (measured, batched):
        (limit,) = limit_lines([("r", drawn)])
        assert [p.nbytes for p in limit.points] == [2048, 4096]


def test_one_rank_has_no_bandwidth_to_draw(tmp_path):
    alone = result(point(ranks=1), point("native", ranks=1))
    plot([("r", alone)], str(tmp_path / "p.svg"))


def test_names_are_no_formulas_and_may_be_long(tmp_path):
    measured = result(*sized("ring", (1, 9)), *sized("naive", (2, 3)), mpi_library="$x$^" * 999)
    plot([("$x$^" * 99, measured), ("$_", measured)], str(tmp_path / "p.svg"))


def test_files_of_one_name_are_told_apart_by_their_paths(files):
    (files / "other").mkdir()
    (files / "other/old.json").write_text((files / "slow.json").read_text())
    picture = files / "p.svg"
    finished = mpiring(0, "plot", "old.json", "other/old.json", "-o", picture, cwd=files)
    assert finished.status == 0, finished.stderr
    for label in ("ring (old.json)", "ring (other/old.json)"):
        assert f"<!-- {label} -->" in picture.read_text()


BEYOND_FLOAT = "1e999, put in as text"
DAMAGE = (None, "x", -1, 0, BEYOND_FLOAT, [], {}, True, 10**400)


def places(value, path=()):
    """Every place of a document, as the keys that lead there."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def damaged(document, place, value):
    copy = json.loads(json.dumps(document))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return json.dumps(copy).replace(json.dumps(BEYOND_FLOAT), "1e999")


def uses(good, read, path):
    """What the commands do with a result that they have read, each apart."""
    yield lambda: show(compare(good, read, band=0.05))
    yield lambda: show(compare(read, good, band=0.05, force=True))
    yield lambda: [*differences(good, read), *differences(read, good)]
    yield lambda: list(notes(read.points))
    if read.points:
        yield lambda: PointsTable([1024], ["ring"]).rows(read.points)
    yield lambda: good.resume(read, "r.json", [1024], ["ring"])
    yield lambda: [replace(read, environment={}, config={}).to_json(), to_csv(read)]
    if read.points != good.points:
        yield lambda: plot([("r", read)], path)


def show(comparison):
    if comparison.points:
        render(compared_table(comparison.points))
    list(missing_lines(comparison))


def test_a_damaged_file_is_refused_or_does_no_harm(tmp_path):
    points = point(samples=[2e-6] * 7), point("native", samples=[3e-6] * 7)
    good = result(*with_native(points), variables={"UCX_TLS": "tcp"}, topology={"levels": []})
    good = replace(good, config={**good.config, "sampling": {"sync": "barrier", "batch": None}})
    good = parse(good.to_json(), "good.json")
    document = json.loads(good.to_json())
    refused = harmless = 0
    said = set()
    for place in places(document):
        for value in DAMAGE:
            try:
                read = parse(damaged(document, place, value), "r.json")
            except UsageError as error:
                said.add(str(error))
                refused += 1
                continue
            if read == good:  # of what is derived nothing is read
                continue
            harmless += 1
            for use in uses(good, read, str(tmp_path / "p.svg")):
                with suppress(UsageError):
                    use()
    pythons = re.compile(r"\wError|mapping|None|True|subscriptable")
    assert not [text for text in said if pythons.search(text)]
    assert refused > 200
    assert harmless > 50


def test_what_bench_writes_follows_the_published_schema(tmp_path):
    from pathlib import Path

    from jsonschema import validate

    schema = json.loads((Path(__file__).parent.parent / "docs/results.schema.json").read_text())
    path = tmp_path / "r.json"
    for options in (["--dtype", "bfloat16"], ["--in-place", "--no-check"], []):
        finished = mpiring(2, "bench", "-s", "0,8,1001", "--repetitions", "6", "-o", path, *options)
        assert finished.status == 0, finished.stderr
        validate(json.loads(path.read_text()), schema)
    assert mpiring(2, "bench", "-s", "16", "--resume", path).status == 0
    validate(json.loads(path.read_text()), schema)
    broken = json.loads(path.read_text())
    del broken["points"][0]["samples_s"]
    with pytest.raises(Exception, match="samples_s"):
        validate(broken, schema)
