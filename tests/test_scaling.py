"""Results on growing numbers of ranks, with times that are made up, and the command."""

from dataclasses import replace

import pytest
from command import mpiring
from points import point, result, samples

from mpiring.errors import UsageError
from mpiring.report.curves import chosen_sizes, draw
from mpiring.report.plain import render
from mpiring.report.scaled import scaling_lines, scaling_table
from mpiring.scaling import Curve, curves, lacking, smallest
from mpiring.units import busbw

pytestmark = pytest.mark.pure

NODES = {1: 1, 2: 1, 4: 2, 6: 3, 8: 4}
"""Nodes for each number of ranks."""


def study(efficiencies, algorithm="ring", nbytes=1 << 20, **changes):
    """Return a result for each number of ranks, with a bus bandwidth of so many GB/s."""
    results = []
    for seed, (ranks, gbytes_per_s) in enumerate(efficiencies.items()):
        time = 1.0 if ranks == 1 else busbw(nbytes, 1.0, ranks) / gbytes_per_s
        measured = point(algorithm, nbytes, samples(time, seed), ranks=ranks, **changes)
        nodes = [[0]] * NODES[ranks]
        results.append((f"{ranks}.json", result(measured, ranks=ranks, nodes=nodes)))
    return results


def wrong_at(result):
    return replace(result, points=tuple(replace(p, check_ok=False) for p in result.points))


def lines(results, least=0.5):
    return list(scaling_lines(curves(results), least))


def test_efficiency_is_busbw_over_that_of_the_smallest_run_with_several_ranks():
    (curve,) = curves(study({4: 1.5, 1: 1.0, 2: 2.0, 8: 0.5}))
    assert [step.point.ranks for step in curve.steps] == [1, 2, 4, 8]
    assert [step.nodes for step in curve.steps] == [1, 1, 2, 4]
    alone, base, *others = curve.steps
    assert (alone.efficiency, base.efficiency, base.interval) == (None, 1.0, None)
    for step, expected in zip(others, (0.75, 0.25), strict=True):
        assert step.efficiency == pytest.approx(expected, rel=0.02)
        low, high = step.interval
        assert low < step.efficiency < high < low * 1.1


@pytest.mark.parametrize(
    ("gbytes_per_s", "said"),
    [
        ({2: 1, 4: 0.9, 8: 0.8}, "scales to 8 ranks on 4 nodes"),
        ({2: 1, 4: 0.9, 8: 0.3}, "stops scaling at 8 ranks on 4 nodes, where efficiency is"),
        ({2: 1, 4: 0.4, 8: 0.3}, "stops scaling at 4 ranks on 2 nodes, where efficiency is"),
        ({2: 1, 4: 0.3, 6: 0.9, 8: 0.2}, "stops scaling at 8 ranks on 4 nodes"),
        ({2: 1, 4: 0.3, 8: 0.9}, "scales to 8 ranks on 4 nodes"),
        ({2: 1, 4: 0.499}, "may have stopped scaling at 4 ranks on 2 nodes"),
        ({2: 1, 4: 0.502}, "may scale to 4 ranks on 2 nodes: the interval reaches below 0.5"),
        ({2: 1}, "its efficiency is not known"),
        ({1: 1}, "its efficiency is not known"),
    ],
    ids=str,
)
def test_where_an_algorithm_stops_scaling(gbytes_per_s, said):
    (line,) = lines(study(gbytes_per_s))
    assert line.startswith(f"ring at 1 MiB: {said}")


def test_a_time_below_its_noise_floor_tells_nothing():
    results = study({2: 1, 4: 0.1}, noise_floor_s=1e9)
    assert lines(results) == ["ring at 1 MiB: its efficiency is not known"]


def test_what_is_wrong_is_no_time():
    good, bad = study({2: 1, 4: 1})
    wrong = wrong_at(bad[1])
    (curve,) = curves([good, ("4.json", wrong)])
    assert [step.point.ranks for step in curve.steps] == [2]
    assert curves([("4.json", wrong)]) == []


def test_all_efficiencies_are_against_the_same_run():
    """Without a time there, another run would be 1, though it may be slow already."""
    small, middle, large = study({2: 1, 4: 0.5, 8: 0.25})
    (_, other), (_, others) = study({4: 0.5, 8: 0.25}, nbytes=8)
    middle = ("4.json", middle[1].with_points(other.points))
    large = ("8.json", large[1].with_points(others.points))
    lone, known = curves([large, middle, small])
    assert [step.efficiency for step in lone.steps] == [None, None]
    assert known.steps[0].efficiency == 1.0
    assert smallest([large, middle, small]) == ("2.json", (2, 1))
    assert lacking([lone, known], (2, 1)) == [lone]
    small = ("2.json", wrong_at(small[1]))
    assert [step.efficiency for step in curves([large, middle, small])[1].steps] == [None, None]
    assert smallest(study({1: 1})) is None


def test_as_many_ranks_on_other_nodes_are_steps_of_their_own():
    first, second = study({4: 1}), study({4: 1})
    second[0][1].environment["nodes"] = [[0]]
    (curve,) = curves([first[0], ("packed.json", second[0][1])])
    assert [(step.point.ranks, step.nodes) for step in curve.steps] == [(4, 1), (4, 2)]


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([*study({4: 1}), ("again.json", study({4: 1})[0][1])], "4.json and again.json are both"),
        (study({2: 1}) + study({4: 1}, dtype="int8"), "4.json: its dtype is int8, that of the"),
        (study({2: 1}) + study({4: 1}, in_place=True), "4.json: its in_place is True"),
    ],
    ids=["twice", "dtype", "place"],
)
def test_what_cannot_stand_side_by_side(results, said):
    with pytest.raises(UsageError, match=f"^{said}"):
        curves(results)


def test_table_and_picture():
    found = curves(study({2: 1, 4: 0.8, 8: 0.2}))
    text = render(scaling_table(found)).splitlines()
    assert [line.split()[:5] for line in text[2:]] == [
        ["1", "MiB", "ring", ranks, nodes] for ranks, nodes in (("2", "1"), ("4", "2"), ("8", "4"))
    ]
    figure = draw(found, 0.5)
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "time (us)",
        "busbw (GB/s)",
        "efficiency",
    ]
    *_, efficiency = figure.axes
    curve, least = efficiency.get_lines()
    assert list(curve.get_xdata()) == [2, 4, 8]
    assert list(curve.get_ydata()) == [step.efficiency for step in found[0].steps]
    assert list(least.get_ydata()) == [0.5, 0.5]


def test_the_legend_names_what_only_some_sizes_have():
    found = curves([*study({2: 1}), *study({8: 1}, "tree", 8)])
    (legend,) = draw(found, 0.5).legends
    assert sorted(text.get_text() for text in legend.get_texts()) == ["ring", "tree"]


def test_a_picture_shows_four_sizes_with_the_ends():
    shown = chosen_sizes([Curve("ring", nbytes, ()) for nbytes in range(10, 0, -1)])
    assert shown == [1, 4, 7, 10]


@pytest.fixture(name="files")
def fixture_files(tmp_path):
    for name, each in study({2: 1, 4: 0.8, 8: 0.2}):
        (tmp_path / name).write_text(each.to_json())
    return tmp_path


def test_the_command_prints_and_draws(files):
    names = ["8.json", "2.json", "4.json"]
    finished = mpiring(0, "scaling", *names, "-o", "s.svg", cwd=files)
    assert finished.status == 0, finished.stderr
    *table, line, drawn = finished.stdout.splitlines()
    assert len(table) == 5
    assert line.startswith("ring at 1 MiB: stops scaling at 8 ranks on 4 nodes")
    assert drawn == "s.svg is drawn"
    assert (files / "s.svg").read_text().count("</svg>") == 1


def test_circumstances_that_are_not_those_of_a_scaling_study_are_named(files):
    (name, other) = study({8: 1})[0]
    other.environment["mpi_library"] = "Open MPI 5"
    (files / name).write_text(replace(other, status="interrupted").to_json())
    finished = mpiring(0, "scaling", "2.json", name, cwd=files)
    said = finished.stdout.splitlines()
    assert said[:2] == [
        "8.json: mpi_library: MPICH 5 -> Open MPI 5",
        "8.json: interrupted, so it lacks points",
    ]


def test_what_is_wrong_is_named_and_fails(files):
    ((_, bad),), ((_, other),) = study({4: 1}), study({4: 1}, nbytes=8)
    noted = replace(wrong_at(bad).points[0], note="wrong on rank 3")
    (files / "4.json").write_text(replace(bad, points=(noted, *other.points)).to_json())
    finished = mpiring(0, "scaling", "2.json", "4.json", "-o", "s.svg", cwd=files)
    assert finished.status == 1, finished.stderr
    said = finished.stdout.splitlines()
    assert said[0] == "4.json: ring at 1 MiB: wrong on rank 3"
    assert said[-2:] == [
        "2.json, the smallest, has no time of ring at 8 B to compare with",
        "s.svg is drawn",
    ]
    finished = mpiring(0, "scaling", "4.json", "-s", "1MiB", cwd=files)
    assert (finished.status, finished.stdout) == (1, "4.json: ring at 1 MiB: wrong on rank 3\n")
    finished = mpiring(0, "scaling", "2.json", "4.json", "-s", "8", cwd=files)
    assert finished.status == 0


def test_what_was_asked_for_and_no_file_has_is_named(files):
    asked = ["-a", "ring,tree", "-s", "1MiB,16"]
    finished = mpiring(0, "scaling", "2.json", "4.json", *asked, cwd=files)
    assert finished.status == 0
    lacking = [line for line in finished.stdout.splitlines() if line.startswith("no file")]
    assert lacking == [
        "no file has a time of tree at these sizes",
        "no file has a time of these algorithms at 16 B",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument"),
        (["none.json"], "none.json: No such file"),
        (["2.json", "-a", "tree"], "no file has a time of these algorithms at these sizes"),
        (["2.json", "-s", "8"], "no file has a time of these algorithms at these sizes"),
        (["2.json", "--efficiency", "2"], "--efficiency"),
        (["2.json", "-o", "s.txt"], "s.txt: the ending has to be one of .png, .svg, .pdf"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(files, arguments, said):
    finished = mpiring(0, "scaling", *arguments, cwd=files)
    assert finished.status == 2
    assert said in finished.stderr
    assert "Traceback" not in finished.stderr
