"""`mpiring traffic`: what is counted agrees with what is known, in each of its forms."""

import csv
import io
import json
import re

import pytest
from command import assert_refused, mpiring
from shapes import SCHEDULED, divided

from mpiring.chunks import Split
from mpiring.cost import total, traffic
from mpiring.options import DEFAULTS, Options

pytestmark = pytest.mark.pure


def counts(*arguments):
    finished = mpiring(0, "traffic", "--format", "json", *arguments)
    assert finished.status == 0, finished.stderr
    document = json.loads(finished.stdout)
    return {entry["algorithm"]: entry for entry in document["algorithms"]} | {"": document}


def test_known_numbers():
    known = counts("-n", 8, "--nodes", 2, "-s", "1MiB")
    mib = 1 << 20
    assert known[""]["lower_bound_bytes_sent"] == 1.75 * mib
    tree = known["tree"]
    assert tree["rounds"] == 3
    assert tree["bytes_sent_most"] == tree["bytes_sent_least"] == 1.75 * mib
    assert tree["bytes_across_node"] == 8 * mib / 4
    assert tree["bytes_inside_node"] == 8 * 1.5 * mib
    ring = known["ring"]
    assert (ring["rounds"], ring["messages_sent_most"]) == (14, 14)
    assert ring["bytes_across_node"] == 2 * 1.75 * mib
    server = known["parameter_server"]
    assert (server["bytes_sent_least"], server["bytes_sent_most"]) == (mib, 7 * mib)
    assert server["bytes_reduced_most"] == server["bytes_received_most"] == 7 * mib
    assert len(known) == 1 + len(SCHEDULED)


def test_what_has_no_rounds_has_a_row_where_it_is_asked_for():
    asked = ["-n", 4, "-a", "auto,ring,native"]
    known = counts(*asked)
    assert list(known) == ["ring", "auto", "native", ""]
    assert known["native"]["rounds"] is None
    assert known["native"]["note"] == "no rounds to count: they are the library's"
    said = mpiring(0, "traffic", *asked).stdout.splitlines()
    assert [line.split() for line in said if line.startswith(("auto ", "native "))] == [
        ["auto", "n/a"],
        ["native", "n/a"],
    ]
    assert said[-1] == "native: no rounds to count: they are the library's"


def test_levels_count_what_crosses_them_outermost_first(tmp_path):
    file = tmp_path / "t.toml"
    file.write_text(
        'version = 1\n[[level]]\nname = "node"\ngroups = [[0,1],[2,3],[4,5],[6,7]]\n'
        '[[level]]\nname = "switch"\ngroups = [[0,1,2,3],[4,5,6,7]]\n'
    )
    ring = counts("-n", 8, "--topology", file, "-s", 8000, "-a", "ring")["ring"]
    hop = 14 * 1000
    assert ring["bytes_inside_node"] == 4 * hop
    assert ring["bytes_across_node"] == 2 * hop
    assert ring["bytes_across_switch"] == 2 * hop


def test_a_walk_and_the_closed_forms_agree():
    from mpiring.report.counts import from_forms, from_rounds

    topology = divided(64, 8)
    for algorithm in SCHEDULED:
        walked = from_rounds(algorithm, topology, DEFAULTS, 64 * 64 * 4, 4)
        formed = from_forms(algorithm, topology, DEFAULTS, 64 * 64 * 4, 4)
        assert formed.bytes_sent_most == walked.bytes_sent_most
        assert formed.rounds == walked.rounds
        assert formed.messages_sent_most == walked.messages_sent_most
        assert walked.scratch_bytes_most <= 64 * 64 * 4 * 4


@pytest.mark.parametrize("segment", [None, 100])
def test_the_total_is_the_sum_of_the_ranks(segment):
    topology = divided(6, 2)
    options = Options(segment=segment)
    for algorithm in SCHEDULED:
        schedule = algorithm.scheduled(topology, options, 999, 8)
        ranks, across, scratch = total(schedule, topology, 999, 8)
        assert sum(across) == sum(rank.elements_sent for rank in ranks)
        assert sum(across) == sum(rank.elements_received for rank in ranks)
        assert scratch <= max(999 * 8, 4096) + 6 * 8
        split = Split(999, schedule.chunks)
        for rank in range(6):
            alone = traffic(schedule.rounds(rank), split)
            assert ranks[rank].elements_sent == alone.elements_sent
            assert ranks[rank].messages_sent % alone.messages_sent == 0


def test_csv_has_a_line_for_each_algorithm():
    finished = mpiring(0, "traffic", "-n", 6, "-a", "ring,tree,swing", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(finished.stdout)))
    assert [row["algorithm"] for row in rows] == ["ring", "tree", "swing"]
    assert rows[0]["rounds"] == "10"


def test_a_million_ranks_at_once():
    shown = mpiring(0, "traffic", "-n", 1000000, "--nodes", 125000, "-s", "64MiB", timeout=60)
    assert shown.status == 0, shown.stderr
    assert "From closed forms" in shown.stdout
    assert "1999998" in shown.stdout


def test_what_no_closed_form_tells_is_said_in_its_row():
    shown = mpiring(0, "traffic", "-n", 5000, "--nodes", 3, "-a", "ring,tree")
    assert shown.status == 0
    assert re.search(r"^tree +n/a$", shown.stdout, re.MULTILINE)
    assert "tree: its closed forms are for one level of equal nodes" in shown.stdout
    assert " 9998 " in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "4", "-a", "native"], "native has no rounds to count"),
        (["-n", "6", "-a", "torus_ring", "--torus", "2x2"], "has 4 ranks, the job has 6"),
        (["-n", "4", "-a", "rong"], "did you mean ring?"),
        (["-n", "-1"], "-1 is not in the range"),
        (["-n", "4", "--dtype", "float99"], "unknown dtype 'float99'"),
        (["-n", "4", "-a", "ring", "--segment", "2"], "smaller than an element"),
        (["-n", "4", "-a", "ring", "--leaders", "3"], "--leaders changes nothing"),
        (["-n", "6", "-a", "ring,torus_ring", "--torus", "2x2"], "has 4 ranks, the job has 6"),
    ],
)
def test_mistakes_are_one_sentence_and_status_2(arguments, message):
    finished = mpiring(0, "traffic", *arguments)
    assert_refused(finished, message)


def test_no_elements_and_one_rank():
    assert counts("-n", 4, "-s", 0)["ring"]["messages_sent_most"] == 0
    assert counts("-n", 1)["tree"]["rounds"] == 0
    assert mpiring(0, "traffic", "-n", 1).status == 0
