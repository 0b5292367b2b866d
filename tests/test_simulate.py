"""The simulator itself: it has to find each kind of fault that a schedule can have."""

import random

import pytest

from mpiring.schedule import Recv, Schedule, ScheduleError, Send
from mpiring.simulate import simulate

pytestmark = pytest.mark.pure


def run(*schedules, chunks=1, count=4, in_flight=1, memory=(), shuffle=None):
    schedule = Schedule(len(schedules), chunks, lambda rank: schedules[rank], in_flight, memory)
    return simulate(schedule, count, shuffle=shuffle)


def test_swap_reduces_in_rank_order():
    swap = [[(Send(1 - rank, 0), Recv(1 - rank, 0, reduce=True))] for rank in (0, 1)]
    for seed in range(10):
        assert run(*swap, shuffle=random.Random(seed)) == [[(0, 1)] * 4] * 2


def test_messages_of_one_round_are_told_apart():
    sends = [(Send(1, 0), Send(1, 1))]
    for seed in range(10):
        held = run(sends, [(Recv(0, 0), Recv(0, 1))], chunks=2, shuffle=random.Random(seed))
        assert held[1] == [(0,)] * 4


def test_messages_of_two_rounds_keep_their_order():
    held = run([(Send(1, 0),), (Send(1, 1),)], [(Recv(0, 0),), (Recv(0, 1),)], chunks=2)
    assert held[1] == [(0,)] * 4


def test_empty_messages_are_not_sent():
    # With one element chunk 1 is empty; a send of it, which nobody takes, would wait for ever.
    assert run([(Send(1, 1),)], [], chunks=2, count=1) == [[(0,)], [(1,)]]


def test_two_rounds_in_flight_need_both_to_be_started():
    """One sends a, then b; the other takes b first: it has both under way at a time."""
    schedules = [(Send(1, 0),), (Send(1, 1),)], [(Recv(0, 0),), (Recv(0, 1),)]
    for seed in range(10):
        held = run(*schedules, chunks=2, in_flight=2, shuffle=random.Random(seed))
        assert held[1] == [(0,)] * 4
    crossed = [(Send(1, 0),), (Recv(1, 1),)], [(Send(0, 1),), (Recv(0, 0),)]
    assert run(*crossed, chunks=2, in_flight=2)[0] == [(0,)] * 2 + [(1,)] * 2
    with pytest.raises(ScheduleError, match="deadlock"):
        run(*crossed, chunks=2)


def test_what_is_inside_a_node_is_waited_for_at_once():
    """So it is when it is carried out, however many rounds may be in flight."""
    crossed = [(Send(1, 0),), (Recv(1, 1),)], [(Send(0, 1),), (Recv(0, 0),)]
    with pytest.raises(ScheduleError, match="deadlock"):
        run(*crossed, chunks=2, in_flight=2, memory=((0, 1),))


def test_a_round_waits_for_what_it_depends_on_also_where_that_moves_nothing():
    """Plans do so, whatever the length of their buffers: of two elements none is in chunk 2."""
    mine = [(Send(1, 0), Recv(1, 2)), (Recv(1, 1), Send(1, 2))]
    others = [(Send(0, 1), Recv(0, 2)), (Recv(0, 0), Send(0, 2))]
    with pytest.raises(ScheduleError, match="deadlock"):
        run(mine, others, chunks=3, count=2, in_flight=2)


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


@pytest.mark.parametrize("step", [Send(1, 1), Send(1, -1), Send(1, 0, 2), Send(1, 0, 0)])
def test_a_chunk_that_does_not_exist_is_found(step):
    with pytest.raises(ScheduleError, match="no such chunk"):
        run([(step,)], [])
