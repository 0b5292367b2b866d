"""Standard output and error that are full or closed: one sentence, or none, and no traceback."""

import errno
import os
import sys

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def full(error: BaseException) -> str:
    """Return what to say if standard output took no more, and nothing for any other error.

    An error of a named file is told where that is written.
    """
    if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
        return f"standard output: {error.strerror}"
    return ""


def discard() -> None:
    """Let standard output lead nowhere: what is in its buffer would fail again as this ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def open_closed() -> None:
    """Let what is closed lead nowhere; the next file that is opened would take its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  until this process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
