"""The simulator itself: it has to find each kind of fault that a schedule can have."""

import pytest

from mpiring.chunks import Split
from mpiring.schedule import Recv, Send
from mpiring.simulate import ScheduleError, simulate


def run(*schedules, chunks=1, count=4):
    return simulate(lambda rank: schedules[rank], len(schedules), Split(count, chunks))


def test_swap_reduces_in_rank_order():
    swap = [[(Send(1 - rank, 0), Recv(1 - rank, 0, reduce=True))] for rank in (0, 1)]
    assert run(*swap) == [[(0, 1)] * 4] * 2


def test_messages_between_two_ranks_keep_their_order():
    held = run([(Send(1, 0), Send(1, 1))], [(Recv(0, 0),), (Recv(0, 1),)], chunks=2)
    assert held[1] == [(0,)] * 4


def test_empty_messages_are_not_sent():
    # With one element chunk 1 is empty; a send of it, which nobody takes, would wait for ever.
    assert run([(Send(1, 1),)], [], chunks=2, count=1) == [[(0,)], [(1,)]]


@pytest.mark.parametrize(
    "schedules",
    [
        ([(Send(1, 0),)], []),
        ([(Recv(1, 0),)], []),
        ([(Send(1, 0),), (Recv(1, 0),)], [(Send(0, 0),), (Recv(0, 0),)]),
    ],
    ids=["send without receive", "receive without send", "both send first: needs buffering"],
)
def test_what_cannot_finish_is_a_deadlock(schedules):
    with pytest.raises(ScheduleError, match="deadlock: rank"):
        run(*schedules)


def test_a_send_and_a_receive_that_do_not_fit_are_found():
    with pytest.raises(ScheduleError, match="expects"):
        run([(Send(1, 0),)], [(Recv(0, 1),)], chunks=2)


def test_a_peer_that_does_not_exist_is_found():
    with pytest.raises(ScheduleError, match="no such peer"):
        run([(Send(5, 0),)], [])
