"""JSON documents of ours, as all of them are read."""

import json
from typing import Any, NoReturn

from mpiring.errors import UsageError


def load(text: str, source: str, schema: str, kind: str) -> dict[str, Any]:
    """Return the document, whose key `schema` has to be this one, as `mpiring.results/1`.

    Raises UsageError with the `source`: it is not JSON, not of that `kind`, or of another version.
    """
    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source}: not JSON, or cut off: {error}") from None
    found = document.get("schema") if isinstance(document, dict) else None
    name = schema.partition("/")[0]
    if not isinstance(found, str) or not found.startswith(f"{name}/"):
        raise UsageError(f"{source}: not {kind}")
    if found != schema:
        raise UsageError(f"{source}: its schema is {found}, this program reads {schema}")
    return dict(document)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
