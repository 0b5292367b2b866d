"""Sizes, times and bandwidths: how they are written and read, the same everywhere.

A size is a number and an optional unit: B, kB (10^3), MB, GB, TB, or KiB (2^10), MiB, GiB, TiB. The
B may be left out (`1M` is 10^6), a space may stand before the unit, and case does not matter. A
size is a whole number of bytes below 2^63.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from itertools import takewhile

from mpiring.errors import UsageError

_PREFIXES = "kmgt"
_SIZE = re.compile(
    rf"(?P<number>\d+\.?\d*(?:e\d{{1,3}})?|\.\d+(?:e\d{{1,3}})?)\s*(?P<prefix>[{_PREFIXES}]?)(?P<binary>i?)b?",
    re.IGNORECASE | re.ASCII,
)
_LIMIT = 2**63
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(?P<number>\d{1,9}(\.\d{1,9})?)\s*(?P<unit>[smh]?)", re.ASCII)


def parse_size(text: str) -> int:
    """Return the bytes that `text` names: `1500`, `1.5M`, `64 KiB`, `1e6`."""
    match = _SIZE.fullmatch(text.strip())
    if not match or (match["binary"] and not match["prefix"]):
        raise UsageError(f"{text!r} is not a size such as 1500, 4KiB (4096) or 1.5MB (1500000)")
    power = 1 + _PREFIXES.index(match["prefix"].lower()) if match["prefix"] else 0
    unit = (1024 if match["binary"] else 1000) ** power
    size = Decimal(match["number"]) * unit
    if size >= _LIMIT:
        raise UsageError(f"{text!r} is beyond 2^63-1 bytes")
    if size != int(size):
        raise UsageError(f"{text!r} is not a whole number of bytes")
    return int(size)


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return the sizes that a list such as `8:64MiB,1001KiB` names, each once, in its order.

    An item is a size, or a range `FIRST:LAST`, which doubles, or `FIRST:LAST:xFACTOR`.
    """
    sizes: dict[int, None] = {}
    for item in text.split(","):
        sizes.update(dict.fromkeys(_parse_item(item)))
    return tuple(sizes)


def _parse_item(item: str) -> list[int]:
    if ":" not in item:
        return [parse_size(item)]
    first, last, *rest = item.split(":")
    size, end, factor = parse_size(first), parse_size(last), 2
    if rest:
        match = re.fullmatch(r"\s*x(\d{1,9})\s*", rest[0])
        if len(rest) > 1 or not match or int(match[1]) < 2:
            raise UsageError(f"{item!r} is not a range such as 8:64MiB or 8:64MiB:x4")
        factor = int(match[1])
    if size == 0:
        raise UsageError(f"{item!r}: a range that multiplies cannot begin at 0")
    if size > end:
        raise UsageError(f"{item!r}: the first size is larger than the last")
    sizes = []
    while size <= end:
        sizes.append(size)
        size *= factor
    return sizes


def parse_duration(text: str) -> float:
    """Return the seconds that `text` names: `90`, `90s`, `10m`, `1.5h`."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match["number"]) * _SECONDS[match["unit"] or "s"] if match else 0
    if not seconds:
        raise UsageError(f"{text!r} is not a time such as 90s, 10m or 1.5h")
    return seconds


def format_size(nbytes: int) -> str:
    """Return the shortest exact form in binary units: `8 B`, `64 KiB`, `1500 B`."""
    power = 0
    while power < 4 and nbytes and nbytes % 1024 == 0:
        nbytes //= 1024
        power += 1
    return f"{nbytes} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def format_amount(nbytes: float) -> str:
    """Return a rounded form for amounts of memory: `1.5 GiB`."""
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while nbytes >= 1024 and len(units) > 1:
        nbytes /= 1024
        del units[0]
    return f"{nbytes:.4g} {units[0]}"


def algbw(nbytes: int, seconds: float) -> float:
    """Bytes of the buffer per time, in GB/s (10^9 B/s)."""
    return nbytes / seconds / 1e9


def busbw(nbytes: int, seconds: float, size: int) -> float:
    """Return what the slowest link carries in a bandwidth-optimal allreduce, in GB/s (10^9 B/s).

    `algbw` times 2(size-1)/size: comparable between numbers of ranks, and 0 for one rank.
    """
    return algbw(nbytes, seconds) * 2 * (size - 1) / size


def counted(number: int, noun: str) -> str:
    """Write a number of things: `1 rank`, `2 ranks`."""
    return f"{number} {plural(number, noun)}"


def plural(number: int, noun: str) -> str:
    """Return the noun for so many: `rank`, `ranks`."""
    return noun if number == 1 else f"{noun}s"


def shortened(text: str, width: int) -> str:
    """Return at most `width` characters, of which the last tell where some are left out."""
    return text if len(text) <= width else text[: width - 3] + "..."


def differing(first: object, second: object, width: int) -> tuple[str, str]:
    """Write two values that differ, each in at most `width` characters; long ones from shortly
    before the place where they do.
    """
    texts = str(first), str(second)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    begin = 0 if max(map(len, texts)) <= width else max(0, same - width // 2)
    one, other = (shortened("..." * (begin > 0) + text[begin:], width) for text in texts)
    return one, other


def rows_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last of each row of neighbours, of numbers in ascending order."""
    rows: list[tuple[int, int]] = []
    for number in numbers:
        if rows and rows[-1][1] == number - 1:
            rows[-1] = (rows[-1][0], number)
        else:
            rows.append((number, number))
    return rows


def ranges(numbers: Iterable[int]) -> str:
    """Write ranks or cores as Linux does: `0-3,8`."""
    rows = rows_of(sorted(numbers))
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in rows)
