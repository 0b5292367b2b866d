"""The decision table for `auto` where nothing was measured on the machine itself.

It is a decision file like any other, built_in.toml beside this module, and says of each of its rows
when, with which library and on which processor it was measured.
"""

from functools import cache
from importlib.resources import files

from mpiring.decision import Table
from mpiring.decision_file import read

NAME = "the built-in table"


@cache
def table() -> Table:
    """Return the table, which is read at its first use."""
    return read(files(__package__).joinpath("built_in.toml").read_text(encoding="utf-8"), NAME)
