"""Double binary tree: each half of the buffer goes up and down a tree of its own.

In a binary tree half of the ranks are leaves, which send much less than the others. Two trees over
the same ranks, such that a leaf of the one is inside the other, give everybody the same work. Cut
into segments, which follow each other one round apart, both trees keep all ranks busy.

Tree 1 has rank 0 on top. For another rank, let b be its lowest set bit: its parent is (r^b)|(b<<1),
or r^b where there is no such rank; its children are r - b/2 and r + b/2, the latter by less where
there is no such rank. Rank 0's only child is half the smallest power of two from N on. Tree 2 is
tree 1 mirrored if N is even, and turned by one rank if it is odd: only there rank 0 may be inside
both.

Rounds, with S segments: 2 D + S - 1, where D = ceil(lg N) is the depth of a tree.
Bytes sent per rank: up to 2 n. Scratch: up to three segments for each chunk that is under way.
Cost: (2 D + S - 1) (alpha + n/S beta) up to a small factor for the several messages of a round.
Source: Sanders, Speck and Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and
scan, Parallel Comput. 35 (2009); these two trees are those of NCCL.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from mpiring.schedule import Recv, Round, Send, back, side_by_side


class Neighbours(NamedTuple):
    """Where a rank is in a tree: below `parent`, None for the root, and above `children`."""

    parent: int | None
    children: tuple[int, ...]


Tree: TypeAlias = Callable[[int, int], Neighbours]
"""Gives the place of a rank among `size` ranks."""


def double_binary_tree(rank: int, size: int) -> Iterator[Round]:
    """Yield the rounds of `rank` among `size`, over 2 chunks: one for each tree."""
    return side_by_side(
        _up_and_down(first_tree, rank, size, chunk=0),
        _up_and_down(second_tree, rank, size, chunk=1),
    )


def first_tree(rank: int, size: int) -> Neighbours:
    """Return the place of `rank` in the tree with rank 0 on top."""
    if rank == 0:
        top = 1 << (size - 1).bit_length() >> 1
        return Neighbours(None, (top,) if top else ())
    bit = rank & -rank
    parent = (rank ^ bit) | (bit << 1)
    left, right = rank - bit // 2, rank + bit // 2
    while right >= size:
        right = rank + (right - rank) // 2
    inner = (child for child in (left, right) if child != rank)
    return Neighbours(parent if parent < size else rank ^ bit, tuple(inner))


def second_tree(rank: int, size: int) -> Neighbours:
    """Return the place of `rank` in the other tree."""
    if size % 2:
        parent, children = first_tree((rank - 1) % size, size)
        return _renamed(parent, children, lambda other: (other + 1) % size)
    parent, children = first_tree(size - 1 - rank, size)
    return _renamed(parent, children, lambda other: size - 1 - other)


def _renamed(
    parent: int | None, children: tuple[int, ...], name: Callable[[int], int]
) -> Neighbours:
    return Neighbours(None if parent is None else name(parent), tuple(map(name, children)))


def depth(tree: Tree, rank: int, size: int) -> int:
    """Return how many ranks are above `rank`."""
    parent = tree(rank, size).parent
    return 0 if parent is None else 1 + depth(tree, parent, size)


def _up_and_down(tree: Tree, rank: int, size: int, chunk: int) -> Iterator[Round]:
    up = list(_up(tree, rank, size, chunk))
    yield from up
    yield from back(up)


def _up(tree: Tree, rank: int, size: int, chunk: int) -> Iterator[Round]:
    """Reduce the chunk up the tree.

    A rank takes part in the rounds of its depth alone, and the others are empty, so that all are in
    step: the deepest begin, and nobody sends before the round in which its parent receives.
    """
    parent, children = tree(rank, size)
    above = depth(tree, rank, size)
    for level in reversed(range((size - 1).bit_length())):  # those below send to those on it
        if level == above:
            yield tuple(Recv(child, chunk, reduce=True) for child in children)
        else:
            yield (Send(parent, chunk),) if parent is not None and level == above - 1 else ()
