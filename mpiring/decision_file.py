"""Decision files, which say what `auto` picks where. `mpiring tune` writes them, in TOML:

    schema = "mpiring.decision/1"

    [[situation]]
    mpi_library = "MPICH"                        # as MPI names it, without a version
    nodes = 1
    ranks_per_node = 2
    itemsize = 4                                 # bytes of an element
    buffers = "ordinary"                         # or "node-shared"
    thread_level = "multiple"                    # which it is if nothing is said; or "single", ...
    rules = [
        { up_to = "2 KiB", algorithm = "native_persistent" },
        { up_to = "16 MiB", algorithm = "ring", segment = 131072 },
        { algorithm = "native" },                # the last rule is for all that is larger
    ]

A rule has the options of its algorithm beside its name, as they are called in `mpiring.Options`.
What `measured` says of a situation is for people, and its times for `mpiring tune --confirm`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from mpiring import toml
from mpiring.decision import BUFFERS, MULTIPLE, THREAD_LEVELS, Pick, Row, Rule, Situation, Table
from mpiring.errors import UsageError
from mpiring.fields import MAPPING, NUMBER, POSITIVE, SEQUENCE, TEXT
from mpiring.options import Options
from mpiring.units import format_size, parse_size

T = TypeVar("T")
TIMES = "times_us"
"""In `measured`: a table for each size, with the medians of the final in microseconds, and a list
of what was no faster than `native` in this run or an earlier one."""
SIZE, SLOWER = "size", "slower"

SCHEMA = "mpiring.decision/1"
OPTIONS = tuple(field.name for field in fields(Options) if field.name != "rendezvous")
"""What a rule can choose of its algorithm."""


def read(text: str, source: str) -> Table:
    """Return the table that a file's `text` describes; `source` names the file.

    Raises UsageError with the file and the key, for anything that `auto` could not go by.
    """
    document = toml.load(text, source)
    schema = document.get("schema")
    if schema != SCHEMA:
        raise UsageError(f"{source}: schema is {schema!r}, this program reads {SCHEMA!r}")
    try:
        toml.refuse_unknown(document, ("schema", "situation"))
        rows = _each(SEQUENCE.read(document, "situation"), "situation", _row)
        if not rows:
            raise ValueError("situation is empty")
        return Table(rows, source)
    except ValueError as error:  # a UsageError is one
        raise UsageError(f"{source}: {error}") from None


def to_toml(table: Table) -> str:
    """Return the text that `read` reads back as this table."""
    return "\n".join(_lines(table)) + "\n"


def digest(table: Table) -> str:
    """Return a short name of what a table picks, the same whenever and on what it was measured."""
    rules = Table(tuple(replace(row, measured={}) for row in table.rows), table.source)
    return blake2b(to_toml(rules).encode(), digest_size=8).hexdigest()


class Times(NamedTuple):
    """What is known of a size."""

    us: Mapping[str, float]
    """The medians of the final, by name."""
    slower: Sequence[str] = ()
    """What this run or one before found no faster than `native`."""


def times(row: Row) -> dict[int, Times]:
    """Return what a row has beside its rules, by size in bytes.

    Raises UsageError where there is nothing, or what is there is something else.
    """
    try:
        lines = _each(SEQUENCE.read(row.measured, TIMES), TIMES, _times_of_line)
        if not lines or len(dict(lines)) < len(lines):
            raise ValueError(f"{TIMES} has {'the same size twice' if lines else 'no size'}")
    except ValueError as error:
        raise UsageError(f"measured of {row.situation}: {error}") from None
    return dict(lines)


def times_line(nbytes: int, known: Times) -> dict[str, Any]:
    """Return what is known of a size as it stands in a file."""
    slower = {SLOWER: list(known.slower)} if known.slower else {}
    return {SIZE: format_size(nbytes), **known.us, **slower}


def _times_of_line(document: Mapping[str, Any]) -> tuple[int, Times]:
    us = {n: NUMBER.read(document, n) for n in document if n not in (SIZE, SLOWER)}
    names = SEQUENCE.check(document.get(SLOWER, []), SLOWER)
    slower = [TEXT.check(name, SLOWER) for name in names]
    return parse_size(TEXT.read(document, SIZE)), Times(us, slower)


def _each(values: Sequence[Any], name: str, read_one: Callable[[Any], T]) -> tuple[T, ...]:
    """Read each of several tables, and let what is wrong with one say which it is."""
    done: list[T] = []
    for number, value in enumerate(values, start=1):
        place = f"{name} {number}"
        document = MAPPING.check(value, place)
        try:
            done.append(read_one(document))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
    return tuple(done)


def _row(document: Mapping[str, Any]) -> Row:
    toml.refuse_unknown(document, (*Situation._fields, "rules", "measured"))
    buffers = TEXT.read(document, "buffers")
    if buffers not in BUFFERS:
        raise ValueError(f"buffers is {buffers!r}, it can be {' or '.join(BUFFERS)}")
    level = TEXT.check(document.get("thread_level", MULTIPLE), "thread_level")
    if level not in THREAD_LEVELS:
        raise ValueError(f"thread_level is {level!r}, it can be {', '.join(THREAD_LEVELS)}")
    numbers = {n: POSITIVE.read(document, n) for n in ("nodes", "ranks_per_node", "itemsize")}
    library = TEXT.read(document, "mpi_library")
    situation = Situation(library, **numbers, buffers=buffers, thread_level=level)
    rules = _each(SEQUENCE.read(document, "rules"), "rule", _rule)
    return Row(situation, rules, MAPPING.check(document.get("measured", {}), "measured"))


def _rule(document: Mapping[str, Any]) -> Rule:
    toml.refuse_unknown(document, ("up_to", "algorithm", *OPTIONS))
    up_to = parse_size(TEXT.read(document, "up_to")) if "up_to" in document else None
    options = Options(**{name: document[name] for name in OPTIONS if name in document})
    return Rule(up_to, Pick(TEXT.read(document, "algorithm"), options))


def _lines(table: Table) -> Iterator[str]:
    yield "# What mpiring's `auto` picks. `mpiring tune --show FILE` says it in words."
    yield f"schema = {toml.written(SCHEMA)}"
    for row in table.rows:
        yield ""
        yield "[[situation]]"
        for name, value in row.situation._asdict().items():
            yield f"{name} = {toml.written(value)}"
        yield f"rules = {toml.in_lines(map(_rule_document, row.rules))}"
        if row.measured:
            yield ""
            yield "[situation.measured]"
            for name, value in row.measured.items():
                yield f"{name} = {(toml.in_lines if name == TIMES else toml.written)(value)}"


def _rule_document(rule: Rule) -> dict[str, Any]:
    """Return a rule as it stands in a file."""
    options = rule.pick.options
    return {
        **({} if rule.up_to is None else {"up_to": format_size(rule.up_to)}),
        "algorithm": rule.pick.algorithm,
        **{name: getattr(options, name) for name in options.chosen},
    }
