"""Documents that are written are read again; anything else is one clear error."""

import json

import pytest

from mpiring.errors import UsageError
from mpiring.results import Point, Result, parse, with_native


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
    }
    return Point(algorithm, nbytes, samples_s=tuple(samples), **{**common, **changes})


def result(*points, status="complete", **environment):
    points = points or with_native((point(), point("native", samples=(4e-6, 6e-6, 8e-6))))
    environment = {"ranks": 4, "nodes": [[0, 1, 2, 3]], "mpi_library": "MPICH 5", **environment}
    config = {"dtype": "float32", "op": "sum", "in_place": False}
    return Result(environment, config, tuple(points), status)


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


@pytest.mark.parametrize("samples", [(0.0,), (0.0, 0.0), (1e-6,)])
def test_times_of_nothing_divide_by_nothing(samples):
    written = result(*with_native((point(samples=samples), point("native", samples=samples))))
    parse(written.to_json(), "r.json")


DAMAGED = {
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
    "no points": ('{"schema": "mpiring.results/1"}', "damaged: KeyError: 'points'"),
    "a text for points": (
        '{"schema": "mpiring.results/1", "points": "abc", "environment": {}, "config": {}}',
        "damaged",
    ),
    "no samples": (result().to_json().replace('"samples_s"', '"x"'), "damaged"),
    "a negative time": (result().to_json().replace("2e-06", "-2e-06"), "damaged"),
    "a text for a time": (result().to_json().replace("2e-06", '"soon"'), "damaged"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_no_result_is_said_in_one_sentence(name):
    text, message = DAMAGED[name]
    with pytest.raises(UsageError, match=f"^r.json: {message}"):
        parse(text, "r.json")


def test_a_run_resumes_one_that_asked_for_the_same():
    earlier = result(status="interrupted")
    resumed = result(point(nbytes=4)).resume(earlier, "r.json", [8, 1024], ["ring", "native"])
    assert resumed.points == earlier.points
    assert resumed.has(1024, ["ring", "native"])
    assert not resumed.has(1024, ["ring", "naive"])
    assert not resumed.has(8, ["ring"])


@pytest.mark.parametrize(
    "what", [{"ranks": 2}, {"mpi_library": "Open MPI 5"}, {"nodes": [[0], [1]]}]
)
def test_a_run_of_something_else_is_not_resumed(what):
    (name,) = what
    with pytest.raises(UsageError, match=f"r.json: its {name} is"):
        result().resume(result(**what), "r.json", [8], ["ring"])


def test_a_size_that_lacks_an_algorithm_is_measured_as_a_whole():
    earlier = result(point(nbytes=8), point("native", nbytes=8), point(nbytes=64), point(nbytes=4))
    resumed = result().resume(earlier, "r.json", [8, 64], ["ring", "native"])
    assert [(p.algorithm, p.nbytes) for p in resumed.points] == [
        ("ring", 8),
        ("native", 8),
        ("ring", 4),
    ]


def test_documents_are_json_that_others_can_read():
    json.loads(result().to_json(), parse_constant=pytest.fail)
