"""Documents and pictures of links."""

import json
import sys

import numpy as np
import pytest
from command import mpiring
from machines import blocks, links

from mpiring.clusters import find_levels, to_topology
from mpiring.errors import UsageError
from mpiring.links import best, parse
from mpiring.report.heatmap import draw
from mpiring.report.links import level_table, link_names
from mpiring.topology import Level, Topology

pytestmark = pytest.mark.pure

NODES = blocks(4, 2)
MEASURED = links(4, [NODES], [0.5, 30], [5, 0.117])


def test_a_document_reads_back_as_it_is():
    assert parse(json.dumps(MEASURED.document(), allow_nan=False), "f") == MEASURED


def test_matrices_have_each_figure_in_its_place():
    some = links(4, [NODES], [0.5, 30], [5, 0.117], pairs={(0, 1), (1, 3)})
    rates, latencies = some.rates(), some.latencies(best)
    assert np.argwhere(~np.isnan(rates)).tolist() == [[0, 1], [1, 0], [1, 3], [3, 1]]
    link = some.links[1]
    assert (rates[1, 3], rates[3, 1]) == tuple(f.median for f in link.gbytes_per_s)
    assert latencies[1, 3] == latencies[3, 1] == link.latency_us.best != link.latency_us.median


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema="mpiring.links/2"), "its schema is mpiring.links/2"),
        (lambda d: d.update(schema="mpiring.results/1"), "not links of mpiring topology measure"),
        (lambda d: d.pop("hosts"), "damaged: hosts is missing"),
        (lambda d: d.update(nbytes=0), "damaged: nbytes is 0, which is out of bounds"),
        (lambda d: d["links"][1].update(ranks=[0, 4]), "links[1]: ranks is 4, which is out of"),
        (lambda d: d["links"][1].update(ranks=[2, 0]), "links[1] is not of two ranks, the lower"),
        (lambda d: d["links"][0].update(ranks=None), "links[0]: ranks is null instead of a list"),
        (lambda d: d["links"][0]["GBps"].pop(), "links[0] is not of two ranks"),
        (lambda d: d["links"][0]["GBps"][1].pop("median"), "median is missing"),
        (lambda d: d["links"][0]["latency_us"].update(median=0), "links[0]: latency_us is 0"),
        (lambda d: d["links"][0]["latency_us"].update(best=float("nan")), "NaN is no JSON"),
        (lambda d: d["links"][0]["latency_us"].update(interval95=[1]), "is not two numbers"),
    ],
)
def test_what_is_damaged_is_said(change, message):
    document = json.loads(json.dumps(MEASURED.document()))
    change(document)
    with pytest.raises(UsageError) as raised:
        parse(json.dumps(document), "f.json")
    assert str(raised.value).startswith("f.json: ")
    assert message in str(raised.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 10**5, "3", "[]"])
def test_what_is_no_document(text):
    with pytest.raises(UsageError, match=r"^f\.json: not "):
        parse(text, "f.json")


def test_the_table():
    levels = find_levels(MEASURED)
    known = Topology(4, (Level("node", NODES),), "MPI")
    names = link_names(levels, to_topology(MEASURED, levels, known))
    assert names == ["within node", "beyond node"]
    lines = level_table(levels, names).splitlines()
    assert lines[1].split() == [
        "links",
        "groups",
        "measured",
        "(us)",
        "interval",
        "(GB/s)",
        "interval",
    ]
    assert lines[3].startswith("within node  2 x 2 ranks         2    0.5")
    assert lines[4].startswith("beyond node  1 x 4 ranks         4")
    assert all(".." in line for line in lines[3:])


@pytest.mark.parametrize("size", [2, 4, 70])
def test_the_picture_shows_what_was_measured(size):
    measured = links(size, [blocks(size, 2)], [0.5, 30], [5, 0.117])
    figure = draw(measured)
    left, right = (axes for axes in figure.axes if axes.images)
    assert left.get_title("left") == "latency (us)"
    assert right.get_title("left") == "rate (GB/s)"
    assert (right.get_xlabel(), right.get_ylabel()) == ("to rank", "from rank")
    shown = right.images[0].get_array()
    assert np.array_equal(shown.filled(0), np.nan_to_num(measured.rates()))
    assert shown.mask.sum() == size  # the diagonal
    written = {text.get_text() for text in right.texts}
    assert (f"{measured.rates()[0, 1]:.3g}" in written) == (size < 12)
    assert len(right.lines) == 2 * (size // 2 - 1)


def test_a_picture_of_a_file(tmp_path):
    file = tmp_path / "m.json"
    file.write_text(json.dumps(MEASURED.document()))
    for ending in ("png", "svg"):
        picture = tmp_path / f"p.{ending}"
        finished = mpiring(0, "topology", "plot", file, "-o", picture)
        assert (finished.status, finished.stdout) == (0, f"{picture} is drawn\n"), finished.stderr
        assert picture.stat().st_size > 1000
    for arguments, message in (
        ([file, "-o", tmp_path / "p.doc"], "p.doc: the ending has to be one of .png, .svg, .pdf"),
        ([file, "-o", "/no/such/p.png"], "/no/such/p.png: cannot be written"),
        (["/no/such.json", "-o", tmp_path / "p.png"], "/no/such.json: No such file or directory"),
    ):
        finished = mpiring(0, "topology", "plot", *arguments)
        assert (finished.status, finished.stdout) == (2, "")
        assert message in finished.stderr


def test_nothing_to_draw_and_nothing_to_draw_with(monkeypatch):
    with pytest.raises(UsageError, match="there is no measured link to draw"):
        draw(links(1, [], [], []))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match="plots need matplotlib"):
        draw(MEASURED)


@pytest.mark.parametrize("nodes", [[[0, 1]], [], [[0, 1], [1, 2, 3]]])
def test_nodes_that_do_not_cover_the_ranks_are_damage(nodes):
    document = json.loads(json.dumps(links(4, [NODES], [0.5, 30], [5, 0.117]).document()))
    document["nodes"] = nodes
    with pytest.raises(UsageError, match="nodes is not each rank once"):
        parse(json.dumps(document), "l.json")
