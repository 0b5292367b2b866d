"""From points to picks: a change is earned, and a blip is none."""

import pytest
from points import point

from mpiring.decision import FARTHEST
from mpiring.decision_file import Times
from mpiring.results import with_native
from mpiring.topology import Level, Topology
from mpiring.tune import Contest, larger
from mpiring.tuning import fastest, winner, without_blips

pytestmark = pytest.mark.pure

SPREAD = [1, 1.01, 0.99, 1.02, 0.98, 1, 1.01]
WIDE = [1, 1.4, 0.7, 1.2, 0.8, 1.3, 0.75]


def size(floor_s=0.0, spread=SPREAD, **micros):
    """The points of one size, by their times; native's samples are steady."""
    points = [
        point(name, samples=samples, noise_floor_s=floor_s)
        for name, us in micros.items()
        for samples in [[us * 1e-6 * part for part in (SPREAD if name == "native" else spread)]]
    ]
    return {one.algorithm: one for one in with_native(tuple(points))}


def test_the_fastest_come_first_and_what_was_not_timed_not_at_all():
    points = size(native=3, ring=2, naive=1, swing=4)
    points["tree"] = point("tree", samples=(), rank_means_s=None)
    assert fastest(points, 2) == ["naive", "ring"]
    assert fastest(points, 9) == ["naive", "ring", "native", "swing"]


@pytest.mark.parametrize(
    ("micros", "incumbent", "expected"),
    [
        ({"native": 10, "ring": 8}, "native", "ring"),
        ({"native": 10, "ring": 9.8}, "native", "native"),  # within the band
        ({"native": 10, "ring": 8, "naive": 7}, "native", "naive"),
        ({"native": 10, "ring": 8, "naive": 7.8}, "ring", "ring"),  # no rule for that
        ({"native": 10, "ring": 8, "naive": 7}, "ring", "naive"),
        ({"native": 10, "ring": 9.5}, "ring", "ring"),  # still earned
        ({"native": 10, "ring": 10}, "ring", "native"),
        ({"native": 10, "ring": 11}, "ring", "native"),
        ({"native": 10, "ring": 11, "naive": 9}, "ring", "naive"),
        ({"native": 10, "naive": 9}, "ring", "naive"),  # it could not run
        ({"native": 10}, "ring", "native"),
        ({"ring": 10, "naive": 9}, "native", "naive"),  # the library cannot
        ({"ring": 10, "naive": 9.8}, "ring", "ring"),
    ],
)
def test_a_change_has_to_be_worth_a_rule(micros, incumbent, expected):
    assert winner(size(**micros), incumbent) == expected


def test_who_takes_part_again():
    """What no run found slower, and the neighbour's pick unless one found that so."""
    known = {8: Times({"native": 3, "ring": 2}, ["naive"]), 16: Times({"ring": 2}, ["native"])}
    contest = Contest((), (8, 16), earlier=known)
    assert contest.still_in(8, "ring") == contest.still_in(8, "native") == ["native", "ring"]
    assert contest.still_in(8, "tree") == ["native", "ring", "tree"]
    assert contest.still_in(8, "naive") == ["native", "ring"]
    assert contest.still_in(16, "ring") == ["native", "ring"], "there is no way without it"
    assert contest.still_in(32, "ring") is None


def test_a_larger_job_of_the_same_kind():
    node = Topology(3, (Level("node", ((0, 1, 2),)),))
    assert larger(node).nodes == (tuple(range(12)),)
    nodes = Topology(3, (Level("node", ((0, 2), (1,))),))
    assert larger(nodes).nodes == tuple((first, first + 1) for first in range(0, 16, 2))
    assert larger(Topology(1, (Level("node", ((0,),)),))).size == 4 == 2**FARTHEST


def test_what_is_not_significant_is_no_reason():
    assert winner(size(native=10, ring=9), "native") == "ring"
    assert winner(size(spread=WIDE, native=10, ring=9), "native") == "native"
    assert winner(size(spread=WIDE, native=10, ring=9), "ring") == "native"
    assert winner(size(floor_s=1e-3, native=10, ring=5), "native") == "native"


def test_a_wrong_result_is_never_picked():
    points = size(native=10, naive=9)
    points["ring"] = point("ring", samples=(), rank_means_s=None, check_ok=False)
    assert winner(points, "native") == winner(points, "ring") == "naive"


def test_a_blip_goes_unless_it_is_faster():
    tie, faster = size(native=10, ring=8, naive=8), size(native=10, ring=8, naive=7)
    assert without_blips(["ring", "naive", "ring"], [tie] * 3) == ["ring"] * 3
    assert without_blips(["ring", "naive", "ring"], [faster] * 3) == ["ring", "naive", "ring"]
    assert without_blips(["ring", "naive", "native"], [tie] * 3) == ["ring", "naive", "native"]
    lacking = size(native=10, naive=8)
    assert without_blips(["ring", "naive", "ring"], [tie, lacking, tie]) == [
        "ring",
        "naive",
        "ring",
    ]
    slow = size(native=10, ring=10, naive=10)
    assert without_blips(["ring", "native", "ring"], [tie, slow, tie]) == ["ring", "native", "ring"]
    assert without_blips(["ring"], [tie]) == ["ring"]
    assert without_blips([], []) == []
