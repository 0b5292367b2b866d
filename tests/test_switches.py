"""What Slurm's files and addresses say of the switches above the nodes."""

import re
from pathlib import Path

import pytest

from mpiring.errors import UsageError
from mpiring.hosts import expand, meant
from mpiring.switch_files import read_conf, read_yaml
from mpiring.switches import level_names, places, read_address, with_addresses
from mpiring.topology import Level, Topology
from mpiring.topology_file import read

pytestmark = pytest.mark.pure

CONF = """\
# Four leaves below two spines, below one core switch.
SwitchName=leaf1 Nodes=n[1-2] LinkSpeed=100
switchname=leaf2 nodes="n3,n4"   # keys in any case, values in quotes
SwitchName=leaf3 Nodes=n5
SwitchName=leaf4 \\
    Nodes=n[6-8]

SwitchName=spine1 Switches=leaf[1-2]
SwitchName=spine2 Switches=leaf[3-4]
SwitchName=core Switches=spine[1-2]
"""
YAML = """\
---
- topology: other
  cluster_default: false
  block: {block_sizes: [4], blocks: [{block: b1, nodes: "n[1-4]"}]}
- topology: ours
  cluster_default: true
  tree:
    switches:
      - {switch: core, children: "spine[1-2]"}
      - {switch: spine1, children: "leaf[1-2]"}
      - {switch: spine2, children: "leaf[3-4]"}
      - {switch: leaf1, nodes: "n[1-2]"}
      - {switch: leaf2, nodes: "n3,n4"}
      - {switch: leaf3, nodes: n5}
      - switch: leaf4
        nodes: n[6-8]
"""
HOSTS = ["n1", "n1", "n3", "n2", "n5", "n6"]


def conf(text, hosts):
    return read(text, hosts, "t.conf")


@pytest.mark.parametrize(("text", "source"), [(CONF, "t.conf"), (YAML, "t.yaml"), (YAML, "t.YML")])
def test_the_levels_above_the_nodes(text, source):
    topology = read(text, HOSTS, source)
    assert topology.levels == (
        Level("node", ((0, 1), (2,), (3,), (4,), (5,))),
        Level("switch", ((0, 1, 3), (2,), (4,), (5,))),
        Level("switch2", ((0, 1, 2, 3), (4, 5))),
    )
    assert topology.source == source
    assert [topology.origin(level) for level in topology.levels] == ["hostnames", source, source]


def test_the_file_that_comes_along_is_valid():
    text = (Path(__file__).parent.parent / "hostfiles/two-switches.conf").read_text()
    hosts = [f"host{1 + rank // 2}" for rank in range(8)]
    assert conf(text, hosts).levels[1] == Level("switch", ((0, 1, 2, 3), (4, 5, 6, 7)))


def test_the_nodes_are_those_that_were_detected():
    nodes = Level("node", ((0,), (1,), (2,), (3,)), source="MPI")
    detected = Topology(4, (nodes, Level("switch", ((0, 1, 2), (3,)))), "MPI")
    topology = read(CONF, ["n1", "n1", "n3", "n4"], "t.conf", detected)
    assert topology.levels == (nodes, Level("switch", ((0, 1), (2, 3))))
    assert [topology.origin(level) for level in topology.levels] == ["MPI", "t.conf"]
    together = Topology(4, (Level("node", ((0, 1, 2, 3),)),), "MPI")
    said = 't.conf: level "node": ranks 0 and 2 are in group 0, but in groups 0 and 1 of level "sw'
    with pytest.raises(UsageError, match=said):
        read(CONF, ["n1", "n1", "n3", "n4"], "t.conf", together)


def test_all_ranks_below_one_switch_or_each_node_below_its_own_are_no_levels():
    assert [level.name for level in conf(CONF, ["n1", "n2"]).levels] == ["node"]
    assert [level.name for level in conf(CONF, ["n1", "n3"]).levels] == ["node"]
    assert [level.name for level in conf(CONF, ["n1", "n3", "n5"]).levels] == ["node", "switch2"]


def test_a_switch_that_skips_a_height_is_inside_for_itself():
    text = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\nSwitchName=up Switches=a\n"
    text += "SwitchName=top Switches=up,b"
    assert places(read_conf(text, "f"), ["n1", "n3"], "f") == [
        ("a", "up", "top"),
        ("b", "b", "top"),
    ]


def test_a_switch_without_nodes_counts_for_the_height():
    switches = "    - {switch: a, nodes: n1}\n    - {switch: empty}\n"
    switches += "    - {switch: up, children: empty}\n    - {switch: top, children: 'a,up'}\n"
    assert places(read_yaml(TREE + switches, "f"), ["n1"], "f") == [("a", "a", "top")]


def test_spines_above_the_same_leaves_are_one():
    text = "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=s1 Switches=a,b\n"
    text += "SwitchName=s2 Switches=a,b"
    assert places(read_conf(text, "f"), ["n1", "n2"], "f") == [("a", "s1,s2"), ("b", "s1,s2")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f.conf: names no switch"),
        ("# SwitchName=a Nodes=n1\n", "f.conf: names no switch"),
        ("SwitchName=a Nodes=n[1-3]\nSwitchName", "f.conf:2: 'SwitchName' is not KEY=VALUE"),
        ("SwitchName=a Nodes=n1 n2", "f.conf:1: 'n2' is not KEY=VALUE"),
        ("\nSwitchName= Nodes=n1", "f.conf:2: '=n1' is not KEY=VALUE"),
        ('SwitchName=a Nodes="n1', "f.conf:1: 'Nodes=\"n1' is not KEY=VALUE"),
        ("Include other.conf", "f.conf:1: 'Include' is not KEY=VALUE"),
        ("SwitchName=a Node=n1", "f.conf:1: unknown key 'Node', there are SwitchName, Nodes"),
        ("BlockName=b Nodes=n1", "f.conf:1: BlockName is of topology/block"),
        ("SwitchName=a Nodes=n1 nodes=n2", "f.conf:1: nodes stands there twice"),
        ("Nodes=n1", "f.conf:1: there is no SwitchName"),
        ("SwitchName=a", "f.conf:1: a needs Nodes, or else Switches"),
        ("SwitchName=a Nodes=n1 Switches=b", "f.conf:1: a needs Nodes, or else Switches"),
        ("SwitchName=a Nodes=n[1-", "f.conf:1: 'n\\[1-' is not a range of hosts"),
        ("SwitchName=a Nodes=n[3-1]", "f.conf:1: 'n\\[3-1\\]' is not a range of hosts"),
        ("SwitchName=a Nodes=@all", "f.conf:1: '@all' is not a list of names"),
        (
            "SwitchName=a Nodes=n[1-3]\n\nSwitchName=a Nodes=n4",
            "f.conf:3: a is described already, by f.conf:1",
        ),
        (
            "SwitchName=a Nodes=n[1-3]\nSwitchName=s Switches=a,b",
            "f.conf:2: b is below s, and described nowhere",
        ),
        (
            "SwitchName=a Switches=b\nSwitchName=b Switches=a",
            "f.conf:.: (a is below b is below a|b is below a is below b)",
        ),
        (
            "SwitchName=a Nodes=n[1-2]\n\\\nSwitchName=b Nodes=n[2-3]",
            "f.conf:1: n2 and n1 are below a, and only n2 is below b as well .f.conf:2.",
        ),
        (
            "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n4",
            "f.conf: host n3 of rank 2 is below no switch",
        ),
    ],
)
def test_what_is_wrong_in_a_topology_conf(text, said):
    with pytest.raises(UsageError, match=f"^{said}"):
        read(text, ["n1", "n2", "n3"], "f.conf")


TREE = "- topology: t\n  tree:\n    switches:\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a: [", "f.yaml:1: not YAML: "),
        ("- a: b\n  c: d: e\n", "f.yaml:2: not YAML: mapping values are not allowed here"),
        ("- !!python/object/apply:os.abort []", "f.yaml: entry 1 of the list has no name"),
        ("- !!timestamp 2026-13-45", "f.yaml: entry 1 of the list has no name"),
        ("[" * 5000, "f.yaml: not YAML: "),
        ("", "f.yaml: there is no list of entries with 'topology'"),
        ("tree: {}", "f.yaml: there is no list of entries with 'topology'"),
        ("[]", "f.yaml: there is no list of entries with 'topology'"),
        ("- tree: {}", "f.yaml: entry 1 of the list has no name as 'topology'"),
        ("- topology: [3]", "f.yaml: entry 1 of the list has no name as 'topology'"),
        ("- topology: a\n  flat: true", 'f.yaml: topology "a" has no tree of switches'),
        (
            "- topology: a\n  flat: true\n- topology: b\n  tree: {}",
            "f.yaml: there are a, b, and none has cluster_default: true",
        ),
        ("- topology: a\n  tree: {}", "f.yaml: topology \"a\": there is no list .* 'switch'"),
        (TREE + "    - {nodes: n1}", 'f.yaml: topology "t": entry 1 of the list has no name'),
        (TREE + "    - {switch: a, node: n1}", "f.yaml: .*switch \"a\": unknown key 'node'"),
        (
            TREE + "    - {switch: a, nodes: [n1]}",
            r'f.yaml: .*switch "a": nodes is \[\'n1\'\], it has',
        ),
        (
            TREE + "    - {switch: a, nodes: n1, children: b}",
            'f.yaml: .*switch "a": it has nodes and',
        ),
        (TREE + "    - {switch: a, nodes: 'n['}", 'f.yaml: .*switch "a": .* not a range of hosts'),
        (TREE + "    - {switch: a}", "f.yaml: host n1 of rank 0 is below no switch"),
        (
            TREE + "    - {switch: a, nodes: n1}\n    - {switch: a, nodes: n2}",
            'f.yaml: topology "t": switch "a": a is described already, by f.yaml: topology "t"',
        ),
    ],
)
def test_what_is_wrong_in_a_topology_yaml(text, said):
    with pytest.raises(UsageError, match=f"^{said}"):
        read(text, ["n1", "n2", "n3"], "f.yaml")


def test_a_tree_that_is_the_only_topology_needs_no_default():
    assert len(read_yaml(TREE + "    - {switch: a, nodes: 'n[1-3]'}\n    - {switch: b}", "f")) == 2


def test_hosts_are_known_in_a_job_alone():
    with pytest.raises(UsageError, match="hostnames are known in a job alone"):
        conf(CONF, [None, None])


def test_full_and_short_names_mean_the_same_host_unless_they_could_mean_two():
    assert meant(["n1.a", "n2", "n3", "n9"], ["n1", "n2.a", "n3"]) == {
        "n1.a": "n1",
        "n2": "n2.a",
        "n3": "n3",
    }
    assert meant(["n1.a", "n1.b"], ["n1.a", "n1.b"]) == {"n1.a": "n1.a", "n1.b": "n1.b"}
    assert meant(["n1.a"], ["n1.b"]) == {}
    assert meant(["10.0.0.1"], ["10", "10.0.0.2"]) == {}
    for hosts, names, said in [
        (["n1.a", "n1.b"], ["n1"], "n1 could be host n1.a or host n1.b"),
        (["n1", "n1.a"], ["n1"], "n1 could be host n1 or host n1.a"),
        (["n1"], ["n1.a", "n1.b"], "host n1 could be n1.a or n1.b"),
    ]:
        with pytest.raises(UsageError, match=said):
            meant(hosts, names)
    with pytest.raises(UsageError, match=r"t.conf: n1 could be host n1.a or host n1.b"):
        conf(CONF, ["n1.a", "n1.b"])


def test_lists_in_brackets():
    assert expand("tux[08-10,12],m2") == ["m2", "tux08", "tux09", "tux10", "tux12"]
    assert expand("") == []
    for text in ("@all", "n*", "n[1-3]!n2", "n 1", "/n1/"):
        with pytest.raises(UsageError, match="is not a list of names"):
            expand(text)


def test_an_address():
    assert read_address("core.spine1.leaf2.n3", "switch.switch.switch.node") == (
        "leaf2",
        "spine1",
        "core",
    )
    assert read_address("core..leaf2.n3.a.b", "switch.switch.switch.node") == (
        "leaf2",
        "leaf2",
        "core",
    )
    assert read_address("n3.a", "node") == ()
    for text, pattern in [("n3", "switch.node"), ("a.b", "switch.switch"), ("", "switch.node")]:
        with pytest.raises(UsageError, match="does not fit the pattern"):
            read_address(text, pattern)
    assert [*level_names(["switch", "switch", "zone"])] == ["switch", "switch2", "zone"]


PATTERN = "switch.switch.node"
NODES = Topology(5, (Level("node", ((0, 1), (2,), (3,), (4,)), source="MPI"),), "MPI")
NAMES = ["n1", "n1", "n2", "n3", "n4"]
TOLD = ["c.a.n1", "c.a.n1", "c.b.n2", "c.a.n3", "c.b.n4"]


def test_levels_from_the_addresses_of_the_ranks():
    topology = with_addresses(NODES, NAMES, [(text, PATTERN) for text in TOLD])
    assert topology.levels == (*NODES.levels, Level("switch", ((0, 1, 3), (2, 4))))
    assert [*map(topology.origin, topology.levels)] == ["MPI", "SLURM_TOPOLOGY_ADDR"]
    assert topology.left_out == ()
    plain = with_addresses(NODES, NAMES, [(name, "node") for name in NAMES])
    assert plain == NODES
    assert plain.left_out == ()
    assert with_addresses(NODES, NAMES, [("", "")] * 5) is NODES


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([("c.a.n1", PATTERN)] * 5, "n1 and n2 have the same, c.a.n1"),
        (
            [*[(text, PATTERN) for text in TOLD[:4]], ("", "")],
            "c.a.n1 .* on rank 0, and not there on rank 4",
        ),
        ([("", ""), *[(text, PATTERN) for text in TOLD[1:]]], "on rank 1, and not there on rank 0"),
        ([*[(text, PATTERN) for text in TOLD[:4]], ("a.n4", "switch.node")], "on rank 4"),
        ([(text, "") for text in TOLD], "does not fit the pattern"),
        (
            [(f"{text}.{host}", "switch.node") for text, host in zip("aaaab", NAMES, strict=True)],
            'one group of level "switch" has 3 of level "node", another 1',
        ),
        (
            [(text, PATTERN) for text in ["c.a.n1", "c.b.n0", *TOLD[2:]]],
            'level "node": ranks 0 and 1 are in group 0, but in groups 0 and 1 of level "switch"',
        ),
        (
            [(text, PATTERN) for text in ["c.a.n1", "c.a.n1", "d.a.n2", "c.b.n3", "d.b.n4"]],
            'level "switch": ranks 0 and 2 are in group 0, but in groups 0 and 1 of level "sw',
        ),
    ],
)
def test_addresses_that_are_no_use_are_left_out_and_it_is_said(told, said):
    topology = with_addresses(NODES, NAMES, told)
    assert topology == NODES
    (reason,) = topology.left_out
    assert re.match(f"SLURM_TOPOLOGY_ADDR is left out: .*{said}", reason), reason
