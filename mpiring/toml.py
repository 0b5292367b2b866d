"""TOML, which Python reads and does not write: what all files in it have in common."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from mpiring.errors import UsageError


def load(text: str, source: str) -> dict[str, Any]:
    """Return the document that a text is. Raises UsageError, with its `source`, if it is none."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source}: not TOML: {error}") from None


def refuse_unknown(table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise UsageError for a key that is not known: it may be one that is misspelt."""
    for key in table:
        if key not in known:
            raise UsageError(f"unknown key {key!r}, there are {', '.join(known)}")


def written(value: Any) -> str:
    """Return a text, number, truth value, list or table as it stands in a document."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {written(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, float):
        return repr(value)  # also of infinity, which JSON lacks
    # A text of TOML is one of JSON, but for DEL, which has to be escaped. Dates become texts.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def in_lines(values: Iterable[Any]) -> str:
    """Return a list with a line for each value."""
    return "".join(["[\n", *(f"    {written(value)},\n" for value in values), "]"])


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else written(name)
