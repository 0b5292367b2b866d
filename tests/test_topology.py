import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import MPIRING, mpiring, run

from mpiring.errors import UsageError
from mpiring.report.levels import lines
from mpiring.topology import Level, Topology, by_hostname, flat
from mpiring.topology_file import read, to_toml
from mpiring.units import ranges

ROOT = Path(__file__).parent.parent
HOSTFILES = ROOT / "hostfiles"
TWO = 'version = 1\n[[level]]\nname = "node"\ngroups = [[0, 1], [2, 3]]\n'


def parse(text, hosts="aabb"):
    return read(text, list(hosts), "here.toml")


def test_nodes_are_the_level_of_that_name_or_the_innermost():
    socket, node = Level("socket", ((0,), (1,), (2, 3))), Level("node", ((0, 1), (2, 3)))
    topology = Topology(4, (socket, node))
    assert topology.nodes == node.groups
    assert topology.innermost == socket.groups
    assert topology.crossings((0, 1, 2, 3)) == 2
    assert Topology(4, (socket,)).nodes == socket.groups


def test_any_kind_of_sequence_and_of_whole_number_will_do():
    """As plans need it: hashable, and written alike on all ranks."""
    given = Topology(
        np.int64(4), [Level("node", np.array([[0, 1], [2, 3]]))], tour=iter([0, 2, 1, 3])
    )
    plain = Topology(4, (Level("node", ((0, 1), (2, 3))),), tour=(0, 2, 1, 3))
    assert given == plain
    assert hash(given) == hash(plain)
    assert repr(given) == repr(plain)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Level("node", [[0, 1.0]]), 'level "node": groups .* has to be lists of ranks'),
        (lambda: Level("node", [0, 1]), 'level "node": groups .* has to be lists of ranks'),
        (lambda: Level("node", None), 'level "node": groups .* has to be lists of ranks'),
        (lambda: Level("node", [[0, 1], []]), 'level "node": group 1 is empty'),
        (lambda: Level(["node"], [[0]]), r"level \['node'\]: its name has to be a text"),
        (lambda: Topology(2, [[[0, 1]]]), "levels is .*, it has to be a list of Level"),
        (lambda: Topology(2, Level("node", [[0, 1]])), "levels is .*, it has to be a list of"),
        (lambda: Topology(2.0, [Level("node", [[0, 1]])]), "size is 2.0, it has to be a number"),
        (lambda: Topology(2, [Level("node", [[0, 1]])], tour="ab"), "tour is 'ab', it has to be"),
    ],
)
def test_what_is_no_topology_is_refused_where_it_is_made(make, said):
    with pytest.raises(UsageError, match=said):
        make()


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


def test_groups_by_their_hosts():
    text = 'version = 1\n[[level]]\nname = "switch"\nhosts = ["n[2-3]", "m1,n1"]\n'
    hosts = ["n1", "n3.cluster", "m1", "n2"]
    assert parse(text, hosts).levels[0].groups == ((0, 2), (1, 3))


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ('"n[1-3]"', 'hosts is not a list of texts such as "n\\[1-3,7\\],m2"'),
        ("[1]", "hosts is not a list of texts"),
        ('["n[1-", "n3"]', "'n\\[1-' is not a range of hosts"),
        ('["n[1-2]", "n[2-3]"]', "host n2 is in group 1 and in group 0"),
        ('["n1", "n3"]', "host n2 of rank 1 is in no group"),
        ('["n1", "n[2-5]"]', "group 1 names host n4, which no rank runs on"),
        ('["n1,n1.a", "n[2-3]"]', "group 0 names host n1.a, which no rank runs on"),
    ],
)
def test_hosts_that_are_no_groups(lists, said):
    text = f'version = 1\n[[level]]\nname = "switch"\nhosts = {lists}\n'
    with pytest.raises(UsageError, match=f'^here.toml: level "switch": {said}'):
        parse(text, ["n1", "n2", "n3"])


def test_hosts_are_known_in_a_job_alone():
    for key in ('hosts = ["n1"]', 'by = "hostname"'):
        text = f'version = 1\n[[level]]\nname = "node"\n{key}'
        with pytest.raises(UsageError, match='level "node": hostnames are known in a job alone'):
            parse(text, [None])


def test_levels_inside_the_nodes_are_kept_if_they_tell_something():
    nodes = Level("node", ((0, 1, 2, 3), (4, 5, 6, 7)))
    machine = Topology(8, (nodes, Level("switch", ((0, 1, 2, 3, 4, 5, 6, 7),))))
    numa = Level("numa", ((0, 1), (2, 3), (4, 5), (6, 7)), source="MPI")
    across = Level("across", ((0, 1), (2, 3), (4, 6), (5, 7)))
    alone = Level("cache", tuple((rank,) for rank in range(8)))
    whole = replace(nodes, name="socket")
    for levels in ([numa], [numa, alone], [alone, numa, across], [numa, whole]):
        assert machine.with_inside(levels).levels == (numa, nodes)
    socket = replace(numa, name="socket")
    assert machine.with_inside([numa, socket]).levels == (socket, nodes)
    cache = Level("cache", ((0, 1), (2, 3), (4,), (5,), (6,), (7,)))
    assert machine.with_inside([cache, numa]).levels == (cache, numa, nodes)
    assert machine.with_inside([numa]).inside_nodes == (numa,)
    assert machine.with_inside([]).inside_nodes == ()


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
        (TWO + 'by = "hostname"', "give one of groups, hosts and by"),
        ('version = 1\n[[level]]\nname = "node"', "give one of groups, hosts and by"),
        ('version = 1\n[[level]]\nname = "node"\nby = "rack"', "by is 'rack'"),
        (TWO.replace("[[0, 1], [2, 3]]", "[0, 1]"), "not a list of lists"),
        (TWO.replace("[[0, 1], [2, 3]]", '[["0"]]'), "not a list of lists"),
        (TWO.replace("[[0, 1], [2, 3]]", "[[0, 1.5]]"), "not a list of lists"),
        (TWO.replace("[[0, 1], [2, 3]]", "[[true]]"), "not a list of lists"),
        (TWO.replace("[[0, 1], [2, 3]]", "[]"), "groups is empty"),
        (TWO.replace("[[0, 1], [2, 3]]", "[[0, 1, 2, 3], []]"), "group 1 is empty"),
        (TWO.replace("3", "4"), "group 1 names rank 4, the job has 4 ranks"),
        (TWO.replace("3", "-1"), "group 1 names rank -1"),
        (TWO.replace("3", "1"), "rank 1 is in group 1 and in group 0"),
        (TWO.replace("3", "2"), "rank 2 is in group 1 twice"),
        (TWO.replace(", 3", ""), "rank 3 is in no group"),
        (TWO + TWO[12:], '2 levels are called "node"'),
        (TWO + "gbytes_per_s = 0", "gbytes_per_s is 0, it has to be a positive number"),
        (TWO + "latency_us = -1.0", "latency_us is -1.0"),
        (TWO + "latency_us = inf", "latency_us is inf"),
        (TWO + "latency_us = nan", "latency_us is nan"),
        (TWO + 'latency_us = "1"', "latency_us is '1'"),
        (TWO + "latency_us = true", "latency_us is True"),
        (
            TWO + '[[level]]\nname = "switch"\ngroups = [[0, 2], [1, 3]]',
            'level "node": ranks 0 and 1 are in group 0, but in groups 0 and 1 of level "switch"',
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(text, message):
    with pytest.raises(UsageError, match=f"^here.toml: .*{message}"):
        parse(text)


def test_one_rank_is_no_plural():
    with pytest.raises(UsageError, match=r"rank 0 is in no group, the job has 1 rank$"):
        Topology(1, (Level("node", ()),))
    with pytest.raises(UsageError, match=r"names rank 1, the job has 1 rank$"):
        Topology(1, (Level("node", ((0, 1),)),))


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


@pytest.mark.parametrize("tour", [None, (2, 0, 1, 3)])
def test_what_is_written_is_read_back_as_it_is(tour):
    levels = (
        Level('a "node" \\ \u00e9', ((3, 1), (0, 2)), 1e-9, None),
        Level("switch", ((0, 1, 2, 3),), 12.5, 0.1),
    )
    topology = Topology(4, levels, "there", tour)
    assert read(to_toml(topology), ["h"] * 4, "there") == topology


@pytest.mark.parametrize("tour", ["[0, 1, 2]", "[0, 1, 2, 2]", "[0, 1, 2, 4]"])
def test_a_tour_that_is_none(tour):
    with pytest.raises(UsageError, match="f: topology: tour is not each of the ranks once: "):
        read(f"version = 1\ntour = {tour}\n{ONE_LEVEL}", ["h"] * 4, "f")
    with pytest.raises(UsageError, match="f: tour is not a list of ranks"):
        read(f"version = 1\ntour = 'abc'\n{ONE_LEVEL}", ["h"] * 4, "f")


ONE_LEVEL = '[[level]]\nname = "node"\ngroups = [[0, 1, 2, 3]]\n'


def test_the_tree_of_levels():
    file = (ROOT / "hostfiles/two-switches-8ranks.toml").read_text()
    topology = read(file, [f"h{rank // 2}" for rank in range(8)], "it")
    affinity = [frozenset({rank % 2}) for rank in range(8)]
    assert list(lines(topology, [f"h{rank // 2}" for rank in range(8)], affinity)) == [
        "8 ranks: 4 x node, 2 x switch (from it)",
        "switch 0: ranks 0-3 on 2 hosts; links: 1.25 GB/s, 2 us",
        "  node 0: ranks 0-1 on h0, 2 cores; links: 8 GB/s, 0.5 us",
        "  node 1: ranks 2-3 on h1, 2 cores; links: 8 GB/s, 0.5 us",
        "switch 1: ranks 4-7 on 2 hosts; links: 1.25 GB/s, 2 us",
        "  node 2: ranks 4-5 on h2, 2 cores; links: 8 GB/s, 0.5 us",
        "  node 3: ranks 6-7 on h3, 2 cores; links: 8 GB/s, 0.5 us",
    ]
    assert ranges([7, 0, 1, 2, 5]) == "0-2,5,7"


def test_show_and_write(tmp_path):
    shown = mpiring(2, "topology", "show")
    assert shown.status == 0
    assert re.match(
        r"2 ranks: 1 x node \(from MPI\)\nnode 0: ranks 0-1 on .*, \d+ cores?\n", shown.stdout
    )
    file = tmp_path / "t.toml"
    given = "hostfiles/two-nodes-dealt-4ranks.toml"
    assert (
        mpiring(4, "topology", "write", file, "--topology", given).stdout == f"{file} is written\n"
    )
    written = read(file.read_text(), ["h"] * 4, "f")
    assert written.levels == read((ROOT / given).read_text(), ["h"] * 4, "f").levels
    again = mpiring(4, "topology", "show", "--topology", file)
    assert "ranks 0,2 on" in again.stdout
    wrong = mpiring(3, "topology", "show", "--topology", file)
    assert wrong.status == 2
    assert "names rank 3, the job has 3 ranks" in wrong.stderr
    assert mpiring(2, "topology", "write", "/no/such/t.toml").status == 2


BINDING = {"openmpi": ["--bind-to", "core:overload-allowed"], "impi": []}
"""How each launcher binds ranks to cores; MPICH's asks for it as `-bind-to core`."""


def test_what_mpi_knows_of_the_inside_of_a_node_is_shown_and_written(tmp_path):
    """On a machine that hwloc is told has two sockets of a core each."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        pytest.skip("needs two cores")
    two_sockets = {
        "HWLOC_SYNTHETIC": f"pack:2 [numa] l3:1 core:1 pu:1(indexes={cores[0]},{cores[1]})",
        "HWLOC_THISSYSTEM": "1",
    }
    bind = BINDING.get(os.environ.get("MPIRING_MPI", "mpich"), ["-bind-to", "core"])
    command = ["mpirun", "-n", "4", *bind, *MPIRING]
    shown = run([*command, "topology", "show"], **two_sockets)
    first, node, *sockets, note = shown.stdout.splitlines()
    assert first == "4 ranks: 2 x socket, 1 x node (from MPI)"
    assert node.startswith("node 0: ranks 0-3 on ")
    assert {re.findall(r"ranks (\S+) on .*, 1 core$", line)[0] for line in sockets} in (
        {"0-1", "2-3"},
        {"0,2", "1,3"},
    )
    assert note == "Algorithms heed what is inside the nodes if a --topology file has it."
    # Nothing of it is in what algorithms run on, unless the file that is written says so.
    file = tmp_path / "t.toml"
    assert run([*command, "topology", "write", file], **two_sockets).status == 0
    bench = ["bench", "-q", "-a", "tree", "-s", "64", "--repetitions", "3", "--format", "json"]
    for more, names, rounds in ([], ["node"], 2), (["--topology", file], ["socket", "node"], 4):
        document = json.loads(run([*command, *bench, *more], **two_sockets).stdout)
        levels = document["environment"]["topology"]["levels"]
        assert [level["name"] for level in levels] == names
        assert document["points"][0]["rounds"] == rounds
        assert document["points"][0]["check"] == {"ok": True}


def test_a_file_that_rank_0_alone_has_is_enough(tmp_path):
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    there.mkdir()
    elsewhere.mkdir()
    (there / "t.toml").write_text(TWO.replace("[[0, 1], [2, 3]]", "[[0], [1]]"))
    show = [*MPIRING, "topology", "show", "--topology", "t.toml"]

    def shown(first, second):
        return run(
            ["mpirun", "-n", "1", "-wdir", first, *show, ":", "-n", "1", "-wdir", second, *show],
            PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        )

    assert shown(there, elsewhere).stdout.startswith("2 ranks: 2 x node (from t.toml)\n")
    missing = shown(elsewhere, there)
    assert missing.status == 2
    assert missing.stderr.count("t.toml: No such file or directory") == 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "t.conf",
            "SwitchName=a Nodes=elsewhere\n",
            "t.conf: host .* of rank 0 is below no switch",
        ),
        ("t.yaml", "a: [", "t.yaml:1: not YAML"),
    ],
)
def test_a_file_that_is_wrong_is_said_once_and_all_leave_with_2(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    finished = mpiring(3, "bench", "--topology", tmp_path / name)
    assert finished.status == 2
    assert len(re.findall(said, finished.stderr)) == 1
    assert finished.stderr.count("mpiring: error: ") == 1
    assert finished.stdout == ""


def test_addresses_of_slurm_that_contradict_mpi_are_left_out_and_it_is_said():
    def task(leaf, *command):
        told = [f"SLURM_TOPOLOGY_ADDR={leaf}.n{leaf}", "SLURM_TOPOLOGY_ADDR_PATTERN=switch.node"]
        return ["-n", "1", "env", *told, *MPIRING, *command]

    shown = run(["mpirun", *task("a", "topology", "show"), ":", *task("b", "topology", "show")])
    first, _, left_out = shown.stdout.splitlines()
    assert first == "2 ranks: 1 x node (from MPI)"
    assert left_out.startswith("SLURM_TOPOLOGY_ADDR is left out: ")
    assert left_out.endswith(
        'ranks 0 and 1 are in group 0, but in groups 0 and 1 of level "switch"'
    )


@pytest.mark.pure
def test_a_run_over_slurms_file_is_resumed(tmp_path):
    host = mpiring(1, "topology", "show").stdout.split(" on ")[1].split(",")[0]
    conf, result = tmp_path / "t.conf", tmp_path / "r.json"
    conf.write_text(f"SwitchName=a Nodes={host}\n")
    command = ["bench", "-q", "-a", "ring", "--repetitions", "3", "-o", result]
    assert mpiring(2, *command, "-s", "8", "--topology", conf).status == 0
    assert mpiring(2, "bench", "-q", "-s", "16", "--resume", result, "-o", result).status == 0
    document = json.loads(result.read_text())
    assert {point["nbytes"] for point in document["points"]} == {8, 16}
    topology = document["environment"]["topology"]
    assert topology["source"] == str(conf)
    assert [level["source"] for level in topology["levels"]] == ["MPI"]
    conf.write_text("SwitchName=a Nodes=elsewhere\n")
    assert mpiring(2, "bench", "-q", "-s", "32", "--resume", result, "-o", result).status == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[[0, 1], [2, 3]]", "[[0, 1], [2, 3]]\ngbytes_per_s = " + 400 * "9"), "gbytes_per_s is"),
        (("[[0, 1], [2, 3]]", "[[0, 1], [2, 3]]\nlatency_us = " + 5000 * "9"), "not TOML"),
        (("groups = [[0, 1], [2, 3]]", 'hosts = ["n[1-99999999999]"]'), "too many hosts"),
        (("groups = [[0, 1], [2, 3]]", 'hosts = ["n[1-9999999],a"]'), "are 10000000 hosts"),
        (('"node"', '"top"'), 'level "top": a name is printable'),
        (('"node"', '"a=b"'), 'level "a=b": a name is printable'),
        (('"node"', '"a\\nb"'), r'level "a\nb": a name is printable'),
        (("[[0, 1], [2, 3]]", "[[0, 1], []]"), "group 1 is empty"),
        (("version = 1", "version = 1\ntour = [0, 1, 2]"), "rank 3 is missing"),
        (("version = 1", "version = 1\ntour = [0, 1, 2, 3, 3]"), "some are there twice"),
    ],
)
@pytest.mark.pure
def test_extremes_in_a_file_are_one_sentence(change, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        parse(TWO.replace(*change))


@pytest.mark.parametrize("name", ["w.conf", "w.yaml", "w"])
def test_a_file_is_written_that_can_be_read_back(tmp_path, name):
    finished = mpiring(1, "topology", "write", tmp_path / name)
    assert finished.status == 2
    assert "the ending has to be .toml" in finished.stderr
    assert not (tmp_path / name).exists()
