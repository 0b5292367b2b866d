"""`mpiring hostfile`: each field case by each launcher's rules, and what cannot be used."""

from collections import Counter

import pytest
from command import assert_refused, mpiring
from hostfile_cases import CASES, COLON, CORES, SLOTS, WRONG

from mpiring.errors import UsageError
from mpiring.hostfile import (
    DIALECTS,
    check_ranks,
    convert,
    guess,
    in_blocks,
    nodes,
    parse,
    slots_by_name,
    slots_of,
)

pytestmark = pytest.mark.pure

MPICH, OPENMPI = DIALECTS["mpich"], DIALECTS["openmpi"]


def placed(text, dialect, ranks=None):
    hosts = nodes(parse(text, "f"), dialect)
    return " ".join(host.name for host in in_blocks(hosts, ranks or slots_of(hosts)))


def in_turn(text, dialect, ranks):
    hosts = dialect.in_turn(nodes(parse(text, "f"), dialect), ranks)
    return hosts and " ".join(host.name for host in hosts)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.text))
def test_a_case_is_a_map_or_a_reason(case, name):
    expected, dialect = getattr(case, name), DIALECTS[name]
    if isinstance(expected, str):
        assert placed(case.text, dialect) == expected
        return
    line, reason = expected
    with pytest.raises(UsageError) as error:
        nodes(parse(case.text, "f"), dialect)
    assert str(error.value).startswith(f"f:{line}: {dialect.name} ")
    assert reason in str(error.value)
    assert "{" not in str(error.value)


@pytest.mark.parametrize("text", WRONG, ids=repr)
def test_what_is_wrong_to_both_is_one_reason(text):
    with pytest.raises(UsageError) as error:
        parse(text, "f")
    assert str(error.value).startswith(WRONG[text])


def test_in_turn():
    unequal = "a:2\nb:1\nc:3\n"
    assert in_turn(unequal, MPICH, 6) == "a b c a b c"
    assert in_turn("a:2\nb:1\na:1\n", MPICH, 4) == "a b a a"
    unequal = "a slots=2\nb slots=1\nc slots=3\n"
    assert in_turn(unequal, OPENMPI, 2) == "a b"
    assert in_turn(unequal, OPENMPI, 5) == "a b c a c"
    assert in_turn(unequal, OPENMPI, 6) is None
    assert in_turn("a slots=3\nb slots=2\nc slots=1\n", OPENMPI, 6) == "a b c a b a"


def test_cores_are_the_slots_of_a_host_that_open_mpi_is_told_none_of():
    file = parse("a\nb slots=1\n", "f")
    assert [host.slots for host in nodes(file, OPENMPI, cores=3)] == [3, 1]
    with pytest.raises(UsageError, match="f:1: Open MPI has as many slots on a"):
        nodes(file, OPENMPI)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_the_slots_of_a_host_are_those_of_all_its_nodes(case, name):
    wanted = getattr(case, name)
    if isinstance(wanted, str):
        slots = slots_by_name(nodes(parse(case.text, "f"), DIALECTS[name]))
        assert slots == Counter(wanted.split())


def test_where_cores_are_counted_slots_are_left_open():
    hosts = nodes(parse("a\nb slots=2\n", "f"), OPENMPI, cores=0)
    assert slots_by_name(hosts) == {"a": 0, "b": 2}


def test_more_ranks_than_slots():
    file = parse("a:2\n", "f")
    hosts = nodes(file, MPICH)
    check_ranks(file, MPICH, hosts, 2)
    with pytest.raises(UsageError, match="f: 3 ranks, but 2 slots: MPICH would begin again"):
        check_ranks(file, MPICH, hosts, 3)
    file = parse("a:2000000\n", "f")
    with pytest.raises(UsageError, match="-n asks for fewer"):
        check_ranks(file, MPICH, nodes(file, MPICH), 2000000)


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("a\nb:2\n", "mpich", "guessed from b:2"),
        ("a user=u\n", "mpich", "guessed from user=u"),
        ("a\nb slots=2\n", "openmpi", "guessed from slots=2"),
        ("// c\na\n", "openmpi", "guessed from //"),
        ("a\nb\n", "mpich", "ambiguous: nothing but names"),
        ("a slots=2\nb:2\n", "mpich", "ambiguous: b:2 and slots=2"),
    ],
)
def test_a_file_tells_what_it_was_written_for(text, name, why):
    assert guess(parse(text, "f")) == (name, why)


@pytest.mark.parametrize("source", DIALECTS)
@pytest.mark.parametrize("target", DIALECTS)
def test_a_converted_file_places_the_ranks_as_before(source, target):
    texts, reasons = {}, []
    for case in CASES:
        if isinstance(getattr(case, source), str):
            try:
                texts[case] = convert(parse(case.text, "f"), DIALECTS[source], DIALECTS[target])
            except UsageError as error:
                reasons.append(str(error))
    for case, text in texts.items():
        assert placed(text, DIALECTS[target]) == getattr(case, source), case
    assert len(texts) > 10
    assert all(DIALECTS[target].name in reason for reason in reasons)
    assert source != target or not reasons


@pytest.mark.parametrize(
    ("text", "source", "target", "expected"),
    [
        ("# c\r\na:2 # d\r\nb", MPICH, OPENMPI, "a slots=2\nb slots=1\n"),
        ("\ufeffa slots=2\n", OPENMPI, MPICH, "a:2\n"),
        ("n[08-10]:2\n", MPICH, OPENMPI, "n08 slots=2\nn09 slots=2\nn10 slots=2\n"),
        ("n[1-2]-[1-2].x\n", MPICH, MPICH, "n1-1.x:1\nn1-2.x:1\nn2-1.x:1\nn2-2.x:1\n"),
        ("n1-10:2\n", MPICH, OPENMPI, "n1-10 slots=2\n"),
        ("[fe80::1]:2\n", MPICH, OPENMPI, "fe80::1 slots=2\n"),
        ("a:2 user=u\n", MPICH, OPENMPI, "u@a slots=2\n"),
        ("a slots=2 username=u\n", OPENMPI, MPICH, "u@a:2\n"),
        ("a slots=2 max_slots=3\n", OPENMPI, OPENMPI, "a slots=2 max_slots=3\n"),
        ("a\na\nb\nb\n", OPENMPI, MPICH, "a:2\nb:2\n"),
    ],
)
def test_known_conversions(text, source, target, expected):
    assert convert(parse(text, "f"), source, target) == expected


@pytest.mark.parametrize(
    ("text", "source", "target", "reason"),
    [
        ("a:1\nb:1\na:1\n", MPICH, OPENMPI, "f:3: Open MPI refuses slots of a, which line 1"),
        ("u@a:1\na:1\n", MPICH, OPENMPI, "f:2: Open MPI refuses slots of a, which line 1"),
        ("a.x:1\na.y:1\n", MPICH, OPENMPI, "f:2: Open MPI refuses slots of a.y"),
        ("a:2\nb:2 binding=user:1\n", MPICH, OPENMPI, "f:2: Open MPI refuses binding=user:1"),
        ("a@b@c:2\n", MPICH, OPENMPI, "f:1: Open MPI cannot read the user a@b"),
        ("a slots=2\nfe80::1 slots=2\n", OPENMPI, MPICH, "f:2: MPICH ends a name at its first"),
        ("a slots=2 max_slots=3\n", OPENMPI, MPICH, "f:1: MPICH refuses max_slots=3"),
        ("a slots=2\nb\n", OPENMPI, MPICH, "f:2: Open MPI has as many slots on b as"),
    ],
)
def test_what_the_target_has_no_words_for_is_refused(text, source, target, reason):
    with pytest.raises(UsageError) as error:
        convert(parse(text, "f"), source, target)
    assert str(error.value).startswith(reason)


@pytest.fixture(name="hosts")
def fixture_hosts(tmp_path):
    def write(content):
        path = tmp_path / "hosts"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def check(path, *arguments):
    return mpiring(0, "hostfile", "check", path, *arguments)


def test_the_map_and_what_the_other_launcher_makes_of_it(hosts):
    path = hosts("a:2\r\nb\r\n")
    shown = check(path)
    assert shown.status == 0
    assert shown.stdout == (
        f"{path} by MPICH's rules (guessed from a:2): 3 slots on 2 hosts\n"
        "rank  by slot  by node\n"
        "   0  a        a\n"
        "   1  a        b\n"
        "   2  b        a\n"
    )
    assert shown.stderr.splitlines() == [
        f"{path}:1: Open MPI refuses lines that end in CR LF",
        f"{path}:1: {COLON}: it is host slots=N there",
        f"{path}:2: Open MPI has as many slots on b as it has cores, without slots=N",
    ]


def test_one_way_of_placing_and_fewer_ranks(hosts):
    path = hosts("longer-name slots=2\nb slots=1\nc slots=3\n")
    shown = check(path, "--for", "openmpi", "-n", 4, "--by", "node")
    assert shown.stdout.splitlines()[1:] == [
        "rank  by node",
        "   0  longer-name",
        "   1  b",
        "   2  c",
        "   3  longer-name",
    ]
    assert "by node" not in check(path, "--by", "slot").stdout
    both = check(path)
    assert both.status == 0
    assert "by node" not in both.stdout
    assert f"{path}: Open MPI finds no place for 6 ranks by node" in both.stderr


def test_a_thousand_hosts_are_one_reason(hosts):
    shown = check(hosts("".join(f"n{k}:2\n" for k in range(1000))))
    assert len(shown.stdout.splitlines()) == 2002
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("a slots=2\n", ["--for", "mpich"], f"hosts:1: {SLOTS}"),
        ("a slots=2\nb:2\n", [], "it is host:slots there (ambiguous: b:2 and slots=2)"),
        ("a:2\n", ["--for", "openmpi"], f"hosts:1: {COLON}"),
        ("a\n", ["--for", "openmpi"], CORES),
        ("a slots=0\n", [], "hosts:1: 'slots=0' does not give"),
        ("a slots=1\nb slots=3\n", ["--by", "node"], "no place for 4 ranks by node"),
        ("a:2\n", ["-n", "3"], "3 ranks, but 2 slots"),
        ("a slots=2\n", ["-n", "3"], "3 ranks, but 2 slots: Open MPI would refuse"),
        ("a:2\n", ["-n", "0"], "0 is not in the range"),
        ("a:2\n", ["--cores", "2"], "--cores changes nothing"),
        ("a:2\n", ["--for", "lam"], "'lam' is not one of"),
        ("", [], "hosts:1: names no host"),
        (b"\xff\xfea\0", [], "hosts: not a text file"),
        (b"a\0", [], "hosts: not a text file"),
    ],
)
def test_mistakes_are_one_sentence_and_status_2(hosts, content, arguments, message):
    finished = check(hosts(content), *arguments)
    assert_refused(finished, message)


def test_files_that_cannot_be_read_or_written(hosts, tmp_path):
    for path, reason in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        finished = check(path)
        assert (finished.status, finished.stderr.count("\n")) == (2, 1)
        assert f"{path}: {reason}" in finished.stderr
    convert = ("hostfile", "convert", hosts("a:2\n"), "--to", "openmpi")
    finished = mpiring(0, *convert, "-o", tmp_path / "none" / "out")
    assert finished.status == 2
    assert "cannot be written" in finished.stderr


def test_convert_writes_what_it_prints(hosts, tmp_path):
    convert = ("hostfile", "convert", hosts("\ufeffn[1-2]:4\r\n"), "--to", "openmpi")
    shown = mpiring(0, *convert)
    assert shown.stdout == "n1 slots=4\nn2 slots=4\n"
    assert "read as MPICH's (guessed from n[1-2]:4)" in shown.stderr
    written = mpiring(0, *convert, "--from", "mpich", "-o", tmp_path / "out")
    assert (written.stdout, written.stderr) == ("", "")
    assert (tmp_path / "out").read_bytes() == shown.stdout.encode()
    assert check(tmp_path / "out").status == 0
    refused = mpiring(0, "hostfile", "convert", hosts("fe80::1 slots=2\n"), "--to", "mpich")
    assert (refused.status, refused.stdout) == (2, "")
    assert "hosts:1: MPICH ends a name" in refused.stderr


def test_one_rank_speaks_where_several_were_started(hosts):
    finished = mpiring(0, "hostfile", "check", hosts("a:2\n"), PMI_RANK="1", PMI_SIZE="2")
    assert finished == (0, "", "")
