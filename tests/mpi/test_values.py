"""Right values: counts, dtypes, operations, topologies, in place and not; equal on all ranks."""

import itertools

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3b11fnuz, float8_e5m2
from mpi4py import MPI

import mpiring
from mpiring import ALGORITHMS, Level, Topology
from mpiring.reductions import UFUNC_NAMES

from .conftest import counts, fold, same_on_all_ranks

pytestmark = pytest.mark.mpi

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g"]
DTYPES += ["F", "D", "G", ">f8", bfloat16, float8_e5m2, float8_e4m3b11fnuz]


def contribution(rank, count):
    return 100.0 * rank + np.arange(count)


def test_every_count_in_place_and_not(comm, algorithm):
    for count in counts(comm.size):
        expected = sum(contribution(rank, count) for rank in range(comm.size))
        sendbuf = contribution(comm.rank, count)
        recvbuf = np.full(count, -999.0)
        mpiring.allreduce(sendbuf, recvbuf, algorithm=algorithm)
        np.testing.assert_array_equal(recvbuf, expected)
        np.testing.assert_array_equal(sendbuf, contribution(comm.rank, count))

        mpiring.allreduce(MPI.IN_PLACE, sendbuf, algorithm=algorithm)
        np.testing.assert_array_equal(sendbuf, expected)

        sendbuf = contribution(comm.rank, count)
        mpiring.allreduce(sendbuf, sendbuf, algorithm=algorithm)
        np.testing.assert_array_equal(sendbuf, expected)


@pytest.mark.mpi(max_size=4)
def test_a_count_that_no_number_of_ranks_divides(comm, algorithm):
    count = 1000003
    recvbuf = np.full(count, -999.0)
    mpiring.allreduce(contribution(comm.rank, count), recvbuf, algorithm=algorithm)
    expected = comm.size * np.arange(count) + 100.0 * sum(range(comm.size))
    np.testing.assert_array_equal(recvbuf, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(comm, algorithm, dtype):
    dtype = np.dtype(dtype)
    # So small that eight of them add up exactly in the two bits of mantissa that the least have.
    most = 2 if dtype.isbuiltin == 2 else 5
    for count in (1, comm.size + 1, 101):
        parts = [((np.arange(count) + 3 * rank) % most).astype(dtype) for rank in range(comm.size)]
        recvbuf = np.zeros(count, dtype)
        try:
            mpiring.allreduce(parts[comm.rank], recvbuf, algorithm=algorithm)
        except mpiring.Unsupported:
            # The library's gaps are its own; ours reduces whatever numpy can add.
            assert algorithm.startswith("native")
            assert dtype.isbuiltin == 2 or dtype in (np.dtype(t) for t in ("?", "f2", ">f8"))
            continue
        expected = fold(np.add, parts)
        assert recvbuf.dtype == dtype
        np.testing.assert_array_equal(recvbuf, expected)


@pytest.mark.parametrize("op", UFUNC_NAMES)
@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f4", "D"])
def test_every_operation_gives_numpys_result(comm, typical, op, dtype):
    ufunc = getattr(np, UFUNC_NAMES[op])
    random = np.random.default_rng(7)
    parts = [random.integers(0, 3, 41).astype(dtype) for _ in range(comm.size)]
    recvbuf = np.zeros(41, dtype)
    sendbuf = parts[comm.rank].copy()
    if op.startswith("b") and dtype in "f4 D":
        with pytest.raises(mpiring.Unsupported, match=f"{op} is not defined"):
            mpiring.allreduce(sendbuf, recvbuf, getattr(MPI, op.upper()), algorithm=typical)
        return
    mpiring.allreduce(sendbuf, recvbuf, getattr(MPI, op.upper()), algorithm=typical)
    np.testing.assert_array_equal(recvbuf, fold(ufunc, parts))


@pytest.mark.parametrize(
    ("dtype", "op", "values", "expected"),
    [
        ("u8", MPI.MAX, [0, 2**64 - 1], 2**64 - 1),
        ("u8", MPI.MIN, [2**64 - 1, 0], 0),
        ("i2", MPI.SUM, [16384, 16384], -32768),
        ("i1", MPI.SUM, [120, 100], -36),
        ("u1", MPI.SUM, [200, 200, 200, 200], 32),
        ("f2", MPI.SUM, [60000, 60000], np.inf),
        ("f4", MPI.MAX, [1.0, np.nan], np.nan),
        ("f8", MPI.SUM, [np.inf, -np.inf], np.nan),
    ],
    ids=str,
)
def test_extremes_wrap_and_saturate_as_numpys_do(comm, typical, dtype, op, values, expected):
    if comm.size < len(values):
        values = [expected]  # what is left on one rank: the value itself
    mine = values[comm.rank] if comm.rank < len(values) else (values[0] if op != MPI.SUM else 0)
    for count in (1, 9):
        recvbuf = np.zeros(count, dtype)
        mpiring.allreduce(np.full(count, mine, dtype), recvbuf, op, algorithm=typical)
        np.testing.assert_array_equal(recvbuf, np.full(count, expected, dtype))


def test_overflow_is_no_exception_even_where_numpy_is_told_to_raise(comm, typical):
    """It would stop one rank while the others wait for it."""
    recvbuf = np.zeros(20, "f4")
    with np.errstate(all="raise"):
        mpiring.allreduce(np.full(20, 3e38, "f4"), recvbuf, algorithm=typical)
    np.testing.assert_array_equal(recvbuf, np.float32("inf") if comm.size > 1 else np.float32(3e38))


def test_all_ranks_end_bitwise_equal(comm, algorithm, two_nodes):
    random = np.random.default_rng([42, comm.rank])
    for op, dtype, count in itertools.product([MPI.SUM, MPI.PROD], ["f4", "f8", "F"], [1, 1009]):
        sendbuf = random.standard_normal(count).astype(dtype)
        if dtype == "F":
            sendbuf += 1j * random.standard_normal(count).astype("f4")
        recvbuf = np.empty_like(sendbuf)
        mpiring.allreduce(sendbuf, recvbuf, op, algorithm=algorithm, topology=two_nodes)
        assert same_on_all_ranks(comm, recvbuf)
        mpiring.allreduce(sendbuf, recvbuf, algorithm=algorithm, topology=two_nodes)
        assert same_on_all_ranks(comm, recvbuf)
        exact = sum(comm.allgather(sendbuf.astype(np.complex128)))
        scale = sum(comm.allgather(np.abs(sendbuf).astype("f8")))
        assert np.all(np.abs(recvbuf - exact) <= comm.size * np.finfo(dtype).eps * scale)


@pytest.mark.mpi(min_size=4, max_size=4)
def test_cancellation_in_every_order_is_bitwise_equal(comm, scheduled):
    for values in itertools.permutations([1e8, 1.0, -1e8, 1.0]):
        recvbuf = np.empty(5, "f4")
        mpiring.allreduce(np.full(5, values[comm.rank], "f4"), recvbuf, algorithm=scheduled)
        assert same_on_all_ranks(comm, recvbuf)


def test_repeating_gives_the_same_bits_and_leaves_the_send_buffer(comm, algorithm):
    random = np.random.default_rng([1, comm.rank])
    for count in (1, 17, 65537 if comm.size <= 4 else 6553):
        sendbuf = random.standard_normal(count)
        before, results = sendbuf.tobytes(), set()
        recvbuf = np.empty_like(sendbuf)
        with mpiring.allreduce_init(sendbuf, recvbuf, algorithm=algorithm) as plan:
            for _ in range(50 if count < 100 else 10):
                recvbuf.fill(-999)
                plan()
                results.add(recvbuf.tobytes())
        assert len(results) == 1
        assert sendbuf.tobytes() == before


def test_the_same_global_data_on_fewer_ranks_agrees_within_rounding(comm, scheduled):
    """Not bit for bit: the order of additions depends on the number of ranks."""
    everything = np.random.default_rng(3).standard_normal((comm.size, 257)).astype("f4")
    recvbuf = np.empty(257, "f4")
    mpiring.allreduce(everything[comm.rank], recvbuf, algorithm=scheduled)
    alone = everything.astype("f8").sum(axis=0)
    bound = comm.size * np.finfo("f4").eps * np.abs(everything).sum(axis=0)
    assert np.all(np.abs(recvbuf - alone) <= bound)


def test_tree_on_nodes_of_any_size_and_order(comm):
    ranks = list(range(comm.size))
    shapes = {
        "one each": [[r] for r in ranks],
        "dealt": [ranks[0::2], ranks[1::2]],
        "reversed": [ranks[::-1]],
        "first alone": [ranks[:1], ranks[1:]],
        "last alone": [ranks[:-1], ranks[-1:]],
        "three": [ranks[0::3], ranks[1::3], ranks[2::3]],
    }
    for groups in shapes.values():
        nodes = tuple(tuple(group) for group in groups if group)
        topology = Topology(comm.size, (Level("node", nodes),))
        for count in counts(comm.size):
            recvbuf = np.full(count, -999.0)
            mpiring.allreduce(
                contribution(comm.rank, count), recvbuf, algorithm="tree", topology=topology
            )
            expected = sum(contribution(rank, count) for rank in ranks)
            np.testing.assert_array_equal(recvbuf, expected)


def test_the_hand_written_ring_agrees_bit_for_bit(comm):
    from oracle import ring_allreduce

    sendbuf = np.random.default_rng([9, comm.rank]).standard_normal(2520)  # 1 to 10 divide it
    ours, theirs = np.empty_like(sendbuf), np.empty_like(sendbuf)
    mpiring.allreduce(sendbuf, ours, algorithm="ring")
    ring_allreduce(comm, sendbuf, theirs, np.empty(2520 // comm.size))
    np.testing.assert_array_equal(ours, theirs)


def test_a_user_operation_that_commutes(comm, algorithm):
    def larger_magnitude(left, right, datatype):
        a, b = np.frombuffer(left, "f8"), np.frombuffer(right, "f8")
        b[:] = np.where(np.abs(a) > np.abs(b), a, b)

    op = MPI.Op.Create(larger_magnitude, commute=True)
    for count in (1, 50, 3000):
        parts = [np.sin(np.arange(count) + 10.0 * rank) for rank in range(comm.size)]
        before = parts[comm.rank].copy()
        recvbuf = np.empty(count)
        mpiring.allreduce(parts[comm.rank], recvbuf, op, algorithm=algorithm)
        np.testing.assert_array_equal(np.abs(recvbuf), np.max(np.abs(parts), axis=0))
        np.testing.assert_array_equal(parts[comm.rank], before)
    op.Free()


def matrix_product(left, right, datatype):
    a = np.frombuffer(left, "i8").reshape(-1, 2, 2)
    b = np.frombuffer(right, "i8").reshape(-1, 2, 2)
    b[:] = a @ b


@pytest.mark.parametrize("number", [1, 700])
def test_an_operation_that_does_not_commute_keeps_rank_order_or_is_refused(comm, scheduled, number):
    op = MPI.Op.Create(matrix_product, commute=False)
    matrices = [
        np.array([[[1, rank + k % 3], [k % 2, 1]] for k in range(number)])
        for rank in range(comm.size)
    ]
    expected = matrices[0]
    for matrix in matrices[1:]:
        expected = expected @ matrix
    for in_place in (False, True):
        recvbuf = matrices[comm.rank].copy()
        sendbuf = MPI.IN_PLACE if in_place else matrices[comm.rank]
        if ALGORITHMS[scheduled].commutative:
            with pytest.raises(mpiring.UsageError, match="needs an operation that commutes"):
                mpiring.allreduce(sendbuf, recvbuf, op, algorithm=scheduled)
            continue
        mpiring.allreduce(sendbuf, recvbuf, op, algorithm=scheduled)
        np.testing.assert_array_equal(recvbuf, expected)
    op.Free()
