"""`mpiring topology measure` as users run it. Figures decide nothing here, but for their kind."""

import json
import re

import pytest
from command import mpiring

from mpiring.links import parse
from mpiring.topology_file import read

QUICK = ["-s", "1KiB", "--time-limit", "0.01", "-q"]


def measure(ranks, *arguments):
    return mpiring(ranks, "topology", "measure", *QUICK, *arguments)


@pytest.mark.parametrize("ranks", [2, 5])
def test_every_pair_is_measured_and_what_is_written_is_read(ranks, tmp_path):
    toml, matrix = tmp_path / "t.toml", tmp_path / "m.json"
    finished = measure(ranks, "-o", toml, "--matrix", matrix)
    assert (finished.status, finished.stderr) == (0, "")
    pairs = ranks * (ranks - 1) // 2
    first, *_ = finished.stdout.splitlines()
    assert (
        f"{ranks} ranks on 1 node, {pairs} pair{'s' if pairs > 1 else ''}, latency of 8 B" in first
    )
    assert first.endswith("rate of 1 KiB")
    assert re.search(
        r"^(all|within) .* ranks? +\d+ +[\d.]+ +\S+\.\.\S+ ", finished.stdout, re.MULTILINE
    )
    measured = parse(matrix.read_text(), "m")
    wanted = [(a, b) for a in range(ranks) for b in range(a + 1, ranks)]
    assert [link.ranks for link in measured.links] == wanted
    for link in measured.links:
        assert 0 < link.latency_us.best <= link.latency_us.median
        for rate in link.gbytes_per_s:
            assert 0 < rate.median <= rate.best
            assert rate.interval[0] <= rate.median <= rate.interval[1]
    topology = read(toml.read_text(), measured.hosts, "t")
    assert sorted(topology.tour) == list(range(ranks))
    finished = mpiring(
        *(ranks, "bench", "-a", "ring", "-s", "1KiB", "--time-limit", "0.01", "--format", "json"),
        *("--topology", toml, "--ring-order", "measured"),
    )
    assert finished.status == 0, finished.stderr


def test_one_rank_has_no_link():
    finished = measure(1, "--format", "json")
    assert (finished.status, json.loads(finished.stdout)["links"]) == (0, [])
    finished = measure(1)
    assert finished.stdout.splitlines()[1] == "1 rank: there is no link to measure"


def test_a_sample_one_pair_at_a_time():
    finished = measure(4, "--max-pairs", "4", "--one-by-one", "-v", "--format", "json")
    assert finished.status == 2
    assert "-v and -q exclude each other" in finished.stderr
    finished = mpiring(
        *(4, "topology", "measure", *QUICK[:-1], "--max-pairs", "4", "--one-by-one", "-v"),
        *("--format", "json"),
    )
    document = json.loads(finished.stdout)
    assert len(document["links"]) == 4
    assert sum(level["pairs"] for level in document["levels"]) == 4
    assert re.search(r"^mpiring: 0 of 8 rounds done; latency, 8 B: round 1 of 4", finished.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "/no/such/t.toml"], "/no/such/t.toml: cannot be written: No such file"),
        (["-o", "t.json"], "t.json: the ending has to be .toml"),
        (["--matrix", "m.csv"], "m.csv: the ending has to be .json"),
        (["-s", "0"], "messages of 0 bytes tell no rate"),
        (["-s", "1TiB"], "1 TiB on 2 ranks of "),
        (["--time-limit", "nan"], "--time-limit"),
    ],
)
@pytest.mark.pure
def test_a_mistake_is_said_before_anything_is_measured(arguments, message):
    finished = mpiring(2, "topology", "measure", "-v", *arguments)
    assert (finished.status, finished.stdout) == (2, "")
    assert message in finished.stderr
    assert "round" not in finished.stderr


def test_a_file_that_is_not_ours_stays(tmp_path):
    file = tmp_path / "t.toml"
    file.write_text("[tool]\n")
    finished = measure(2, "-o", file)
    assert finished.status == 2
    assert "not overwritten" in finished.stderr
    assert file.read_text() == "[tool]\n"
    assert mpiring(2, "topology", "write", tmp_path / "own.toml").status == 0
    assert measure(2, "-o", tmp_path / "own.toml").status == 0
