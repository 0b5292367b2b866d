import pytest

from mpiring.chunks import Split
from mpiring.cost import scratch_length
from mpiring.schedule import Meeting, Recv, Send, check_round, meetings, relabel


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
        (Send(0, 0),),
    ],
    ids=[
        "send under receive",
        "receive twice",
        "both kinds",
        "part overlap",
        "one peer twice",
        "itself",
    ],
)
def test_a_round_that_breaks_the_rule_is_refused(steps):
    with pytest.raises(ValueError, match=r"overlap|itself"):
        check_round(0, steps)


def test_a_reducing_receive_may_meet_a_send_of_the_same_chunk():
    check_round(0, (Send(1, 0), Recv(1, 0, reduce=True), Recv(2, 0, reduce=True), Recv(1, 1)))
