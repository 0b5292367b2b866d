"""The only place that splits a count into chunks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Split:
    """`count` elements from `start` on, in `chunks` parts; the first ones may be longer by 1.

    Python integers throughout: a count beyond 2^31, or 2^63, is split like any other.
    """

    count: int
    chunks: int
    start: int = 0

    def offset(self, chunk: int) -> int:
        """Index of the first element of `chunk`; of the end for `chunk == chunks`."""
        length, longer = divmod(self.count, self.chunks)
        return self.start + chunk * length + min(chunk, longer)

    def slice(self, first: int, chunks: int = 1) -> slice:
        """Return the elements of `chunks` chunks from `first` on."""
        return slice(self.offset(first), self.offset(first + chunks))

    def length(self, first: int, chunks: int = 1) -> int:
        """Return the number of elements in `chunks` chunks from `first` on."""
        return self.offset(first + chunks) - self.offset(first)
