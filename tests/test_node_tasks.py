"""What ranks do inside their node: all of them meet equally often, over the same shares."""

import pytest
from shapes import SCHEDULED, divided, topologies

from mpiring.chunks import Split
from mpiring.node_tasks import Share, Task, tasks
from mpiring.options import Options
from mpiring.schedule import Recv, ScheduleError, Send
from mpiring.topology import Level, Topology

pytestmark = pytest.mark.pure

IN_MEMORY = [a for a in SCHEDULED if a.schedule(divided(4, 2), Options()).memory]
GROUP = (2, 5, 7)


@pytest.mark.parametrize("size", range(1, 10))
@pytest.mark.parametrize("segments", [1, 2, 5])
@pytest.mark.parametrize("leaders", [None, 1, 2])
def test_the_ranks_of_a_node_meet_equally_often(size, segments, leaders):
    assert IN_MEMORY
    for algorithm in IN_MEMORY:
        for topology in topologies(size):
            schedule = algorithm.schedule(topology, Options(leaders=leaders))
            schedule = algorithm.cut(schedule, segments)
            split = Split(10 * size + 1, schedule.chunks)
            for group in schedule.memory:
                seen = []
                for rank in group:
                    rounds = tuple(schedule.rounds(rank))
                    found = [
                        task for _, task in tasks(rounds, group, split) if task and task.shares
                    ]
                    seen.append([(t.shares, t.collects, t.hands_out) for t in found])
                assert seen == [seen[0]] * len(group)


def test_levels_inside_a_node_are_no_business_of_memory():
    sockets, node = Level("socket", ((0, 1), (2, 3))), Level("node", ((0, 1, 2, 3),))
    for algorithm in IN_MEMORY:
        schedule = algorithm.schedule(Topology(4, (sockets, node)), Options())
        assert schedule.memory == node.groups
        assert len(list(schedule.rounds(0))) == 2


def test_what_is_reduced_is_handed_out_while_it_is_in_cache():
    split = Split(30, 3)
    collect = (Send(2, 0), Send(5, 1), Recv(2, 2, reduce=True), Recv(5, 2, reduce=True))
    hand_out = (Recv(2, 0), Recv(5, 1), Send(2, 2), Send(5, 2))
    one, both = (task for _, task in tasks([collect, hand_out], GROUP, split))
    assert one == Task()
    mine, first, second = slice(20, 30), slice(0, 10), slice(10, 20)
    assert both == Task(
        mine,
        (Share(0, first), Share(1, second)),
        (Share(0, mine), Share(1, mine)),
        (Share(0, first), Share(1, second)),
    )
    apart = [task for _, task in tasks([collect, (Send(9, 2),), hand_out], GROUP, split)]
    assert [task and (task.collects, task.hands_out) for task in apart] == [
        (True, False), None, (False, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "steps",
    [
        (Recv(2, 0, reduce=True), Recv(5, 1, reduce=True)),
        (Send(2, 0), Recv(5, 1)),
    ],
    ids=["two shares", "both kinds"],
)
def test_what_memory_cannot_carry_out_is_refused(steps):
    with pytest.raises(ScheduleError, match="memory cannot carry out"):
        list(tasks([steps], GROUP, Split(30, 3)))
