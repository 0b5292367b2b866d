"""Result files: written as the run goes, whole at any instant."""

import os
from pathlib import Path

from mpiring.errors import UsageError
from mpiring.report.formats import FORMATS
from mpiring.results import Result, parse


def check_writable(path: str) -> None:
    """Raise UsageError for an ending that names no format, and where no file can be written."""
    if _format(path) not in ("json", "csv"):
        raise UsageError(f"{path}: the ending has to be .json or .csv")
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a directory")
    try:
        partial = _partial(path)
        partial.touch()
        partial.unlink()
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def write(path: str, result: Result) -> None:
    """Replace the file's content. A reader, or a killed run, never sees half of a result."""
    partial = _partial(path)
    with open(partial, "w", encoding="utf-8") as file:
        file.write(FORMATS[_format(path)](result))
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, Path(path).resolve())


def read(path: str) -> Result:
    """Return the result in a JSON file. Raises UsageError where there is none that can be read."""
    try:
        return parse(Path(path).read_text(encoding="utf-8"), path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a text file") from None


def _format(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".")


def _partial(path: str) -> Path:
    """Beside the file that `path` leads to, so that it can take its place in one step."""
    target = Path(path).resolve()
    return target.with_name(f".{target.name}.partial")
