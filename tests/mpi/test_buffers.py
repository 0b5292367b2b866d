"""Buffers of any shape and strides give right values; the rest is refused on every rank."""

import numpy as np
import pytest
from mpi4py import MPI

import mpiring

pytestmark = pytest.mark.mpi

SHAPES = [(), (1,), (1, 1, 5), (2, 3), (0,), (3, 0, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_shape_is_kept(comm, typical, shape):
    parts = [
        np.arange(np.prod(shape, dtype=int)).reshape(shape) + 10.0 * r for r in range(comm.size)
    ]
    recvbuf = np.full(shape, -999.0)
    mpiring.allreduce(parts[comm.rank], recvbuf, algorithm=typical)
    assert recvbuf.shape == shape
    np.testing.assert_array_equal(recvbuf, sum(parts))


def test_a_numpy_scalar_may_be_sent(comm):
    recvbuf = np.array(0.0)
    mpiring.allreduce(np.float64(3 + comm.rank), recvbuf)
    assert recvbuf == 3 * comm.size + sum(range(comm.size))


STRIDED = {
    "every other": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "a column": lambda x: x.reshape(-1, 4)[:, 1],
    "transposed": lambda x: x.reshape(4, -1).T,
    "repeated": lambda x: np.broadcast_to(x[:1], (7,)),
}


@pytest.mark.parametrize("view", STRIDED.values(), ids=STRIDED)
def test_strided_send_buffers(comm, typical, view):
    parts = [view(np.arange(24.0) + 100 * rank) for rank in range(comm.size)]
    recvbuf = np.full(parts[0].shape, -999.0)
    mpiring.allreduce(parts[comm.rank], recvbuf, algorithm=typical)
    np.testing.assert_array_equal(recvbuf, sum(parts))


@pytest.mark.parametrize("name", ["every other", "backwards", "a column", "transposed"])
@pytest.mark.parametrize("in_place", [False, True])
def test_strided_receive_buffers_leave_their_neighbours_alone(comm, typical, name, in_place):
    whole = np.full(24, 7.0)
    recvbuf = STRIDED[name](whole)
    parts = [np.arange(recvbuf.size).reshape(recvbuf.shape) + 10.0 * r for r in range(comm.size)]
    recvbuf[...] = parts[comm.rank]
    sendbuf = recvbuf if in_place else parts[comm.rank]
    mpiring.allreduce(sendbuf, recvbuf, algorithm=typical)
    np.testing.assert_array_equal(recvbuf, sum(parts))
    untouched = np.ones(24, bool)
    STRIDED[name](untouched)[...] = False
    assert np.all(whole[untouched] == 7)


def test_a_plan_reads_a_strided_send_buffer_in_each_run(comm, typical):
    whole, recvbuf = np.zeros(10), np.zeros(5)
    with mpiring.allreduce_init(whole[::2], recvbuf, algorithm=typical) as plan:
        for value in (1.0, 5.0):
            whole[:] = value * (comm.rank + 1)
            plan()
            np.testing.assert_array_equal(recvbuf, value * sum(range(1, comm.size + 1)))


def test_memory_order_may_differ_between_ranks(comm, typical):
    """The logical elements are reduced, never raw memory."""
    parts = [np.arange(6.0).reshape(2, 3) + 10 * rank for rank in range(comm.size)]
    order = "F" if comm.rank == 0 else "C"
    sendbuf = np.array(parts[comm.rank], order=order)
    recvbuf = np.zeros((2, 3), order=order)
    mpiring.allreduce(sendbuf, recvbuf, algorithm=typical)
    np.testing.assert_array_equal(recvbuf, sum(parts))


def test_a_subclass_counts_as_the_array_it_is(comm, typical):
    matrix = np.zeros((2, 3)).view(np.matrix)
    mpiring.allreduce(np.ones((2, 3)).view(np.matrix), matrix, algorithm=typical)
    np.testing.assert_array_equal(np.asarray(matrix), comm.size)


def overlapping(_):
    whole = np.zeros(10)
    return whole[:6], whole[4:]


def read_only(_):
    recvbuf = np.zeros(3)
    recvbuf.flags.writeable = False
    return np.zeros(3), recvbuf


REFUSED = {
    "a bare number": (lambda _: (3.0, np.zeros(1)), TypeError, "sendbuf is of type float"),
    "a number to receive": (lambda _: (np.zeros(1), 3.0), TypeError, "recvbuf is of type float"),
    "a list": (lambda _: ([1.0], np.zeros(1)), TypeError, "sendbuf is of type list"),
    "None": (lambda _: (np.zeros(1), None), TypeError, "recvbuf is of type NoneType"),
    "None to send": (lambda _: (None, np.zeros(1)), TypeError, "sendbuf is of type NoneType"),
    "a mask": (lambda _: (np.ma.masked_array([1.0], [True]), np.zeros(1)), TypeError, "masked"),
    "a mask to receive": (lambda _: (np.zeros(1), np.ma.zeros(1)), TypeError, "masked"),
    "structured": (lambda _: (np.zeros(2, "i4,f4"),) * 2, TypeError, "cannot reduce dtype"),
    "objects": (lambda _: (np.zeros(2, object),) * 2, TypeError, "cannot reduce dtype"),
    "text": (lambda _: (np.zeros(2, "U3"),) * 2, TypeError, "cannot reduce dtype"),
    "times": (lambda _: (np.zeros(2, "M8[s]"),) * 2, TypeError, "cannot reduce dtype"),
    "two dtypes": (lambda _: (np.zeros(2, "f4"), np.zeros(2)), TypeError, "sendbuf is float32"),
    "two counts": (lambda _: (np.zeros(2), np.zeros(3)), ValueError, "sendbuf has 2 elements"),
    "overlap": (overlapping, ValueError, "overlap"),
    "read-only": (read_only, ValueError, "read-only"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_reduced_is_refused(comm, typical, name):
    make, error, message = REFUSED[name]
    with pytest.raises(error, match=message) as caught:
        mpiring.allreduce(*make(comm), algorithm=typical)
    assert isinstance(caught.value, mpiring.MpiringError)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", REFUSED)
def test_an_error_of_one_rank_is_an_error_on_all(comm, typical, name):
    make, error, message = REFUSED[name]
    culprit = comm.size - 1
    buffers = make(comm) if comm.rank == culprit else (np.zeros(2), np.zeros(2))
    who = "" if comm.rank == culprit else f"rank {culprit}: "
    with pytest.raises(error, match=f"^{who}.*{message}"):
        mpiring.allreduce(*buffers, algorithm=typical)


@pytest.mark.parametrize(
    "op", [MPI.MAXLOC, MPI.REPLACE, MPI.NO_OP, MPI.OP_NULL, "sum", None], ids=str
)
@pytest.mark.parametrize("collective", [mpiring.allreduce, mpiring.reduce_scatter])
def test_operations_that_do_not_work_element_by_element_are_refused(comm, op, collective):
    whole = np.zeros(2 * comm.size)
    recvbuf = np.zeros(2) if collective is mpiring.reduce_scatter else np.empty_like(whole)
    with pytest.raises(mpiring.Unsupported, match="op"):
        collective(whole, recvbuf, op)
