from pathlib import Path

import pytest

from mpiring.errors import UsageError
from mpiring.topology import Level, Topology, by_hostname, flat, read

HOSTFILES = Path(__file__).parent.parent / "hostfiles"
TWO = 'version = 1\n[[level]]\nname = "node"\ngroups = [[0, 1], [2, 3]]\n'


def parse(text, hosts="aabb"):
    return read(text, list(hosts), "here.toml")


def test_groups_as_written():
    topology = parse(TWO + "gbytes_per_s = 8.0\nlatency_us = 2\n")
    assert topology.nodes == ((0, 1), (2, 3))
    assert topology.levels[0] == Level("node", ((0, 1), (2, 3)), 8.0, 2.0)
    assert topology.source == "here.toml"


def test_by_hostname():
    text = 'version = 1\n[[level]]\nname = "node"\nby = "hostname"\n'
    assert parse(text, "abab").nodes == ((0, 2), (1, 3))


def test_full_and_short_names_never_merge_two_hosts():
    assert by_hostname(["n1", "n1.a", "n1.b", "n1"]) == ((0, 3), (1,), (2,))


def test_levels_nest():
    outer = '[[level]]\nname = "switch"\ngroups = [[0, 1, 2, 3]]\n'
    assert [level.name for level in parse(TWO + outer).levels] == ["node", "switch"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version = ", "not TOML"),
        ("", "version is None"),
        ("version = 2", "version is 2"),
        ("version = 1", "no \\[\\[level\\]\\] table"),
        ("version = 1\nlevel = [3]", "a level is not a table"),
        ("version = 1\nlevel = " + 5000 * "[" + 5000 * "]", "not TOML"),
        ("version = 1\nlevel = 3", "no \\[\\[level\\]\\] table"),
        (TWO + "speed = 1", "unknown key 'speed'"),
        ("version = 1\nnodes = 2\n" + TWO[12:], "unknown key 'nodes'"),
        (TWO.replace('"node"', "3"), "no name"),
        (TWO + 'by = "hostname"', "either groups or by"),
        ('version = 1\n[[level]]\nname = "node"', "either groups or by"),
        ('version = 1\n[[level]]\nname = "node"\nby = "rack"', "by is 'rack'"),
        (TWO.replace("[[0, 1], [2, 3]]", "[0, 1]"), "not a list of lists"),
        (TWO.replace("[[0, 1], [2, 3]]", '[["0"]]'), "not a list of lists"),
        (TWO.replace("[[0, 1], [2, 3]]", "[[0, 1.5]]"), "not a list of lists"),
        (TWO.replace("[[0, 1], [2, 3]]", "[[true]]"), "not a list of lists"),
        (TWO.replace("[[0, 1], [2, 3]]", "[]"), "a group is empty"),
        (TWO.replace("[[0, 1], [2, 3]]", "[[0, 1, 2, 3], []]"), "a group is empty"),
        (TWO.replace("3", "4"), "group 1 names rank 4, the job has 4 ranks"),
        (TWO.replace("3", "-1"), "group 1 names rank -1"),
        (TWO.replace("3", "1"), "rank 1 is in group 1 and in group 0"),
        (TWO.replace("3", "2"), "rank 2 is in group 1 twice"),
        (TWO.replace(", 3", ""), "rank 3 is in no group"),
        (TWO + "gbytes_per_s = 0", "gbytes_per_s is 0, it has to be a positive number"),
        (TWO + "latency_us = -1.0", "latency_us is -1.0"),
        (TWO + "latency_us = inf", "latency_us is inf"),
        (TWO + "latency_us = nan", "latency_us is nan"),
        (TWO + 'latency_us = "1"', "latency_us is '1'"),
        (TWO + "latency_us = true", "latency_us is True"),
        (
            TWO + '[[level]]\nname = "switch"\ngroups = [[0, 2], [1, 3]]',
            'level "node": group \\[0, 1\\] lies in several groups of level "switch"',
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(text, message):
    with pytest.raises(UsageError, match=f"^here.toml: .*{message}"):
        parse(text)


def test_a_file_for_fewer_ranks():
    with pytest.raises(UsageError, match="rank 4 is in no group, the job has 5 ranks"):
        parse(TWO, "aabbb")


def test_a_topology_has_a_level():
    with pytest.raises(UsageError, match="no level"):
        Topology(2, ())


def test_flat():
    assert flat(3).nodes == ((0, 1, 2),)


@pytest.mark.parametrize("path", sorted(HOSTFILES.glob("*.toml")), ids=lambda path: path.name)
def test_the_files_that_come_along_are_valid(path):
    ranks = (
        int(path.stem.split("-")[-1].removesuffix("ranks")) if path.stem.endswith("ranks") else 4
    )
    assert read(path.read_text(), ["host"] * ranks, path.name).size == ranks
