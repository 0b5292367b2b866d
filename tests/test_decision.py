"""Decision tables: one rule at each size, the nearest row, and files that say what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapes import options_of

from mpiring import ALGORITHMS, Level, Options, Topology, UsageError, built_in
from mpiring.decision import (
    BUFFERS,
    FARTHEST,
    NODE_SHARED,
    ORDINARY,
    THREAD_LEVELS,
    Pick,
    Row,
    Rule,
    Situation,
    Table,
    choose,
    merged,
)
from mpiring.decision_file import SCHEMA, digest, read, to_toml
from mpiring.topology import blocks, flat

pytestmark = pytest.mark.pure

NATIVE, RING, NAIVE = Pick("native"), Pick("ring", Options(segment=4096)), Pick("naive")
HERE = Situation("MPICH", 1, 2, 4, ORDINARY)
RULES = (Rule(8, NAIVE), Rule(1 << 20, RING), Rule(None, NATIVE))


def table(*situations, source="d.toml"):
    return Table(tuple(Row(situation, RULES) for situation in situations), source)


def test_a_rule_holds_up_to_its_size():
    row = Row(HERE, RULES)
    sizes = [0, 8, 9, 1 << 20, (1 << 20) + 1, 1 << 62]
    assert [row.pick(nbytes) for nbytes in sizes] == [NAIVE, NAIVE, RING, RING, NATIVE, NATIVE]


def test_equal_neighbours_are_one_rule():
    picks = [(8, NAIVE), (64, RING), (512, RING), (4096, NATIVE), (8192, NATIVE)]
    assert merged(picks) == (Rule(8, NAIVE), Rule(512, RING), Rule(None, NATIVE))
    assert merged([(8, RING)]) == (Rule(None, RING),)


def test_the_situation_of_a_job_is_that_of_its_largest_node():
    nodes = Topology(5, (Level("node", ((0, 1), (2, 3, 4))),))
    here = ("MPICH", 2, 3, 8, NODE_SHARED, "multiple")
    assert Situation.of(nodes, "MPICH", 8, NODE_SHARED) == here
    assert Situation.of(blocks(8, 4), "MPICH", 2, ORDINARY)[1:3] == (4, 2)
    assert Situation.of(flat(1), "MPICH", 2, ORDINARY)[1:3] == (1, 1)


def test_distance_is_in_doublings():
    assert HERE.distance(HERE) == 0
    assert HERE.distance(HERE._replace(ranks_per_node=4)) == 1
    assert HERE.distance(HERE._replace(ranks_per_node=1, itemsize=8)) == 2
    assert HERE.distance(HERE._replace(thread_level="single")) == 1
    one = HERE._replace(thread_level="serialized", itemsize=8)
    assert one.distance(HERE._replace(thread_level="single")) == 1, "neither takes locks"
    many = HERE._replace(nodes=4)
    assert many.distance(many._replace(nodes=16, itemsize=2)) == 3
    assert many.distance(HERE._replace(nodes=2)) == HERE._replace(nodes=2).distance(many) == 1


@pytest.mark.parametrize(
    "changes", [{"mpi_library": "Open MPI"}, {"nodes": 2}, {"buffers": NODE_SHARED}], ids=str
)
def test_what_is_of_another_kind_says_nothing(changes):
    other = HERE._replace(**changes)
    assert HERE.distance(other) == other.distance(HERE) == float("inf")
    assert table(other).nearest(HERE) is None


def test_the_nearest_row_is_taken_and_of_equals_the_first():
    two, four, sixteen = (HERE._replace(ranks_per_node=ranks) for ranks in (2, 4, 16))
    known = table(four, two, sixteen)
    assert known.nearest(two).situation == two
    assert known.nearest(HERE._replace(ranks_per_node=8)).situation == four
    assert known.nearest(HERE._replace(ranks_per_node=32, itemsize=2)).situation == sixteen
    assert known.nearest(HERE._replace(ranks_per_node=64)).situation == sixteen
    assert known.nearest(HERE._replace(ranks_per_node=65)) is None
    assert FARTHEST == 2


def test_a_row_takes_the_place_of_the_one_for_its_situation():
    other = HERE._replace(itemsize=8)
    row = Row(other, (Rule(None, NAIVE),))
    assert table(other, HERE).with_row(row).rows == (Row(HERE, RULES), row)


def test_the_reason_names_the_table_and_what_does_not_fit():
    mine, theirs = table(HERE._replace(itemsize=8)), table(HERE, source="the built-in table")
    assert choose([mine, theirs], HERE._replace(itemsize=8), 8) == (NAIVE, "by d.toml")
    pick, reason = choose([mine, theirs], HERE._replace(ranks_per_node=3), 9)
    assert (pick, reason) == (
        RING,
        "by d.toml; its nearest rules are for 2 ranks per node, 8-byte elements",
    )
    far = HERE._replace(itemsize=1)
    assert choose([mine, theirs], far, 2 << 20) == (
        NATIVE,
        "by the built-in table, since d.toml has no rule near this job; its nearest rules are for"
        " 4-byte elements",
    )
    nowhere = Situation("Open MPI", 2, 8, 4, ORDINARY)
    assert choose([mine, theirs], nowhere, 8) == (
        NATIVE,
        "since neither d.toml nor the built-in table has a rule near 2 nodes with 8 ranks each,"
        " 4-byte elements, ordinary arrays, Open MPI",
    )


def test_a_row_in_words():
    assert Row(HERE, RULES).sentence() == (
        "On 1 node with 2 ranks, 4-byte elements, ordinary arrays, MPICH: up to 8 B naive; up to"
        " 1 MiB ring segment=4096; above, native."
    )
    only = Row(HERE._replace(nodes=2), (Rule(None, NATIVE),))
    assert only.sentence().endswith("with 2 ranks each, 4-byte elements, ordinary arrays, MPICH:"
    " at any size native.")  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([], "rules is empty"),
        ([Rule(8, RING)], "a gap: no rule is for sizes above 8 B"),
        ([Rule(None, RING), Rule(None, NATIVE)], "rule 1 is for all that is larger, and is not"),
        ([Rule(8, RING), Rule(8, NAIVE), Rule(None, NATIVE)], "rule 2 is up to 8 B, and so is"),
        ([Rule(8, RING), Rule(2, NAIVE), Rule(None, NATIVE)], "the one before is up to 8 B"),
        ([Rule(None, Pick("auto"))], "auto cannot pick itself"),
    ],
)
def test_rules_that_leave_out_a_size_or_hold_twice_are_refused(rules, said):
    with pytest.raises(UsageError, match=said):
        Row(HERE, tuple(rules))


PICKS = [
    Pick(name, options)
    for name, algorithm in ALGORITHMS.items()
    if name != "auto"
    for options in [*options_of(algorithm, 6), Options(segment=1 << 17)]
    if set(options.chosen) <= algorithm.heeded
]
SITUATIONS = st.builds(
    Situation,
    st.text(min_size=1),
    *[st.integers(1, 1 << 40)] * 3,
    st.sampled_from(BUFFERS),
    st.sampled_from(THREAD_LEVELS),
)


@st.composite
def rows(draw):
    sizes = sorted(draw(st.sets(st.integers(0, 2**63 - 1), max_size=4)))
    rules = tuple(Rule(size, draw(st.sampled_from(PICKS))) for size in (*sizes, None))
    measured = {"started": draw(st.text()), "cores_per_node": [2], "times_us": [{"size": "8 B"}]}
    return Row(draw(SITUATIONS), rules, draw(st.sampled_from([{}, measured])))


@given(st.lists(rows(), min_size=1, max_size=3, unique_by=lambda row: row.situation))
def test_what_is_written_is_read_again(made):
    known = Table(tuple(made), "d.toml")
    assert read(to_toml(known), "d.toml") == known


def test_a_digest_is_of_the_rules():
    known = table(HERE)
    when = Table((Row(HERE, RULES, {"started": "today"}),), "elsewhere.toml")
    assert digest(known) == digest(when)
    others = [table(HERE._replace(nodes=2)), Table((Row(HERE, RULES[1:]),), "d.toml")]
    assert digest(known) not in map(digest, others)


def test_every_algorithm_can_be_picked():
    assert {pick.algorithm for pick in PICKS} == set(ALGORITHMS) - {"auto"}


GOOD = f"""
schema = "{SCHEMA}"
[[situation]]
mpi_library = "MPICH"
nodes = 1
ranks_per_node = 2
itemsize = 4
buffers = "ordinary"
rules = [
    {{ up_to = "8", algorithm = "naive" }},
    {{ up_to = "1MiB", algorithm = "ring", segment = 4096 }},
    {{ algorithm = "native" }},
]
"""


def test_a_file_is_a_table():
    assert read(GOOD, "d.toml") == table(HERE)


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("schema", "= 1 schema", "not TOML: "),
        (SCHEMA, "mpiring.decision/2", "schema is 'mpiring.decision/2', this program reads"),
        (f'"{SCHEMA}"', "1", "schema is 1, this program"),
        (GOOD, "", "schema is None, this program"),
        (GOOD, f'schema = "{SCHEMA}"', "situation is missing"),
        (GOOD, f'schema = "{SCHEMA}"\nsituation = []', "situation is empty"),
        (GOOD, f'schema = "{SCHEMA}"\nsituation = 3', "situation is 3 instead of a list"),
        (GOOD, f'schema = "{SCHEMA}"\nsituation = [1]', "situation 1 is 1 instead of an object"),
        ("[[situation]]", "more = 1\n[[situation]]", "unknown key 'more', there are schema, sit"),
        ("nodes = 1", "", "situation 1: nodes is missing"),
        ("nodes = 1", "nodes = 0", "situation 1: nodes is 0, which is out of bounds"),
        ("nodes = 1", "nodes = true", "situation 1: nodes is true instead of a whole number"),
        ("nodes = 1", "nodes = 2026-01-01", 'nodes is "2026-01-01" instead of a whole number'),
        (
            "nodes = 1",
            "nodes = 1\nnode = 1",
            "unknown key 'node', there are mpi_library",
        ),
        ('"MPICH"', "5", "situation 1: mpi_library is 5 instead of a text"),
        ('"ordinary"', '"device"', "buffers is 'device', it can be ordinary or node-shared"),
        (
            "nodes = 1",
            'nodes = 1\nthread_level = "some"',
            "thread_level is 'some', it",
        ),
        ("rules = [", "rules = 1\nx = [", "situation 1: unknown key 'x'"),
        ('up_to = "8"', "up_to = 8", "situation 1: rule 1: up_to is 8 instead of a text"),
        ('up_to = "8"', 'up_to = "8X"', "situation 1: rule 1: '8X' is not a size"),
        ('"1MiB"', '"8"', "rule 2 is up to 8 B, and so is nothing: the one before is up to 8 B"),
        ('{ algorithm = "native" },', "", "situation 1: a gap: no rule is for sizes above 1 MiB"),
        ('"naive"', '"nave"', "situation 1: rule 1: unknown algorithm 'nave': did you mean naive"),
        ('"naive"', "[]", r"rule 1: algorithm is \[\] instead of a text"),
        ('"naive"', '"auto"', "situation 1: auto cannot pick itself"),
        ('"native"', '"native", segment = 8', "rule 3: native has no segment to choose"),
        ("segment = 4096", "segment = 0", "rule 2: segment is 0, it has to be a number from 1"),
        ("segment = 4096", "segments = 4", "rule 2: unknown key 'segments', there are up_to"),
        ("segment = 4096", "rendezvous = true", "rule 2: unknown key 'rendezvous'"),
        ("segment = 4096", "torus = 4", "rule 2: torus is 4, it has to be two positive numbers"),
        ("rules", "measured = 1\nrules", "situation 1: measured is 1 instead of an object"),
        ("[[sit", GOOD[GOOD.index("[[sit") :] + "[[sit", "two situations are the same: 1 node"),
    ],
)
def test_a_file_that_is_wrong_says_where(was, becomes, said):
    assert was in GOOD
    with pytest.raises(UsageError, match=r"^d\.toml: .*" + said):
        read(GOOD.replace(was, becomes, 1), "d.toml")


def test_the_built_in_table_knows_three_libraries_and_says_where_it_comes_from():
    known = built_in.table().rows
    assert {row.situation.mpi_library for row in known} == {"MPICH", "Open MPI", "Intel MPI"}
    assert all(row.origin for row in known)
