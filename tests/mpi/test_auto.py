"""`auto`: it runs what the table picks, or what can run in its place, and says which."""

import os
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from mpi4py import MPI

import mpiring
from mpiring import Disagreement, MpiringError, Options, Unsupported, UsageError, built_in
from mpiring.choice import LONGER_THAN_A_TURN
from mpiring.communicator import private
from mpiring.decision import NODE_SHARED, ORDINARY, Pick, Row, Rule, Situation, Table
from mpiring.decision_file import to_toml
from mpiring.implementation import library_name
from mpiring.machine import survey
from mpiring.tune import candidates, variants

from .conftest import same_on_all_ranks

pytestmark = pytest.mark.mpi


def table(comm, *rules, itemsize=8):
    """The rules, for what this job is."""
    topology = private(comm).topology
    situation = Situation.of(topology, library_name(), itemsize, ORDINARY)
    return Table((Row(situation, rules),), "d.toml")


def reduced(comm, decision, count=100, dtype="f8", op=MPI.SUM):
    """What ran, why, and whether it was right."""
    sendbuf = (np.arange(count) % 3 + comm.rank).astype(dtype)
    recvbuf = np.full(count, -9, dtype)
    with mpiring.allreduce_init(
        sendbuf, recvbuf, op, comm=comm, algorithm="auto", decision=decision
    ) as plan:
        for _ in range(2):
            plan()
    everyone = comm.allgather(sendbuf.astype("f8"))
    expected = np.sum(everyone, axis=0) if op == MPI.SUM else np.max(everyone, axis=0)
    np.testing.assert_array_equal(recvbuf.astype("f8"), expected)
    assert same_on_all_ranks(comm, recvbuf)
    return plan.algorithm, plan.options, plan.remark


def test_the_rule_for_the_size_runs_with_its_options(comm):
    ring = Pick("ring", Options(segment=64))
    decision = table(comm, Rule(80, Pick("naive")), Rule(800, ring), Rule(None, Pick("native")))
    plain = Options()
    for count, name, options in [
        (0, "naive", plain),
        (10, "naive", plain),
        (11, "ring", ring.options),
        (100, "ring", ring.options),
        (101, "native", plain),
    ]:
        ran = reduced(comm, decision, count)
        assert ran[:2] == (name, options)
        assert ran[2].startswith(f"{Pick(name, options)}, by d.toml")
    segmented = mpiring.allreduce_init(
        np.zeros(100), np.zeros(100), comm=comm, algorithm="auto", decision=decision
    )
    own = mpiring.allreduce_init(
        np.zeros(100), np.zeros(100), comm=comm, algorithm="ring", options=ring.options
    )
    assert segmented.schedule.chunks == own.schedule.chunks


def test_a_pick_that_cannot_run_here_makes_room_for_native_and_says_so(comm):
    decision = table(comm, Rule(None, Pick("torus_ring", Options(torus=(7, 11)))))
    name, options, remark = reduced(comm, decision)
    assert (name, options) == ("native", Options())
    assert remark.startswith("native, since torus_ring torus=7,11, by d.toml, cannot run: a torus")


def test_where_the_library_cannot_another_one_does(comm):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    decision = table(comm, Rule(None, Pick("native")), itemsize=2)
    name, _, remark = reduced(comm, decision, dtype=ml_dtypes.bfloat16)
    assert name == "ring"
    assert remark.startswith("ring, since native, by d.toml, cannot run: the MPI library has no")


def test_an_operation_that_does_not_commute_is_left_to_what_allows_it(comm):
    def last(left, right, datatype):
        pass  # the right one is the result

    op = MPI.Op.Create(last, commute=False)
    for pick in (Pick("ring"), Pick("naive", Options(segment=64))):
        recvbuf = np.zeros(100)
        with mpiring.allreduce_init(
            np.full(100, 1.0 + comm.rank),
            recvbuf,
            op,
            comm=comm,
            algorithm="auto",
            decision=table(comm, Rule(None, pick)),
        ) as plan:
            plan()
        np.testing.assert_array_equal(recvbuf, comm.size)
        assert plan.algorithm == "native"
        assert "an operation that commutes" in plan.remark
    op.Free()


def test_without_a_row_for_this_job_the_built_in_table_is_asked(comm):
    elsewhere = Table((Row(Situation("LAM", 1, 2, 8), (Rule(None, Pick("naive")),)),), "d.toml")
    _, _, remark = reduced(comm, elsewhere)
    assert re.search(r"d\.toml (has no|nor the built-in table)", remark)
    assert reduced(comm, None)[0] in mpiring.ALGORITHMS
    for row in built_in.table().rows:
        for _, pick in row.rules:
            with suppress(UsageError):  # of ranks or nodes that this job has not
                mpiring.allreduce(
                    np.ones(99), np.zeros(99), algorithm=pick.algorithm, options=pick.options
                )


def test_the_built_in_table_is_for_ranks_with_a_core_each(comm):
    """What wins there loses where ranks wait for each other's turn."""
    crowded = private(comm).crowded
    assert crowded == bool(survey(comm, private(comm).topology.nodes).crowded)
    algorithm, _, remark = reduced(comm, None)
    assert ("the built-in table for ranks that outnumber their cores has no" in remark) == crowded
    assert algorithm == "native" or not crowded
    sendbuf, recvbuf = np.zeros((2, LONGER_THAN_A_TURN // 4), "f4")
    with mpiring.allreduce_init(sendbuf, recvbuf, comm=comm, algorithm="auto") as plan:
        assert comm.size > 8 or "by the built-in table" in plan.remark
    mine = table(comm, Rule(None, Pick("naive")))
    assert reduced(comm, mine)[0] == "naive", "one that was measured so counts"


def test_what_the_rule_carries_cannot_be_chosen(comm):
    for options in (Options(segment=64), Options(rendezvous=True)):
        with pytest.raises(UsageError, match="auto has no"):
            mpiring.allreduce(np.ones(9), np.zeros(9), algorithm="auto", options=options)
    with pytest.raises(Unsupported, match="decision is of type str, not a Table"):
        mpiring.allreduce(np.ones(9), np.zeros(9), algorithm="auto", decision="d.toml")


@pytest.mark.mpi(min_size=2)
def test_ranks_with_different_tables_hear_of_it(comm):
    decision = table(comm, Rule(None, Pick("naive" if comm.rank else "native")))
    with pytest.raises(Disagreement, match="algorithm is auto: native on rank 0, auto: naive on"):
        reduced(comm, decision)


@pytest.mark.parametrize("wrong", [False, True])
def test_the_variable_counts_on_rank_zero_and_for_auto_alone(comm, wrong):
    folder = TemporaryDirectory()  # of each rank its own; that of rank 0 is meant
    path = Path(folder.name) / "d.toml"
    known = table(comm, Rule(None, Pick("parameter_server")))
    if comm.rank == 0:
        path.write_text("x" if wrong else to_toml(known))
    before = os.environ.pop("MPIRING_DECISION", None)
    os.environ["MPIRING_DECISION"] = str(path) if comm.rank == 0 else "/no/such/file"
    try:
        asking = comm.Dup()
        mpiring.allreduce(np.ones(9), np.zeros(9), comm=asking, algorithm="ring")
        if wrong:
            with pytest.raises(UsageError, match=r"d\.toml: not TOML") as told:
                reduced(asking, None)
            assert len(set(comm.allgather(str(told.value)))) == 1
        else:
            name, _, remark = reduced(asking, None)
            assert name == "parameter_server"
            assert remark == f"parameter_server, by {comm.bcast(str(path))}"
        asking.Free()
    finally:
        folder.cleanup()
        del os.environ["MPIRING_DECISION"]
        if before is not None:
            os.environ["MPIRING_DECISION"] = before


def test_the_same_rounds_are_tried_once_and_by_all_ranks(comm):
    topology = private(comm).topology
    every = list(variants(mpiring.ALGORITHMS))
    names = [str(pick) for pick in every]
    assert len(set(names)) == len(names)
    assert {pick.algorithm for pick in every} == set(mpiring.ALGORITHMS) - {"auto"}
    for count in (0, 1, 1000, 1 << 20):
        tried = candidates(comm, every, topology, count, 8)
        assert {"native", "native_persistent"} <= {str(pick) for pick in tried}
        assert len(set(comm.allgather(tuple(map(str, tried))))) == 1
        places = [names.index(str(pick)) for pick in tried]
        assert places == sorted(places)
        assert len(tried) < len(every)
    small = {str(pick) for pick in candidates(comm, every, topology, 1000, 8)}
    large = {str(pick) for pick in candidates(comm, every, topology, 1 << 20, 8)}
    assert "segmented_ring" not in small  # one segment of a ring is a ring
    assert comm.size == 1 or "hierarchical_ring segment=32768" in large - small
    if comm.size == 2:  # of those that exchange the same there, the one for more ranks
        assert {"recursive_doubling", "rabenseifner", "ring"} <= small
        assert not {"naive", "reduce_scatter", "torus_ring", "swing"} & small
    if comm.size >= 9:  # it sends more than four times as much as a ring
        assert "naive" in small
        assert "naive" not in large


def test_the_library_alone_if_no_algorithm_is_named():
    assert [str(pick) for pick in variants([])] == ["native_persistent", "native"]


def test_what_turns_out_to_be_impossible_makes_room_too(comm, monkeypatch):
    """As shared memory that is too small: that shows when the plan is made."""

    def refuse(*arguments):
        raise UsageError("planted" if comm.rank == comm.size - 1 else "elsewhere")

    decision = table(comm, Rule(None, Pick("ring")))
    monkeypatch.setattr("mpiring.executor.Prepared.bind", refuse)
    name, _, remark = reduced(comm, decision)
    assert name == "native"
    assert remark.startswith("native, since ring, by d.toml, cannot run: ")
    with pytest.raises(UsageError):
        mpiring.allreduce(np.ones(9), np.zeros(9), comm=comm, algorithm="ring")


def test_arrays_in_shared_memory_are_a_kind_of_their_own(comm):
    topology = private(comm).topology
    ordinary = Situation.of(topology, library_name(), 8, ORDINARY)
    rows = (
        Row(ordinary, (Rule(None, Pick("naive")),)),
        Row(ordinary._replace(buffers=NODE_SHARED), (Rule(None, Pick("shared")),)),
    )
    sendbuf, recvbuf, gaps = (mpiring.empty(n, "f8", comm=comm) for n in (100, 100, 200))
    sendbuf[:] = comm.rank
    # One rank's ordinary array decides for all: no kind is theirs alone.
    mixed = np.empty(100) if comm.rank == 0 else recvbuf
    for array, name in (
        (recvbuf, "shared"),
        (np.empty(100), "naive"),
        (mixed, "naive"),
        (gaps[::2], "naive"),
    ):
        with mpiring.allreduce_init(
            sendbuf, array, comm=comm, algorithm="auto", decision=Table(rows, "d.toml")
        ) as plan:
            plan()
        assert plan.algorithm == name
        np.testing.assert_array_equal(array, sum(range(comm.size)))


def test_ranks_that_call_other_collectives_learn_it_beside_shared_arrays_too(comm):
    shared = mpiring.empty(9, "f8", comm=comm)
    call = partial(mpiring.allreduce, shared, np.empty(9), comm=comm, algorithm="auto")
    if comm.rank > 0:
        call = partial(mpiring.bcast, shared, comm=comm)
    if comm.size > 1:
        with pytest.raises(Disagreement, match="collective is allreduce on rank 0, bcast on rank"):
            call()
    with pytest.raises(Unsupported):
        mpiring.allreduce(shared, [] if comm.rank == 0 else np.empty(9), comm=comm)


def test_what_one_rank_cannot_run_no_rank_runs(comm):
    """Its array is in shared memory of another communicator, where the others know no window."""
    other = comm.Dup()
    foreign = mpiring.empty(9, "f8", comm=other)
    decision = table(comm, Rule(None, Pick("shared")))
    recvbuf = foreign if comm.rank == comm.size - 1 else np.empty(9)
    plan = mpiring.allreduce_init(
        np.ones(9), recvbuf, comm=comm, algorithm="auto", decision=decision
    )
    plan()
    np.testing.assert_array_equal(recvbuf, comm.size)
    assert plan.algorithm == "native"
    who = "" if comm.rank == comm.size - 1 else f"rank {comm.size - 1}: "
    reason = f"cannot run: {who}an array is in shared memory of another communicator"
    assert plan.remark.endswith(reason)
    plan.free()
    other.Free()


@pytest.mark.mpi(min_size=2)
def test_an_error_that_is_none_of_ours_is_not_taken_for_a_refusal(comm, monkeypatch):
    """One rank would end with it while the others went on to a stand-in, and waited."""

    def fail(*arguments):
        raise [KeyError("planted"), UsageError("refused")][comm.rank % 2]

    monkeypatch.setattr("mpiring.executor.Prepared.bind", fail)
    decision = table(comm, Rule(None, Pick("ring")))
    kind = [KeyError, MpiringError][comm.rank % 2]
    with pytest.raises(kind, match="planted") as raised:
        reduced(comm, decision)
    assert raised.type is kind


@pytest.mark.parametrize("wrong", ["array", "decision"])
def test_wrong_arguments_are_no_reason_for_a_stand_in(comm, wrong):
    here = wrong if comm.rank == comm.size - 1 else "nothing"
    recvbuf = np.zeros(9, "S3" if here == "array" else "f8")
    known = table(comm, Rule(None, Pick("naive")))
    decision = "d.toml" if here == "decision" else known
    with pytest.raises(Unsupported, match=r"S3|of type str, not a Table"):
        mpiring.allreduce(np.ones(9), recvbuf, comm=comm, algorithm="auto", decision=decision)


def test_all_ranks_reduce_in_place_or_none_whatever_is_picked(comm):
    decision = table(comm, Rule(None, Pick("ring")))
    sendbuf = MPI.IN_PLACE if comm.rank == 0 else np.ones(9)
    if comm.size > 1:
        with pytest.raises(Disagreement, match="in place is True on rank 0, False on rank"):
            mpiring.allreduce(sendbuf, np.ones(9), comm=comm, algorithm="auto", decision=decision)
