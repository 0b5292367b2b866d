"""Documents that are written are read again; anything else is one clear error."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from points import point, result

from mpiring.errors import UsageError
from mpiring.report.files import ResultFile
from mpiring.report.formats import to_csv
from mpiring.report.points import PointsTable, notes
from mpiring.results import POINT_FIELDS, parse, with_native

pytestmark = pytest.mark.pure


def test_what_is_written_is_read_again():
    written = result()
    assert parse(written.to_json(), "r.json") == written


def test_a_point_without_times_is_read_again():
    nothing = point(samples=(), rank_means_s=None, slowest_rank=None, check_ok=False, max_ulp=None)
    written = result(nothing, status="interrupted")
    again = parse(written.to_json(), "r.json")
    assert again == written
    assert again.points[0].document()["time_s"]["median"] is None
    assert again.wrong == again.points


def test_figures_of_a_point():
    ring, native = result().points
    assert ring.median_s == 3e-6
    assert ring.algbw == pytest.approx(1024 / 3e-6 / 1e9)
    assert ring.busbw == pytest.approx(1.5 * ring.algbw)
    assert ring.speedup.ratio == 2
    assert ring.speedup.verdict == "unknown"  # three samples have no interval
    assert native.speedup.ratio == 1
    assert ring.percent_of_limit == pytest.approx(100 / 3)
    assert not ring.below_noise_floor
    assert point(noise_floor_s=5e-6).below_noise_floor


@pytest.mark.parametrize(
    ("floor_s", "native_floor_s", "verdict"),
    [(0, 0, "faster"), (2e-6, 0, "unknown"), (0, 2e-5, "unknown"), (1e-6, 1e-5, "faster")],
)
def test_a_time_below_its_noise_floor_has_no_verdict(floor_s, native_floor_s, verdict):
    native = point("native", samples=[1e-5] * 9, noise_floor_s=native_floor_s)
    points = with_native((point(samples=[1e-6] * 9, noise_floor_s=floor_s), native))
    ring, _ = parse(result(*points).to_json(), "r.json").points
    assert ring.document()["verdict"] == ring.speedup.verdict == verdict
    assert ring.speedup.ratio == pytest.approx(10)
    assert PointsTable([1024], ["ring"]).rows([ring]).splitlines()[-1].split()[-2] == verdict
    below = {p.algorithm for p in points if p.below_noise_floor}
    assert {note.split(":")[0] for note in notes(points)} == below
    assert all("so there is no verdict" in note for note in notes(points))


def test_nothing_that_is_moved_has_no_limit():
    assert point(nbytes=0, samples=[2e-6], limit_s=1e-6).percent_of_limit is None


@pytest.mark.parametrize(("floor_s", "percent"), [(1e-6, 50), (1.1e-6, None)])
def test_a_limit_below_the_noise_floor_is_no_limit(floor_s, percent):
    """At a few bytes it is the time of a call, whatever the machine can move."""
    measured = point(samples=[2e-6], limit_s=1e-6, noise_floor_s=floor_s)
    assert measured.percent_of_limit == percent
    assert measured.document()["limit_s"] == 1e-6


@pytest.mark.parametrize("samples", [(0.0,), (0.0, 0.0), (1e-6,)])
def test_times_of_nothing_divide_by_nothing(samples):
    written = result(*with_native((point(samples=samples), point("native", samples=samples))))
    parse(written.to_json(), "r.json")


DAMAGED = {
    "a number for nodes": (
        result(nodes=5).to_json(),
        "damaged: nodes is 5 instead of a list$",
    ),
    "a number for levels": (
        result(topology={"levels": [5]}).to_json(),
        r"damaged: levels\[0\] is 5 instead of an object$",
    ),
    "other ranks": (
        result(point(ranks=3), ranks=2).to_json(),
        "damaged: ring has 3 ranks, the environment 2$",
    ),
    "nothing": ("", "not JSON, or cut off"),
    "cut off": (result().to_json()[:-40], "not JSON, or cut off"),
    "infinity": (result().to_json().replace("4e-06", "Infinity"), "not JSON"),
    "a list": ("[1]", "not a result of mpiring"),
    "foreign": ('{"schema": 7}', "not a result of mpiring"),
    "no schema": ("{}", "not a result of mpiring"),
    "newer": (
        result().to_json().replace("results/1", "results/2"),
        "its schema is mpiring.results/2",
    ),
    "deep": ("[" * 100000, "not JSON"),
    "no points": (
        '{"schema": "mpiring.results/1", "environment": {}, "config": {}, "status": "complete"}',
        "damaged: points is missing$",
    ),
    "points by name": (
        result().to_json().split('"points"')[0] + '"points": {}}',
        "damaged: points is {} instead of a list$",
    ),
    "a point twice": (
        result(point(), point(nbytes=8), point()).to_json(),
        r"damaged: points\[2\]: ring at 1024 bytes is there twice$",
    ),
    "truth for a sample": (
        result().to_json().replace("2e-06", "true"),
        r"damaged: points\[0\]: \w+ is true instead of a number$",
    ),
    "no config": (
        '{"schema": "mpiring.results/1", "environment": {}}',
        "damaged: config is missing$",
    ),
    "a text for points": (
        '{"schema": "mpiring.results/1", "points": "abc", "environment": {}, "config": {}}',
        "damaged",
    ),
    "no samples": (result().to_json().replace('"samples_s"', '"x"'), "damaged"),
    "a negative size": (
        result().to_json().replace('"nbytes": 1024', '"nbytes": -1'),
        r"damaged: points\[0\]: nbytes is -1, which is out of bounds$",
    ),
    "a time beyond all": (
        result().to_json().replace("4e-06", "1e308"),
        "damaged: .* out of bounds",
    ),
    "another end": (result().to_json().replace("complete", "done"), "damaged: .*status is 'done'"),
    "a time too long for a float": (result().to_json().replace("4e-06", "1" * 400), "damaged"),
    "a time too short for figures": (result().to_json().replace("4e-06", "1e-320"), "damaged"),
    "a time beyond a float": (result().to_json().replace("4e-06", "1e999"), "damaged"),
    "a negative time": (result().to_json().replace("2e-06", "-2e-06"), "damaged"),
    "a text for a time": (result().to_json().replace("2e-06", '"soon"'), "damaged"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_no_result_is_said_in_one_sentence(name):
    text, message = DAMAGED[name]
    with pytest.raises(UsageError, match=f"^r.json: {message}"):
        parse(text, "r.json")


def test_a_resumed_run_keeps_when_it_began_and_notes_each_part():
    begun = ({"command": [name], "started": name, "hosts": [name] * 4} for name in ("a", "b", "c"))
    first, second, third = (result(**each) for each in begun)
    resumed = third.resume(second.resume(first, "r.json", [], []), "r.json", [], [])
    assert (resumed.environment["command"], resumed.environment["started"]) == (["a"], "a")
    assert resumed.environment["hosts"] == ["a"] * 4  # a job that is requeued gets other hosts
    assert resumed.environment["resumed"] == [
        {"command": [name], "started": name, "hosts": [name] * 4} for name in ("b", "c")
    ]
    assert parse(resumed.to_json(), "r.json") == resumed


def test_a_run_resumes_one_that_asked_for_the_same():
    earlier = result(status="interrupted")
    resumed = result(point(nbytes=4)).resume(earlier, "r.json", [8, 1024], ["ring", "native"])
    assert resumed.points == earlier.points
    assert resumed.has(1024, ["ring", "native"])
    assert not resumed.has(1024, ["ring", "naive"])
    assert not resumed.has(8, ["ring"])


CIRCUMSTANCES = [
    {"ranks": 2},
    {"mpi_library": "Open MPI 5"},
    {"nodes": [[0], [1]]},
    {"cpu_model": "another"},
    {"mpi_build": "another"},
]


@pytest.mark.parametrize("what", CIRCUMSTANCES, ids=str)
def test_a_run_on_something_else_is_not_resumed(what):
    (name,) = what
    with pytest.raises(UsageError, match=f"r.json: its {name} is"):
        result().resume(result(**what), "r.json", [8], ["ring"])


def levels(nodes, *switches, source="MPI", file="MPI"):
    """Return what a result says of its topology: nodes, and switches above them."""
    found = [{"name": "node", "groups": nodes, "source": source}]
    found += [{"name": "switch", "groups": each, "source": "any"} for each in switches]
    return {"source": file, "levels": found, "left_out": list(map(str, switches))}


FOUR, OTHER_FOUR = [[0], [1], [2], [3]], [[0], [1], [2, 3]]
EVEN, UNEVEN = [[0, 1], [2, 3]], [[0], [1, 2, 3]]


@pytest.mark.parametrize("file", ["MPI", "topology.conf"])
@pytest.mark.parametrize("here", [levels(FOUR), levels(FOUR, UNEVEN)], ids=["one", "uneven"])
def test_a_job_that_is_queued_again_may_lie_below_other_switches(here, file):
    here, there = {**here, "source": file}, levels(FOUR, EVEN, file=file)
    earlier = result(topology=there)
    resumed = result(topology=here).resume(earlier, "r.json", [8], ["ring"])
    assert resumed.environment["topology"] == there
    assert resumed.environment["resumed"] == [{"topology": here}]
    assert parse(resumed.to_json(), "r.json") == resumed


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (levels(FOUR, EVEN), levels(OTHER_FOUR, EVEN)),
        (levels(FOUR, EVEN), levels(FOUR, EVEN, file="topology.conf")),
        (levels(FOUR, EVEN, source="t.toml"), levels(FOUR, UNEVEN, source="t.toml")),
        (levels(FOUR), None),
    ],
    ids=["nodes", "source", "a file's own", "none"],
)
def test_a_run_on_other_nodes_or_of_another_file_is_not_resumed(here, there):
    with pytest.raises(UsageError, match=r"r\.json: its topology is"):
        result(topology=here).resume(result(topology=there), "r.json", [8], ["ring"])


def test_a_run_with_other_variables_is_not_resumed():
    plain, tuned = result(), result(variables={"UCX_TLS": "tcp"})
    for here, there, said in ((plain, tuned, "tcp.* None"), (tuned, plain, "None.* tcp")):
        with pytest.raises(UsageError, match=f"r.json: its UCX_TLS is {said}"):
            here.resume(there, "r.json", [8], ["ring"])


@pytest.mark.parametrize(
    ("name", "value", "config"),
    [
        ("check", False, {"check": False}),
        ("sync", "window", {"sampling": {"sync": "window"}}),
        ("cold", True, {"sampling": {"cold": True}}),
        ("batch", 9, {"sampling": {"batch": 9}}),
    ],
)
def test_a_run_that_was_sampled_otherwise_is_not_resumed(name, value, config):
    other = replace(result(), config={**result().config, **config})
    with pytest.raises(UsageError, match=f"r.json: its {name} is {value}, that of this run is"):
        result().resume(other, "r.json", [8], ["ring"])


def test_a_size_that_lacks_an_algorithm_is_measured_as_a_whole():
    earlier = result(point(nbytes=8), point("native", nbytes=8), point(nbytes=64), point(nbytes=4))
    resumed = result().resume(earlier, "r.json", [8, 64], ["ring", "native"])
    assert [(p.algorithm, p.nbytes) for p in resumed.points] == [
        ("ring", 8),
        ("native", 8),
        ("ring", 4),
    ]


@pytest.mark.parametrize(
    ("native", "said"),
    [
        ([2e-5] * 9, " 0.64 (0.64..0.64) slower "),
        ([3.2e-5] * 9, " 1.02 (1.02..1.02) tie "),
        ([1e-5] * 4 + [9e-5] * 4 + [3.2e-5], " 1.02 (0.32..2.88) unknown "),
        ([2e-5] * 5, " 0.64 unknown "),
    ],
)
def test_a_row_has_the_interval_of_the_speedup(native, said):
    ring, _ = points = with_native(
        (point(samples=[3.13e-5] * len(native)), point("native", samples=native))
    )
    assert ring.speedup.verdict == said.split()[-1]
    assert said in PointsTable([1024], ["ring"]).rows(points)


def test_the_table_fits_into_a_hundred_columns():
    times = [0.3, 0.31, 0.29, 0.4, 0.28, 0.12, 0.5]
    sizes, names = [8, 512 << 10, 64 << 20], ["naive", "reduce_scatter", "native"]
    table = PointsTable(sizes, names)
    for nbytes in sizes:
        points = [point(name, nbytes, [t * nbytes / 1e9 for t in times]) for name in names]
        lines = table.rows(
            with_native((*points, point(nbytes=nbytes, samples=(), check_ok=False)))
        ).splitlines()
        assert max(map(len, lines)) <= 100


def test_csv_leaves_out_the_samples_alone():
    written = result(point(note="a, b"), point(samples=()))
    nested = {"samples_s", "time_s", "rank_mean_s", "check", "exactness", "speedup_interval95"}
    rows = csv.DictReader(io.StringIO(to_csv(written)))
    for row, measured in zip(rows, written.points, strict=True):
        document = measured.document()
        for name in document.keys() - nested:
            assert row[name] == ("" if document[name] is None else str(document[name])), name


SCHEMA = json.loads((Path(__file__).parent.parent / "docs/results.schema.json").read_text())
JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def test_the_published_schema_has_the_bounds_that_reading_has():
    published = SCHEMA["properties"]["points"]["items"]["properties"]
    for name, field in POINT_FIELDS.items():
        kind = JSON_TYPES[field.kind]
        expected = {"type": [kind, "null"] if field.optional else kind}
        if field.least > float("-inf"):
            expected["minimum"] = field.least
        assert {key: published[name].get(key) for key in expected} == expected, name
        assert published[name].keys() - expected.keys() <= {"description"}, name


def test_documents_are_json_that_others_can_read():
    json.loads(result().to_json(), parse_constant=pytest.fail)


def test_two_runs_do_not_write_to_one_file(tmp_path):
    """The one that comes second is told, and what the other one wrote stays."""
    path = tmp_path / "r.json"
    first, second = ResultFile(str(path)), ResultFile(str(path))
    first.write(result(point(nbytes=8)))
    first.write(result(point(nbytes=16)))
    with pytest.raises(UsageError, match=r"r.json: another run has written to it meanwhile"):
        second.write(result(point(nbytes=32)))
    assert parse(path.read_text(), "r.json").points[0].nbytes == 16
    first.write(result(point(nbytes=64)))
    ResultFile(str(path)).write(result(point(nbytes=128)))
    with pytest.raises(UsageError, match="another run"):
        first.write(result(point(nbytes=256)))
    assert parse(path.read_text(), "r.json").points[0].nbytes == 128


def test_a_file_that_was_taken_away_is_written_again(tmp_path):
    path = tmp_path / "r.json"
    file = ResultFile(str(path))
    file.write(result())
    path.rename(tmp_path / "kept.json")
    file.write(result())
    assert path.read_text() == (tmp_path / "kept.json").read_text()
