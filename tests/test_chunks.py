import pytest

from mpiring.chunks import Split

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("count", [0, 1, 7, 8, 1000003, 2**31 + 5, 2**63 + 11])
@pytest.mark.parametrize("chunks", [1, 2, 7, 8, 1000])
def test_chunks_cover_the_elements_in_order_and_differ_by_one_at_most(count, chunks):
    split = Split(count, chunks)
    lengths = [split.length(chunk) for chunk in range(chunks)]
    assert sum(lengths) == count
    assert max(lengths) - min(lengths) <= 1
    assert split.edges[0] == 0
    assert split.edges[-1] == count
    assert lengths == sorted(lengths, reverse=True)


def test_several_chunks_are_one_slice():
    split = Split(10, 4)  # 3 3 2 2
    assert split.slice(1, 2) == slice(3, 8)
    assert split.length(1, 2) == 5
