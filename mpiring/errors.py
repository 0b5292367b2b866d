"""What can be wrong with a request. Each is raised on every rank, so that no rank waits alone."""


class MpiringError(Exception):
    """Base of all errors of this package: one sentence that a user can act on."""


class UsageError(MpiringError, ValueError):
    """A value that cannot be used: an option, a file, a buffer, an unmet precondition."""


class Unsupported(MpiringError, TypeError):
    """A type that cannot be reduced: a dtype, or an operation that is not defined for it."""


class Disagreement(MpiringError, ValueError):
    """The ranks of one call asked for different things."""


class NoLibrary(UsageError):
    """MPI cannot be loaded."""


class Stopped(MpiringError):
    """A run ended early, on all ranks together, and what is finished counts."""


class TimeIsUp(Stopped):
    """It ended since its time is up, or nearly; nobody wanted it to end."""
