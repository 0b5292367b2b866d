"""Result files: written as the run goes, whole at any instant."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mpiring.errors import UsageError
from mpiring.report.formats import FORMATS
from mpiring.results import Result, parse
from mpiring.texts import read_text


class Kind(NamedTuple):
    """A kind of file, of which a new one may take the place of an old one."""

    called: str
    mark: bytes
    """A pattern for what each has in it."""
    endings: Sequence[str] = ()
    """What its name has to end in; anything where there is none."""


RESULT = Kind(
    "result of mpiring",
    rb'"schema":\s*"mpiring\.results/|\Aalgorithm,ran,nbytes,',
    ("json", "csv"),
)
LEVELS = Kind("topology", rb"^\[\[level\]\]", ("toml",))
LINKS = Kind("matrix of mpiring", rb'"schema":\s*"mpiring\.links/', ("json",))
TRACE = Kind("trace of mpiring", rb'"format":\s*"mpiring\.trace/')


def check_writable(path: str, kind: Kind) -> None:
    """Raise UsageError for an ending that names no format, and where no file can be written.

    Also where a file of another kind is, which nobody can have wanted to lose.
    """
    if kind.endings and _format(path) not in kind.endings:
        wanted = " or ".join(f".{ending}" for ending in kind.endings)
        raise UsageError(f"{path}: the ending has to be {wanted}")
    try:
        content = Path(path).read_bytes() if check_place(path) else b""
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    if content and not re.search(kind.mark, content, re.MULTILINE):
        raise UsageError(f"{path}: is there already, and no {kind.called}: not overwritten")


def check_place(path: str) -> bool:
    """Return whether a file is there. Raises UsageError where none can be written.

    What is neither file nor directory, as a device or a pipe, holds nothing that could be lost.
    """
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a directory")
    if os.path.exists(path) and not os.path.isfile(path):
        return False
    try:
        partial = _partial(path)
        partial.touch()
        partial.unlink()
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    return os.path.exists(path)


def check_apart(path: str | None, other: str | None) -> None:
    """Raise UsageError where two outputs name the same file."""
    if path and other and Path(path).resolve() == Path(other).resolve():
        raise UsageError(f"{path}: two outputs name the same file")


def write(path: str, result: Result) -> None:
    """Replace the file's content by a result, in the format of its ending."""
    save(path, FORMATS[_format(path)](result))


class ResultFile:
    """The file that a run writes as it goes, and no other one meanwhile."""

    def __init__(self, path: str) -> None:
        """Raises UsageError where it cannot be written."""
        check_writable(path, RESULT)
        self.path = path
        self._as_left = _version(path)

    def write(self, result: Result) -> None:
        """Replace its content. Raises UsageError where another run did so since the last time."""
        if (found := _version(self.path)) and found != self._as_left:
            raise UsageError(f"{self.path}: another run has written to it meanwhile")
        write(self.path, result)
        self._as_left = _version(self.path)


def _version(path: str) -> tuple[int, int, int] | None:
    """Return what another one would change by writing to a file; None where there is no file."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:  # which makes a network file system look again
        at = os.fstat(file.fileno())
    return at.st_ino, at.st_size, at.st_mtime_ns


def save(path: str, text: str) -> None:
    """Replace the file's content. A reader, or a killed run, never sees half of it.

    Raises UsageError where that fails, as on a full disk; what was there before stays. What is no
    file, as a device or a pipe, is written to.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
        return
    partial = _partial(path)
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, Path(path).resolve())
    except OSError as error:  # which names no file where a write failed
        with suppress(OSError):
            partial.unlink()
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def read(path: str) -> Result:
    """Return the result in a JSON file. Raises UsageError where there is none that can be read."""
    if _format(path) == "csv":
        raise UsageError(f"{path}: only .json can be read: a .csv file lacks the samples")
    return parse(read_text(path), path)


def _format(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".")


def _partial(path: str) -> Path:
    """Beside the file that `path` leads to, so that it can take its place in one step."""
    target = Path(path).resolve()
    return target.with_name(f".{target.name}.partial")
