import pytest

from mpiring.chunks import Split
from mpiring.cost import scratch_length
from mpiring.schedule import (
    Meeting,
    Recv,
    Schedule,
    ScheduleError,
    Send,
    back,
    check_round,
    depends,
    in_turn,
    meetings,
    messages,
    pipelined,
    relabel,
    segmented,
    staggered,
)

pytestmark = pytest.mark.pure


def test_relabel_maps_peers_and_widens_chunks():
    steps = (Send(1, 2), Recv(0, 1, 2, reduce=True))
    assert list(relabel([steps], ranks=[5, 7], first=10, width=3)) == [
        (Send(7, 16, 3), Recv(5, 13, 6, reduce=True))
    ]


def test_contributions_meet_in_rank_order_with_the_own_among_them():
    steps = (
        Recv(3, 0, reduce=True),
        Recv(0, 0, reduce=True),
        Recv(1, 4, reduce=True),
        Send(3, 0),
    )
    assert list(meetings(2, steps)) == [Meeting(0, 1, (0, 2, 3)), Meeting(4, 1, (1, 2))]


def test_scratch_is_that_of_the_neediest_round():
    rounds = [(Recv(1, 0, 2, reduce=True), Recv(2, 0, 2, reduce=True)), (Recv(1, 0, 9),)]
    assert scratch_length(rounds, Split(18, 9)) == 8
    assert scratch_length([], Split(18, 9)) == 0


@pytest.mark.parametrize(
    "steps",
    [
        (Send(1, 0, 2), Recv(1, 1)),
        (Recv(1, 0), Recv(2, 0)),
        (Recv(1, 0), Recv(2, 0, reduce=True)),
        (Recv(1, 0, 2, reduce=True), Recv(2, 1, 2, reduce=True)),
        (Recv(1, 0, reduce=True), Recv(1, 0, reduce=True)),
        (Recv(1, 0, reduce=True), Recv(2, 0, reduce=True), Recv(2, 0, reduce=True)),
        (Send(0, 0),),
    ],
    ids=[
        "send under receive",
        "receive twice",
        "both kinds",
        "part overlap",
        "one peer twice",
        "the last peer twice",
        "itself",
    ],
)
def test_a_round_that_breaks_the_rule_is_refused(steps):
    with pytest.raises(ScheduleError, match=r"overlap|itself"):
        check_round(0, steps)


def test_a_reducing_receive_may_meet_a_send_of_the_same_chunk():
    check_round(0, (Send(1, 0), Recv(1, 0, reduce=True), Recv(2, 0, reduce=True), Recv(1, 1)))


def test_the_same_way_back():
    there = [(Send(1, 0), Recv(2, 1, 2, reduce=True)), (), (Recv(3, 0, reduce=True),)]
    assert list(back(there)) == [(Send(3, 0),), (), (Recv(1, 0), Send(2, 1, 2))]


def test_messages_between_two_ranks_have_tags_of_their_own():
    steps = (Send(1, 0), Send(1, 1), Recv(1, 2), Send(2, 0), Send(1, 3), Recv(1, 4))
    moved = list(messages(steps, Split(4, 5)))  # the last chunk is empty
    assert moved == list(zip(steps[:5], (0, 1, 0, 0, 2), strict=True))
    with pytest.raises(ScheduleError, match="more than 8 messages"):
        list(messages((Send(1, 0),) * 9, Split(1, 1)))


@pytest.mark.parametrize("segments", [1, 2, 5, 40])
def test_a_pipeline_starts_a_segment_in_each_round(segments):
    three = Schedule(2, 1, lambda rank: [(Send(1, 0),), (), (Recv(1, 0),)])
    rounds = list(pipelined(three, segments).rounds(0))
    assert len(rounds) == 3 + segments - 1
    assert [s.first for steps in rounds for s in steps if isinstance(s, Send)] == [*range(segments)]
    for number, steps in enumerate(rounds):
        assert {s.first for s in steps if isinstance(s, Send)} == {number} & {*range(segments)}
        assert {s.first for s in steps if isinstance(s, Recv)} == {number - 2} & {*range(segments)}


@pytest.mark.parametrize("segments", [1, 2, 5])
def test_staggered_segments_keep_their_rounds_apart(segments):
    three = Schedule(2, 1, lambda rank: [(Send(1, 0),), (), (Recv(1, 0),)])
    schedule = staggered(three, segments)
    rounds = list(schedule.rounds(0))
    assert len(rounds) == 3 * segments
    assert all(len(steps) <= 1 for steps in rounds)
    sent = [step.first for steps in rounds for step in steps if isinstance(step, Send)]
    got = [step.first for steps in rounds for step in steps if isinstance(step, Recv)]
    assert sent == got == [*range(segments)]
    assert schedule.in_flight == (4 if segments > 1 else 1)


def test_a_round_depends_on_one_that_receives_what_it_touches():
    send, other = (Send(1, 2, 2),), (Send(2, 3),)
    receive, reducing = (Recv(1, 3, 2),), (Recv(2, 2, reduce=True),)
    assert not depends(send, other)
    assert depends(send, receive)
    assert depends(receive, other)
    assert depends(reducing, send)
    assert not depends(reducing, receive)
    assert not depends((), send)
    assert not depends((Send(1, 0), Send(1, 9)), (Recv(1, 4, 2),))


FIRST, SECOND, THIRD = ((Send(1, chunk),) for chunk in range(3))
ON_FIRST = (Recv(1, 0),)
INSIDE = (Recv(7, 5, reduce=True),)


@pytest.mark.parametrize(
    ("rounds", "in_flight", "turns"),
    [
        ([FIRST, SECOND], 1, "+0 -0 +1 -1"),
        ([FIRST, SECOND, THIRD], 2, "+0 +1 -0 +2 -1 -2"),
        ([FIRST, (), THIRD], 2, "+0 +1 -0 +2 -1 -2"),
        ([FIRST, SECOND, ON_FIRST, THIRD], 3, "+0 +1 -0 +2 +3 -1 -2 -3"),
        ([FIRST, INSIDE, SECOND, THIRD], 2, "+0 +1 -1 +2 -0 +3 -2 -3"),
        ([FIRST, INSIDE, ON_FIRST], 2, "+0 +1 -1 -0 +2 -2"),
        ([], 2, ""),
    ],
)
def test_rounds_are_started_and_completed_in_turn(rounds, in_flight, turns):
    """+ is a start. What is inside a node is complete at once, and in nobody's way."""
    taken = in_turn(rounds, in_flight, group=(0, 7))
    assert " ".join(f"{'+' if starts else '-'}{number}" for starts, number in taken) == turns


def test_segments_in_flight_come_in_pairs():
    with pytest.raises(ValueError, match="3 segments with 2 in flight"):
        segmented(Schedule(2, 1, lambda rank: []), 3, in_flight=2)
