"""What `explain` shows: right at every step, as taught, within a page's width, and in a browser."""

import os
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command import assert_refused, mpiring
from shapes import SCHEDULED, cases, moments

from mpiring.closed_forms import closed_form
from mpiring.explain import frames
from mpiring.report.page import page
from mpiring.report.picture import picture
from mpiring.report.steps import chunk_name, chunk_names, held_text, steps_text
from mpiring.schedule import Schedule, ScheduleError, Send

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 13])
def test_the_last_moment_is_complete_and_what_is_held_only_grows(size):
    for algorithm, topology, options in cases(size):
        for segments in (1, 2):
            schedule = algorithm.cut(algorithm.schedule(topology, options), segments)
            shown = list(frames(schedule))
            for rank in range(size):
                assert shown[0].held[rank] == ((rank,),) * schedule.chunks
                assert shown[-1].complete(rank) == list(range(schedule.chunks))
            sent = sum(len(frame.messages) for frame in shown)
            steps = (s for r in range(size) for round_ in schedule.rounds(r) for s in round_)
            assert sent == sum(isinstance(step, Send) for step in steps)


def test_a_schedule_that_cannot_go_on_is_an_error():
    stuck = Schedule(2, 1, lambda rank: [(Send(1 - rank, 0),)])
    with pytest.raises(ScheduleError, match="no rank can go on"):
        list(frames(stuck))


def lines(name, size, nodes=1):
    """The rows of each round, their cells apart."""
    schedule, shown = moments(name, size, nodes)
    rounds, table = [], None
    for line in "\n".join(steps_text(name, schedule, shown)).splitlines():
        if line.startswith("round"):
            rounds.append([])
            table = rounds[-1]
        elif table is not None and re.match(r" *\d+   ", line):
            table.append(re.split(r"  +", line.strip()))
    return rounds


def test_ring_as_taught():
    rounds = lines("ring", 4)
    assert rounds[0] == [
        ["0", "a to 1", "d from 3", "d0+d3"],
        ["1", "b to 2", "a from 0", "a0+a1"],
        ["2", "c to 3", "b from 1", "b1+b2"],
        ["3", "d to 0", "c from 2", "c2+c3"],
    ]
    # After the reduce-scatter rank 0 holds the full b, 1 the full c, 2 the full d, 3 the full a.
    complete = ["b0+b1+b2+b3", "c0+c1+c2+c3", "d0+d1+d2+d3", "a0+a1+a2+a3"]
    assert [row[-1] for row in rounds[2]] == complete
    complete = ["all of a b", "all of b c", "all of c d", "all of a d"]
    assert [row[-1] for row in rounds[3]] == complete
    assert len(rounds) == 6


def test_naive_as_taught():
    everything = "a0+a1+a2+a3"
    assert [row[-1] for row in lines("naive", 4)[0]] == [everything] * 4
    assert lines("naive", 4)[0][2][1:3] == ["a to 0 1 3", "a from 3 0 1"]


def test_reduce_scatter_as_taught():
    collect, distribute = lines("reduce_scatter", 4)
    assert collect[2] == ["2", "a to 0, b to 1, d to 3", "c from 3 0 1", "c0+c1+c2+c3"]
    assert distribute[2][1:] == ["c to 0 1 3", "a from 0, b from 1, d from 3", "all of a-d"]


def test_tree_as_taught():
    """8 ranks in two groups: reduce-scatter in each, swap of quarters, allgather in each."""
    inside, across, back = lines("tree", 8, nodes=2)
    assert [row[-1] for row in inside[:4]] == [f"{c}0+{c}1+{c}2+{c}3" for c in "abcd"]
    assert [row[-1] for row in inside[4:]] == [f"{c}4+{c}5+{c}6+{c}7" for c in "abcd"]
    assert across[1] == ["1", "b to 5", "b from 5", "b0+..+b7"]
    assert across[5] == ["5", "b to 1", "b from 1", "b0+..+b7"]
    assert back[6][1] == "c to 4 5 7"
    assert back[6][-1] == "all of a-d"


def test_double_binary_tree_carries_a_half_up_and_down_each_tree():
    """4 ranks. Tree 1: 0 above 2 above 1 and 3. Tree 2, its mirror: 3 above 1 above 2 and 0."""
    assert lines("double_binary_tree", 4) == [
        [
            ["0", "b to 1"],
            ["1", "a to 2", "b from 2 0", "b0+b1+b2"],
            ["2", "b to 1", "a from 1 3", "a1+a2+a3"],
            ["3", "a to 2"],
        ],
        [
            ["0", "a from 2", "a0+a1+a2+a3"],
            ["1", "b to 3"],
            ["2", "a to 0"],
            ["3", "b from 1", "b0+b1+b2+b3"],
        ],
        [
            ["0", "a to 2"],
            ["1", "b from 3", "all of b"],
            ["2", "a from 0", "all of a"],
            ["3", "b to 1"],
        ],
        [
            ["0", "b from 1", "all of a b"],
            ["1", "b to 0 2", "a from 2", "all of a b"],
            ["2", "a to 1 3", "b from 1", "all of a b"],
            ["3", "a from 2", "all of a b"],
        ],
    ]


@pytest.mark.parametrize("size", range(1, 9))
def test_text_keeps_within_a_hundred_columns(size):
    for algorithm in SCHEDULED:
        for nodes in (1, 2) if size > 1 else (1,):
            schedule, shown = moments(algorithm.name, size, nodes)
            for line in "\n".join(steps_text(algorithm.name, schedule, shown)).splitlines():
                assert len(line) <= 100, (algorithm.name, line)
                assert "\u00a0" not in line


def test_names():
    assert [chunk_name(c) for c in (0, 25, 26, 27, 51, 52, 701, 702)] == [
        "a", "z", "aa", "ab", "az", "ba", "zz", "aaa",
    ]  # fmt: skip
    assert [chunk_names(*part) for part in ((0, 1), (0, 2), (1, 3))] == ["a", "a b", "b-d"]
    assert held_text(0, (0, 1, 2, 3)) == "a0+a1+a2+a3"
    assert held_text(1, (0, 1, 2, 5, 7, 8)) == "b0+..+b2+b5+b7+b8"


def test_the_sum_stands_beside_the_bound():
    assert mpiring(0, "explain", "ring", "-n", 4).stdout.endswith(
        "6 rounds. Each rank sends 6 messages, 1.5 n in all; the bound, 2(N-1)/N n, is 1.5 n.\n"
    )
    assert "Each rank sends 1 to 3 messages, 1 n to 3 n in all" in (
        mpiring(0, "explain", "parameter_server", "-n", 4).stdout
    )


def test_explain_and_traffic_count_the_same_rounds():
    for size in (1, 2, 3, 4, 6, 8, 9):
        for algorithm, topology, options in cases(size):
            form = closed_form(algorithm, topology, options, 1, 1)
            if form is not None and size > 1:
                schedule = algorithm.schedule(topology, options)
                assert len(list(frames(schedule))) - 1 == form.rounds, (algorithm.name, topology)


def test_one_round_alone(tmp_path):
    file = tmp_path / "round.html"
    mpiring(0, "explain", "ring", "-n", 4, "--round", 3, "--html", file)
    assert re.findall('data-name="([^"]*)"', file.read_text()) == ["round 3 of 6"]
    shown = mpiring(0, "explain", "ring", "-n", 4, "--round", 3).stdout
    assert "round 3 of 6" in shown
    assert "round 2" not in shown
    assert "round 4" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rin", "-n", "4"], "unknown algorithm 'rin': did you mean ring?"),
        (["ring", "-n", "0"], "0 is not in the range 1<=x<=10000000"),
        (["ring"], "Missing option '-n'"),
        (["torus_ring", "-n", "4", "--torus", "3x3"], "has 9 ranks, the job has 4"),
        (["torus_ring", "-n", "4", "--torus", "4"], "'4' is not a grid such as 4x8"),
        (["torus_ring", "-n", "4", "--torus", "0x4"], "torus is (0, 4)"),
        (["recursive_multiplying", "-n", "4", "--radix", "1"], "radix is 1"),
        (["ring", "-n", "4", "--radix", "3"], "--radix changes nothing: ring has no radix"),
        (["parameter_server", "-n", "4", "--root", "4"], "root is rank 4, the job has 4"),
        (["ring", "-n", "4", "--round", "7"], "there is no round 7: ring has 6"),
        (["ring", "-n", "4", "--segments", "3"], "--segments has to be even"),
        (["native", "-n", "4"], "native has no steps to show"),
        (["ring", "-n", "4", "--nodes", "5"], "5 nodes for 4 ranks"),
        (["ring", "-n", "4", "--nodes", "2", "--topology", "x"], "exclude each other"),
        (["ring", "-n", "4", "--topology", "/no/such"], "/no/such: No such file"),
        (["ring", "-n", "4000"], "too many to show"),
        (["ring", "-n", "4", "--segments", "400"], "too many to show"),
        (
            ["ring", "-n", "4", "--svg", "/tmp/x", "--html", "/tmp/../tmp/x"],
            "two outputs name the same file",
        ),
        (["ring", "-n", "4", "--svg", "/no/such/a.svg"], "/no/such/a.svg: cannot be written"),
    ],
)
def test_mistakes_are_one_sentence_and_status_2(arguments, message):
    finished = mpiring(0, "explain", *arguments)
    assert_refused(finished, message)


def test_a_topology_file_gives_the_nodes():
    shown = mpiring(0, "explain", "tree", "-n", 4, "--topology", "hostfiles/two-nodes-4ranks.toml")
    assert "tree on 4 ranks in 2 nodes" in shown.stdout
    assert "3 rounds" in shown.stdout


def test_hostnames_are_unknown_without_a_job(tmp_path):
    file = tmp_path / "t.toml"
    file.write_text('version = 1\n[[level]]\nname = "node"\nby = "hostname"\n')
    finished = mpiring(0, "explain", "tree", "-n", 4, "--topology", file)
    assert finished.status == 2
    assert "hostnames are known in a job alone" in finished.stderr


@pytest.mark.parametrize("algorithm", SCHEDULED, ids=lambda a: a.name)
def test_pictures_hold_each_cell_and_message(algorithm):
    schedule, shown = moments(algorithm.name, 6, 2)
    drawn = ElementTree.fromstring(picture(shown, "a <title> & more"))
    name = "{http://www.w3.org/2000/svg}"
    rows = sum(text.text == "rank 0" for text in drawn.iter(f"{name}text"))
    states = len(shown) + rows - 1  # a row begins with the state that the one before ended with
    assert len(list(drawn.iter(f"{name}rect"))) == 1 + states * 6 * schedule.chunks
    messages = sum(len(frame.messages) for frame in shown)
    assert len(list(drawn.iter(f"{name}line"))) == messages
    titles = [title.text for title in drawn.iter(f"{name}title")]
    assert titles[0] == "a <title> & more"
    assert titles[-1] == held_text(schedule.chunks - 1, tuple(range(6)))


def test_a_single_rank_has_nothing_to_do():
    schedule, shown = moments("ring", 1)
    assert len(shown) == 1
    assert "0 rounds. Each rank sends 0 messages" in "\n".join(steps_text("x", schedule, shown))
    assert picture(shown, "x").startswith("<svg")
    assert page("x", schedule, shown).count("<section") == 1


def test_what_is_no_file_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        assert mpiring(0, "explain", "ring", "-n", 2, "--svg", pipe).status == 0
        assert reader.communicate(timeout=10)[0].startswith("<svg")
    assert pipe.is_fifo()
    finished = mpiring(0, "explain", "ring", "-n", 2, "--svg", "/dev/full")
    assert finished.status == 2
    assert "/dev/full: cannot be written: No space left on device" in finished.stderr
    assert not Path("/dev/full").is_file()


def test_a_page_is_whole_in_itself(tmp_path):
    file = tmp_path / "ring.html"
    finished = mpiring(0, "explain", "ring", "-n", 4, "--html", file)
    assert finished.stdout == f"{file} is drawn\n"
    text = file.read_text()
    outside = re.findall(r'(?:src|href)="[^"#]', text)
    assert outside == []
    assert text.count("<section") == 7
    names = re.findall(r'id="(head\d+)"', text)
    assert len(names) == len(set(names)) == 6, "an arrow head in a hidden picture is not drawn"


def test_a_page_steps_forward_and_back_in_a_browser(tmp_path, browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    schedule, shown = moments("ring", 4)
    file = tmp_path / "ring.html"
    file.write_text(page("ring on 4 ranks", schedule, shown))
    browser.get(file.as_uri())

    def visible():
        sections = browser.find_elements(By.CSS_SELECTOR, "main section")
        return [s.get_attribute("data-name") for s in sections if s.is_displayed()]

    back, forward = browser.find_element(By.ID, "back"), browser.find_element(By.ID, "forward")
    body = browser.find_element(By.TAG_NAME, "body")
    assert visible() == ["at first"]
    assert not back.is_enabled()
    forward.click()
    assert visible() == ["round 1 of 6"]
    assert "a0+a1" in body.text
    body.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert visible() == ["round 3 of 6"]
    assert browser.find_element(By.ID, "where").text == "round 3 of 6"
    body.send_keys(Keys.ARROW_LEFT)
    back.click()
    assert visible() == ["round 1 of 6"]
    body.send_keys(*[Keys.ARROW_RIGHT] * 9)
    assert visible() == ["round 6 of 6"]
    assert not forward.is_enabled()
    arrow = browser.find_element(By.CSS_SELECTOR, "section.shown line")
    assert arrow.rect["width"] > 10
    assert browser.get_log("browser") == []
