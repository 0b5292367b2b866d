"""Closed forms: written once, as a reader would, and evaluated exactly.

A form is an expression in n, N, P, ... with the usual signs, in which a product may be written by
putting factors side by side: `2(N-1)/N n`. Functions: min, max, floor, ceil, and

* lg(N): log2 of N, of which the floor and the ceiling are meant;

* power(N): the largest power of two up to N;
* fold(N) or fold(N,k): 1 where ranks are folded in, as N is not a power of two (of the form j k^i,
  with j < k); else 0;
* levels(N,k), peers(N,k): how many rounds groups of k take for N ranks, and how many others a rank
  meets in them.

Division is exact: every value is a Fraction.
"""

import re
from fractions import Fraction
from functools import cache
from math import ceil, floor, prod
from types import CodeType


def evaluate(form: str, **values: int) -> Fraction:
    """Return the value of a closed form, given that of each name in it."""
    names = {name: Fraction(value) for name, value in values.items()}
    return Fraction(eval(_compiled(form), {"__builtins__": {}, **_FUNCTIONS}, names))


@cache
def _compiled(form: str) -> CodeType:
    factors = re.sub(r"(?<=[\d)])\s*(?=[A-Za-z(])|(?<=[A-Za-z])\s+(?=[A-Za-z(\d])", "*", form)
    return compile(factors, form, "eval")


def factors_of(size: int, radix: int) -> list[int]:
    """Return the numbers of groups that meet in each round: `radix` as often as it fits.

    And then what is left, from 2 to `radix - 1`, or nothing. Their product is at most `size`.
    """
    power, factors = 1, []
    while power * radix <= size:
        power *= radix
        factors.append(radix)
    last = size // power
    return factors + [last] * (last > 1)


def power_of_two(size: int) -> int:
    """Return the largest power of two that is not above `size`."""
    return 1 << (size.bit_length() - 1)


def _lg(size: Fraction) -> Fraction:
    """Return log2, straight between powers of two: its floor and ceiling are exact."""
    power = power_of_two(int(size))
    return power.bit_length() - 1 + (size - power) / power


def _fold(size: Fraction, radix: int = 2) -> int:
    return int(prod(factors_of(int(size), int(radix))) != size)


_FUNCTIONS = {
    "min": min,
    "max": max,
    "floor": floor,
    "ceil": ceil,
    "lg": _lg,
    "power": lambda size: power_of_two(int(size)),
    "fold": _fold,
    "levels": lambda size, radix: len(factors_of(int(size), int(radix))),
    "peers": lambda size, radix: sum(f - 1 for f in factors_of(int(size), int(radix))),
}
