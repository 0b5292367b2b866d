"""What a value in a result document may be: checked on reading, since anyone can edit a file.

What is wrong is a ValueError that says what, in JSON's words, and where.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mpiring.units import shortened

SMALLEST = 1e-15
"""No measurement is closer to 0, and figures made from such numbers are infinite."""
KINDS: Mapping[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}
"""What a value is in JSON."""


class Field(NamedTuple):
    """A kind of value, and its bounds."""

    kind: type
    least: float = float("-inf")
    most: float = float("inf")
    optional: bool = False

    def read(self, document: Mapping[str, Any], name: str) -> Any:
        """Return the value of this name."""
        if name not in document:
            raise ValueError(f"{name} is missing")
        return self.check(document[name], name)

    def check(self, value: Any, name: str) -> Any:
        """Return the value, a whole number as a float where a float is due."""
        if value is None and self.optional:
            return None
        # A bool is an int to Python, not to JSON; a float that is whole may be written as an int.
        if type(value) is not self.kind and (type(value), self.kind) != (int, float):
            raise ValueError(f"{name} is {_shown(value)} instead of {KINDS[self.kind]}")
        if self.kind is int or self.kind is float:
            if not self.least <= value <= self.most or 0 < value < SMALLEST:
                raise ValueError(f"{name} is {_shown(value)}, which is out of bounds")
            return self.kind(value)
        return value

    def or_none(self) -> "Field":
        """Return the field that may also be unknown."""
        return self._replace(optional=True)


def _shown(value: Any) -> str:
    """Return a value as a file has it, or its beginning."""
    return shortened(json.dumps(value, default=str), 40)  # TOML has dates


TEXT = Field(str)
FLAG = Field(bool)
WHOLE = Field(int, 0, 2**63 - 1)
POSITIVE = WHOLE._replace(least=1)
NUMBER = Field(float, 0, 1e300)
SECONDS = Field(float, 0, 1e9)
SEQUENCE = Field(list)
MAPPING = Field(dict)
