"""A number on the command line that is one: `nan` passes all bounds, since no comparison holds."""

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A range of numbers without nan and infinity."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail as any other value out of range."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number
