"""`mpiring tune` as users run it, and what `bench` makes of the file."""

import json
import re
import signal

import pytest
from command import MPIRING, faulty, mpiring, run

from mpiring import built_in
from mpiring.decision import Pick, Row, Rule, Situation, Table
from mpiring.decision_file import read, to_toml

QUICK = ("tune", "-q", "--time-limit", "0.05", "-a", "ring,naive")


@pytest.fixture(scope="module", name="tuned")
def fixture_tuned(tmp_path_factory):
    """A file that was measured on two ranks, and what was said of it."""
    path = tmp_path_factory.mktemp("tuned") / "d.toml"
    finished = mpiring(2, *QUICK, "-s", "8,10,64KiB", "-o", path)
    assert finished.status == 0, finished.stderr
    return path, finished


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=lambda n: n.name)
def test_a_search_that_is_stopped_leaves_the_file_as_it_was(tuned, tmp_path, number):
    path = tmp_path / "d.toml"
    path.write_bytes(tuned[0].read_bytes())
    sizes = ["-s", "8,64,512", "-o", path]
    finished = faulty(2, "signal_rank_1", *QUICK, *sizes, SIGNAL=str(int(number)))
    assert finished.status == 4, finished.stderr
    said = f"stopped by {number.name}: 1 of 3 sizes measured; nothing is written to {path}"
    assert finished.stderr.count(said) == 1, finished.stderr
    assert path.read_bytes() == tuned[0].read_bytes()


def test_what_was_measured_is_in_the_file(tuned):
    path, finished = tuned
    (row,) = read(path.read_text(), "d.toml").rows
    assert row.situation[1:] == (1, 2, 4, "ordinary", "multiple")
    assert row.measured["dtype"] == "float32"
    assert row.measured.keys() >= {"started", "mpi_library", "mpiring", "thread_level", "cpu_model"}
    times = row.measured["times_us"]
    assert [one["size"] for one in times] == ["8 B", "12 B", "64 KiB"]
    for one in times:
        assert {"native", "ring"} & one.keys()
        slower = one.pop("slower", [])
        us = {name: us for name, us in one.items() if name != "size"}
        assert min(us.values()) > 0
        assert slower == [name for name in us if name != "native" and us[name] >= us["native"]]
    picked = [line.split()[2] for line in finished.stdout.splitlines() if " B " in line[:12]]
    assert len(picked) == 2
    assert set(picked) <= {"ring", "naive", "native", "native_persistent"}
    assert row.sentence() in finished.stdout
    assert "10 B rounded up to whole elements: 12 B" in finished.stderr


def test_a_situation_has_the_thread_level_that_is_asked_for(tmp_path):
    path = tmp_path / "d.toml"
    finished = mpiring(2, *QUICK, "-s", "8", "--thread-level", "single", "-o", path)
    assert finished.status == 0, finished.stderr
    (row,) = read(path.read_text(), "d.toml").rows
    assert row.situation.thread_level == row.measured["thread_level"] != "multiple"


def test_it_is_shown_in_words_without_mpi(tuned):
    path, finished = tuned
    program = "import sys; sys.modules['mpi4py'] = None; from mpiring.cli import main; main()"
    shown = run([MPIRING[0], "-c", program, "tune", "--show", path])
    assert shown.status == 0, shown.stderr
    sentence, origin = shown.stdout.splitlines()
    assert sentence in finished.stdout
    assert re.match(r"  Measured 20\S+ with .* at thread level \w+, float32 sum, on ", origin)
    shown = mpiring(0, "tune", "--show", "built-in")
    sentences = [line for line in shown.stdout.splitlines() if line.startswith("On ")]
    assert sentences == [row.sentence() for row in built_in.table().rows]


@pytest.mark.parametrize("fault", ["skip_the_last_chunk", "change_the_send_buffer"])
def test_what_gives_wrong_data_is_named_and_not_picked(fault, tmp_path):
    path = tmp_path / "d.toml"
    finished = faulty(2, fault, *QUICK, "-s", "8,64KiB", "-o", path)
    assert finished.status == 1, finished.stderr
    named = re.findall(r"^mpiring: ring at (.*?): WRONG: rank \d: ", finished.stderr, re.MULTILINE)
    assert ", ".join(named) == "8 B, 64 KiB"
    assert "Traceback" not in finished.stderr
    (row,) = read(path.read_text(), "d.toml").rows
    assert all("ring" not in one for one in row.measured["times_us"])


def test_other_situations_stay_and_the_same_one_is_measured_anew(tuned, tmp_path):
    path = tmp_path / "d.toml"
    path.write_text(tuned[0].read_text())
    assert mpiring(2, *QUICK, "-s", "8", "--dtype", "float64", "-o", path).status == 0
    first, second = read(path.read_text(), "d.toml").rows
    assert (first.situation.itemsize, second.situation.itemsize) == (4, 8)
    assert first == read(tuned[0].read_text(), "d.toml").rows[0]
    assert mpiring(2, *QUICK, "-s", "8", "--dtype", "float64", "-o", path).status == 0
    assert [row.situation for row in read(path.read_text(), "d.toml").rows] == [
        first.situation,
        second.situation,
    ]


def known_times(path, **times_us):
    """Make a file of the measured one, with such times at 8 B and at 64 KiB."""
    (row,) = read(path.read_text(), "d.toml").rows
    lines = [{"size": size, **times_us} for size in ("8 B", "64 KiB")]
    rules = (Rule(None, Pick("naive")),)
    return to_toml(Table((Row(row.situation, rules, {**row.measured, "times_us": lines}),), ""))


def test_what_is_confirmed_was_faster_each_time_and_nothing_else_is_measured(tuned, tmp_path):
    path = tmp_path / "d.toml"
    path.write_text(known_times(tuned[0], native=1e6, naive=1, slower=["ring"]))
    for runs in (2, 3):
        finished = mpiring(2, "tune", "-q", "--time-limit", "0.05", "--confirm", "-o", path)
        assert finished.status == 0, finished.stderr
        (row,) = read(path.read_text(), "d.toml").rows
        assert row.measured["runs"] == runs
        assert f", the last of {runs} runs, with " in mpiring(0, "tune", "--show", path).stdout
        times = row.measured["times_us"]
        assert [one["size"] for one in times] == ["8 B", "64 KiB"]
        assert {rule.pick.algorithm for rule in row.rules} <= {"naive", "native"}
        measured = {frozenset(one) - {"size", "slower"} for one in times}
        assert all("ring" in one["slower"] for one in times)
        if runs == 2:
            assert measured == {frozenset(("native", "naive"))}
            path.write_text(known_times(path, native=5, slower=["ring", "naive"]))
        else:
            assert measured == {frozenset(("native",))}
            assert [rule.pick for rule in row.rules] == [Pick("native")]


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        (
            "mpi_library",
            None,
            "nothing to confirm, it has no rules for 1 node with 2 ranks, 4-byte",
        ),
        ('"8 B"', '"64 KiB"', "times_us has the same size twice"),
        ('"8 B"', '"10 B"', "nothing to confirm: 10 B are no whole elements"),
        ('"float32"', '"int32"', "its times are of int32 sum, not of float32 sum"),
        ("times_us", "times_us = []\nx", "measured of .*: times_us has no size"),
        ("times_us", "times_ms", "nothing to confirm: measured of .*: times_us is missing"),
        ("native =", "nativ =", "nothing to confirm: unknown algorithm 'nativ' in the times of 1"),
        ('size = "', 'size = "x', "nothing to confirm: measured of .*: times_us 1: 'x8 B' is not"),
        ("native = 1.5", 'native = "x"', 'times_us 1: native is "x" instead of a number'),
        ("[situation.measured]", "[situation.measured]\nruns = 0", "runs is 0, which is out of"),
    ],
)
def test_what_cannot_be_confirmed_is_said(tuned, tmp_path, was, becomes, said):
    path = tmp_path / "d.toml"
    if becomes:
        text = known_times(tuned[0], native=1.5)
        assert was in text
        path.write_text(text.replace(was, becomes, 1))
    finished = mpiring(2, "tune", "-q", "--confirm", "-o", path)
    assert (finished.status, finished.stdout) == (2, ""), finished.stdout
    assert len(re.findall(said, finished.stderr)) == 1, finished.stderr
    assert "Traceback" not in finished.stderr


def test_what_another_run_wrote_meanwhile_stays(tuned, tmp_path):
    path = tmp_path / "d.toml"
    program = (
        "import shutil, sys; from mpiring.tune import Tuning; run = Tuning.run\n"
        "def run_beside_another(self, sizes):\n"
        "    shutil.copy(sys.argv.pop(1), sys.argv[-1])\n"
        "    return run(self, sizes)\n"
        "Tuning.run = run_beside_another\n"
        "from mpiring.cli import main; main(sys.argv[2:])\n"
    )
    finished = run([MPIRING[0], "-c", program, tuned[0], *QUICK, "-s", "8", "-o", path])
    assert finished.status == 0, finished.stderr
    rows = read(path.read_text(), "d.toml").rows
    assert [row.situation.ranks_per_node for row in rows] == [1, 2]


def bench(ranks, *arguments, **options):
    fast = ("--repetitions", "6", "--warmup", "1", "-q")
    return mpiring(ranks, "bench", "-a", "auto", *fast, *arguments, **options)


@pytest.fixture(name="decision")
def fixture_decision(tuned, tmp_path):
    """Rules for this library with picks that no measurement would make."""
    (row,) = read(tuned[0].read_text(), "d.toml").rows
    rules = (Rule(64, Pick("parameter_server")), Rule(None, Pick("binomial_tree")))
    path = tmp_path / "d.toml"
    path.write_text(to_toml(Table((Row(row.situation, rules),), "d.toml")))
    return path


def ran(finished):
    assert finished.status == 0, finished.stderr
    points = json.loads(finished.stdout)["points"]
    return {p["nbytes"]: (p["ran"], p["note"]) for p in points if p["algorithm"] == "auto"}


def test_auto_goes_by_the_file_and_names_what_it_picked(decision):
    expected = {
        64: ("auto: parameter_server", f"parameter_server, by {decision}"),
        68: ("auto: binomial_tree", f"binomial_tree, by {decision}"),
    }
    asked = ("-s", "64,68", "--format", "json")
    assert ran(bench(2, *asked, "--decision", decision)) == expected
    assert ran(bench(2, *asked, MPIRING_DECISION=str(decision))) == expected
    (near,) = ran(bench(3, "-s", "8", "--format", "json", "--decision", decision)).values()
    assert near[1].endswith("; its nearest rules are for 2 ranks per node")
    shown = bench(2, "-s", "64,68", "--decision", decision).stdout
    assert f"auto at 64 B: parameter_server, by {decision}" in shown


def test_a_resumed_run_goes_by_the_same_file(decision, tmp_path):
    result = tmp_path / "r.json"
    assert bench(2, "-s", "64", "--decision", decision, "-o", result).status == 0
    again = mpiring(2, "bench", "-q", "-s", "68", "--resume", result)
    assert again.status == 0, again.stderr
    document = json.loads(result.read_text())
    assert document["config"]["decision"] == str(decision)
    assert [p["ran"] for p in document["points"] if p["algorithm"] == "auto"] == [
        "auto: parameter_server",
        "auto: binomial_tree",
    ]
    other = bench(2, "-s", "80", "--resume", result, "--decision", tmp_path / "none.toml")
    assert other.status == 2


def test_a_resumed_run_goes_by_the_same_rules(decision, tmp_path):
    """As where the file was tuned anew meanwhile: points by two tables would stand side by side."""
    result = tmp_path / "r.json"
    assert bench(2, "-s", "64", "--decision", decision, "-o", result).status == 0
    text = decision.read_text()
    decision.write_text(text.replace("binomial_tree", "recursive_doubling"))
    finished = mpiring(2, "bench", "-q", "-s", "68", "--resume", result)
    assert finished.status == 2
    assert finished.stderr.count(f"{result}: its decision_digest is ") == 1, finished.stderr
    decision.write_text(f"# by hand\n{text}")
    assert mpiring(2, "bench", "-q", "-s", "68", "--resume", result).status == 0


@pytest.mark.parametrize("names", [0, 1])
def test_the_variable_of_rank_0_counts(decision, names):
    """An environment may be that of one host alone."""
    command = [*MPIRING, "bench", "-q", "-a", "auto", "-s", "64", "--repetitions", "6"]
    command += ["--format", "json"]
    own = [["env", f"MPIRING_DECISION={decision}"] if rank == names else [] for rank in (0, 1)]
    ranks = ["-n", "1", *own[0], *command, ":", "-n", "1", *own[1], *command]
    ((name, note),) = ran(run(["mpirun", *ranks], timeout=20)).values()
    assert (name == "auto: parameter_server") == (names == 0)
    assert (f", by {decision}" if names == 0 else ", by the built-in table") in note


SITUATION = Situation("MPICH", 1, 2, 4)
SOUND = to_toml(Table((Row(SITUATION, (Rule(None, Pick("native")),)),), ""))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "d.toml: No such file or directory"),
        (b"\xff", "d.toml: not a text file"),
        ("x", "d.toml: not TOML"),
        (SOUND.replace("decision/1", "decision/9"), "d.toml: schema is 'mpiring.decision/9'"),
        (
            SOUND.replace("native", "nativ"),
            "d.toml: situation 1: rule 1: unknown algorithm 'nativ'",
        ),
        (SOUND.replace("{", '{ up_to = "8",'), "d.toml: situation 1: a gap: no rule is for sizes"),
    ],
    ids=lambda value: str(value)[:20],
)
@pytest.mark.parametrize("variable", [False, True])
@pytest.mark.pure
def test_a_file_that_auto_cannot_go_by_is_refused(tmp_path, content, said, variable):
    path = tmp_path / "d.toml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    options = {"MPIRING_DECISION": str(path)} if variable else {}
    named = [] if variable else ["--decision", path]
    finished = bench(2, "-s", "8", *named, **options)
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr.count(said) == 1, finished.stderr
    assert finished.stderr.count("mpiring: ") == 1  # a launcher may have its say, too
    assert "Traceback" not in finished.stderr
    if not variable:
        shown = mpiring(0, "tune", "--show", path)
        assert (shown.status, shown.stdout) == (2, "")
        assert said in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tune"], "tune needs either -o FILE.toml, or --show FILE.toml"),
        (["tune", "-o", "x.toml", "--show", "x.toml"], "tune needs either -o"),
        (["tune", "--show", "built-in", "-s", "8"], "--sizes changes nothing: --show measures"),
        (["tune", "--show", "built-in", "-q"], "--quiet changes nothing: --show measures"),
        (["tune", "-o", "x.toml", "--confirm", "-s", "8"], "--sizes changes nothing: --confirm"),
        (["tune", "-o", "x.toml", "--confirm", "-a", "ring"], "--algorithms changes nothing: --c"),
        (["tune", "--confirm", "--show", "built-in"], "--confirm changes nothing: --show"),
        (["tune", "-o", "x.toml", "-v", "-q"], "-v and -q exclude each other"),
        (["topology", "measure", "-v", "-q"], "-v and -q exclude each other"),
        (["tune", "-o", ""], "the name of the file is empty"),
        (["tune", "-o", "/no/such/d.toml"], "/no/such/d.toml: cannot be written: No such file"),
        (["tune", "-o", "/tmp"], "/tmp: is a directory"),
        (["tune", "-o", "setup.cfg"], "setup.cfg: not TOML: .*, so it is not overwritten"),
        (["tune", "-o", "pyproject.toml"], "schema is None.*, so it is not overwritten"),
        (["tune", "-o", "/dev/null", "-s", "1TiB"], r"needs \S+ TiB of memory"),
        (["tune", "-o", "/dev/null", "-a", "rng"], "did you mean ring"),
        (["tune", "-o", "/dev/null", "--op", "band"], "band is not defined for float32"),
        (["bench", "-a", "ring", "--decision", "x"], "--decision changes nothing: auto is not"),
        (["bench", "-a", "auto", "--segment", "8"], "--segment changes nothing: auto has no"),
        (["bench", "-a", "auto", "--rendezvous"], "--rendezvous changes nothing: auto has no"),
    ],
    ids=str,
)
@pytest.mark.pure
def test_a_mistake_is_said_once(arguments, said):
    finished = mpiring(2, *arguments)
    assert (finished.status, finished.stdout) == (2, ""), finished.stderr
    assert len(re.findall(said, finished.stderr)) == 1, finished.stderr
    assert "Traceback" not in finished.stderr
