"""Where the time went: waits divided rightly, traces that viewers read, the slow rank named."""

import json

import pytest
from command import faulty, mpiring

from mpiring.algorithms import ALGORITHMS
from mpiring.schedule import Recv, Send
from mpiring.timeline import RankTrace, Run, Span, attributed, breakdowns, to_trace

SWAP = tuple((((Send(1 - rank, 0), 0), (Recv(1 - rank, 0, reduce=True), 0)),) for rank in (0, 1))


def swap(late):
    """Two ranks that swap; rank 1 begins `late` seconds after rank 0, messages take until 10."""
    return [
        RankTrace(
            begin,
            12.0,
            (
                Span("start", 0, begin, begin + 1),
                Span("wait", 0, begin + 1, 10.0),
                Span("reduction", 0, 10.0, 11.0),
            ),
            SWAP[rank],
        )
        for rank, begin in enumerate((0.0, late))
    ]


def test_a_wait_is_for_the_peer_until_it_begins_and_then_for_the_message():
    early, late = attributed(swap(late=5.0))
    assert early == (
        Span("transfer", 0, 0.0, 1.0),
        Span("waiting", 0, 1.0, 5.0, peer=1),
        Span("transfer", 0, 5.0, 10.0),
        Span("reduction", 0, 10.0, 11.0),
    )
    assert [span.kind for span in late] == ["transfer", "transfer", "reduction"]


def test_a_peer_that_begins_after_the_wait_is_over_is_waited_for_all_along():
    """Clocks that differ a little, or a message that needed no partner."""
    early, _ = attributed(swap(late=10.5))
    assert early[1] == Span("waiting", 0, 1.0, 10.0, peer=1)
    assert early[2] == Span("transfer", 0, 10.0, 10.0)


def test_a_sum_of_a_run():
    (run,) = breakdowns(to_trace([Run("ring", 4096, swap(late=5.0))], 1e-6), "t.json")
    assert (run.algorithm, run.nbytes, run.ranks) == ("ring", 4096, 2)
    assert run.elapsed == pytest.approx(12)
    assert run.spent["waiting"] == pytest.approx(4)
    assert run.spent["transfer"] == pytest.approx(1 + 5 + 1 + 4)
    assert run.spent["reduction"] == pytest.approx(2)
    assert run.spent["Python"] == pytest.approx(12 + 7 - 4 - 11 - 2)
    assert (run.slowest, run.waited_for) == (1, pytest.approx(4))


def relay(late):
    """Rank 0 sends to rank 1, which then sends to rank 2; rank 0 begins late."""
    first, second = ((Send(1, 0), 0),), ((Send(2, 0), 0),)
    begun = late + 2.0  # rank 1's second round
    return [
        RankTrace(late, late + 1, (Span("start", 0, late, late + 1),), (first,)),
        RankTrace(
            0.0,
            begun + 1,
            (
                Span("start", 0, 0.0, 0.0),
                Span("wait", 0, 0.0, begun),
                Span("start", 1, begun, begun + 1),
            ),
            (((Recv(0, 0), 0),), second),
        ),
        RankTrace(
            0.0,
            begun + 1,
            (Span("start", 0, 0.0, 0.0), Span("wait", 0, 0.0, begun + 1)),
            (((Recv(1, 0), 0),),),
        ),
    ]


def test_who_waits_itself_is_not_the_slow_one():
    """Rank 2 waits for rank 1 longer than anyone, but rank 1 only waits for rank 0."""
    (run,) = breakdowns(to_trace([Run("relay", 4, relay(late=5.0))], 1e-6), "t.json")
    assert run.spent["waiting"] == pytest.approx(5 + 7)
    assert (run.slowest, run.waited_for) == (0, pytest.approx(5 + 5))


def test_waits_in_a_circle_end():
    """No run has them, but clocks that differ, or a file that was written by others."""
    document = json.loads(to_trace([Run("swap", 4, swap(late=5.0))], 1e-6))
    (wait,) = (event for event in document["traceEvents"] if event.get("cat") == "waiting")
    document["traceEvents"].append(wait | {"tid": 1, "args": {"peer": 0}})
    (run,) = breakdowns(json.dumps(document), "t.json")
    assert run.waited_for == pytest.approx(4)


def test_messages_of_two_rounds_find_their_own():
    sends, receives = (Send(1, 0), Send(1, 1)), (Recv(0, 0), Recv(0, 1))
    rounds = [tuple(((step, 0),) for step in steps) for steps in (sends, receives)]
    ranks = [
        RankTrace(
            0.0,
            9.0,
            tuple(
                span
                for number in (0, 1)
                for span in (
                    Span("start", number, 4.0 * number + late, 4.0 * number + late),
                    Span("wait", number, 4.0 * number + late, 4.0 * number + 3),
                )
            ),
            rounds[rank],
        )
        for rank, late in enumerate((2.0, 0.0))
    ]
    sender, receiver = attributed(ranks)
    assert [(s.begin, s.end, s.peer) for s in receiver if s.kind == "waiting"] == [
        (0.0, 2.0, 0),
        (4.0, 6.0, 0),
    ]
    assert not [s for s in sender if s.kind == "waiting"]


@pytest.mark.parametrize("ranks", [1, 3])
def test_every_algorithm_leaves_a_trace(tmp_path, ranks):
    file = tmp_path / "t.json"
    sizes = "4,64KiB"
    finished = mpiring(ranks, "bench", "-q", "-a", "all", "-s", sizes, "--trace", file,
                       "--repetitions", 1, timeout=120)  # fmt: skip
    assert finished.status == 0, finished.stderr
    document = json.loads(file.read_text())
    runs = breakdowns(file.read_text(), "t")
    assert len(runs) == 2 * len(ALGORITHMS)
    for run in runs:
        assert run.ranks == ranks
        spent = dict(run.spent)
        assert sum(spent.values()) <= ranks * run.elapsed * 1.001
        # What auto picks is its business, and traced as what it is.
        if run.algorithm != "auto":
            by_library = run.algorithm in ("native", "native_persistent")
            in_memory = run.algorithm == "shared"
            assert (spent["library"] > 0) == by_library
            assert (spent["memory"] > 0) == (in_memory and ranks > 1)
            assert (spent["transfer"] > 0) == (ranks > 1 and not by_library and not in_memory)
    for event in document["traceEvents"]:
        assert event["ph"] in "XM"
        assert event["ph"] == "M" or (event["ts"] >= 0 and event["dur"] >= 0)
    names = {e["args"]["name"]: e["pid"] for e in document["traceEvents"] if "ts" not in e}
    rounds = {
        (e["tid"], e["args"]["round"])
        for e in document["traceEvents"]
        if e.get("cat") == "transfer" and e["pid"] == names["ring 64 KiB"]
    }
    assert rounds == {(r, k + 1) for r in range(ranks) for k in range(2 * (ranks - 1))}

    shown = mpiring(0, "timeline", file)
    assert shown.status == 0
    assert len(shown.stdout.splitlines()) == 3 + 2 * len(ALGORITHMS)


def test_the_slow_rank_is_named(tmp_path):
    file = tmp_path / "t.json"
    arguments = ["bench", "-q", "-a", "ring", "-s", "64KiB", "--repetitions", 1, "--trace", file]
    finished = faulty(3, "be_late_on_rank_1", *arguments)
    assert finished.status == 0, finished.stderr
    (ring, native) = breakdowns(file.read_text(), "t")
    assert ring.algorithm == "ring"
    assert ring.slowest == 1
    assert ring.waited_for > 0.05
    assert native.slowest is None
    assert "rank 1" in mpiring(0, "timeline", file).stdout


def good():
    return json.loads(to_trace([Run("ring", 4096, swap(late=5.0))], 1e-6))


def broken(change):
    document = good()
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a trace"),
        ("[]", "not a trace"),
        ('{"traceEvents": []}', "not a trace"),
        (broken(lambda d: d["otherData"].update(format="mpiring.trace/9")), "its format is"),
        (broken(lambda d: d["traceEvents"].append(3)), "damaged"),
        (broken(lambda d: d.update(traceEvents=7)), "damaged"),
        (broken(lambda d: d["traceEvents"].append({"ph": "X", "pid": 0})), "damaged"),
        (broken(lambda d: d["traceEvents"][-1].update(dur="x")), "damaged"),
        (broken(lambda d: d["traceEvents"][-1].update(dur=-1)), "damaged"),
        (broken(lambda d: d["traceEvents"][-1].update(cat="sleep")), "damaged"),
        (broken(lambda d: [e.update(pid=e["tid"]) for e in d["traceEvents"] if e["ph"] == "X"
                           and e["cat"] != "run"]), "damaged"),
    ],
)  # fmt: skip
def test_what_is_no_trace_of_ours(tmp_path, text, message):
    file = tmp_path / "t.json"
    file.write_text(text)
    finished = mpiring(0, "timeline", file)
    assert finished.status == 2
    assert finished.stderr.startswith(f"mpiring: error: {file}: ")
    assert message in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_a_trace_without_runs_says_so(tmp_path):
    file = tmp_path / "t.json"
    file.write_text(to_trace([], 0.0))
    finished = mpiring(0, "timeline", file)
    assert (finished.status, finished.stderr) == (
        2,
        f"mpiring: error: {file}: no run was traced\n",
    )


def test_no_such_file():
    finished = mpiring(0, "timeline", "/no/such.json")
    assert (finished.status, finished.stderr) == (
        2,
        "mpiring: error: /no/such.json: No such file or directory\n",
    )
