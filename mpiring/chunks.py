"""The only place that splits a count into chunks."""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Split:
    """`count` elements in `chunks` parts; the first ones may be longer by 1.

    Python integers throughout: a count beyond 2^31, or 2^63, is split like any other.
    """

    count: int
    chunks: int

    @cached_property
    def edges(self) -> list[int]:
        """The index of the first element of each chunk, and of the end."""
        length, longer = divmod(self.count, self.chunks)
        return [chunk * length + min(chunk, longer) for chunk in range(self.chunks + 1)]

    def slice(self, first: int, chunks: int = 1) -> slice:
        """Return the elements of `chunks` chunks from `first` on."""
        return slice(self.edges[first], self.edges[first + chunks])

    def length(self, first: int, chunks: int = 1) -> int:
        """Return the number of elements in `chunks` chunks from `first` on."""
        return self.edges[first + chunks] - self.edges[first]
