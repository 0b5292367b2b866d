"""Hostfiles of MPICH and Open MPI: where each puts the ranks, and how one becomes the other.

A line means the same here, whoever it was written for: `host`, `host:4`, `host slots=4`,
`[fe80::1]:4`, `n[1-10]`, with a comment behind it or not. What a launcher makes something else of
is a *trap*. A table for each launcher names the kinds that are one for it, so a file is read once
and judged for both.

The rules are those that MPICH 5.0 and Open MPI 5.0 show in `mpiexec -v` and `mpirun --display map`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from itertools import cycle, groupby, islice
from operator import attrgetter, itemgetter

from mpiring.errors import UsageError
from mpiring.hosts import expand, short

LONGEST = 1_000_000
"""Ranks up to which a map is made."""

_MOST = 2**31 - 1  # slots are an int to both launchers
_SLOTS = ("slots", "cpu", "count")
_MAX = {
    sep.join(words) for unit in _SLOTS for words in (("max", unit), (unit, "max")) for sep in "-_"
}
_USER = ("username", "user_name", "user-name")

_COMMENT = re.compile("#|//")
_EQUALS = re.compile(r"[ \t]*=[ \t]*")
_WORD = re.compile(r"[^ \t\r\f\v]+")
_BRACKETED = re.compile(r"\[([^]]*:[^]]*)\](?::(.*))?")
_NAME = re.compile(r"[\w-][\w.-]*", re.ASCII)
_RANGE = re.compile(r"[\w-][\w.-]*(?:\[[\d,-]+\][\w.-]*)+", re.ASCII)
_OPENMPI_USER = re.compile(r"(?:[a-z0-9][\w-]*)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Host:
    """What a line says of a host; 0 slots where it does not say."""

    line: int
    name: str
    slots: int = 0
    user: str = ""
    extras: tuple[str, ...] = ()
    """Words that only one launcher knows, such as `binding=user:1`."""


@dataclass(frozen=True)
class Hostfile:
    """The hosts in their order, and for each kind of trap the first line and word that is one."""

    source: str
    hosts: tuple[Host, ...]
    traps: Mapping[str, tuple[int, str]]


@dataclass(frozen=True)
class Dialect:
    """How a launcher reads a hostfile, and places ranks on its hosts."""

    name: str
    signs: tuple[str, ...]
    """The traps for the other launcher that tell that a file was written for this one."""
    traps: Mapping[str, str]
    """What it does where it does not do what the line means."""
    merge: Callable[[Hostfile, int | None], list[Host]]
    """Each of its nodes, with its slots, in its order."""
    in_turn: Callable[[Sequence[Host], int], list[Host] | None]
    """The node of each rank, by node; None where the launcher finds no place."""
    write: Callable[[Host], str]
    beyond: str
    """What it does with more ranks than slots."""

    def says(self, kind: str, word: str) -> str:
        """Return what it does with a trap, as a sentence."""
        return f"{self.name} {self.traps[kind].format(word)}"

    def faults(self, file: Hostfile) -> list[str]:
        """Return `file:line: reason` for each kind of trap that the file has for it, by line."""
        found = [(*file.traps[kind], kind) for kind in self.traps if kind in file.traps]
        found.sort(key=itemgetter(0))
        return [f"{file.source}:{line}: {self.says(kind, word)}" for line, word, kind in found]


def parse(text: str, source: str) -> Hostfile:
    """Read a hostfile of either launcher, with the line ends and the byte order mark it came with.

    Raises UsageError, as `file:line: reason`, for what is wrong to both.
    """
    if "\0" in text:
        raise UsageError(f"{source}: not a text file")
    traps: dict[str, tuple[int, str]] = {}
    if text.startswith("\ufeff"):
        traps["mark"] = 1, ""
    lines = text.removeprefix("\ufeff").split("\n")
    hosts: list[Host] = []
    for number, line in enumerate(lines, 1):
        try:
            named, found = _read(number, line, is_last=number == len(lines))
        except UsageError as error:
            raise _refusal(source, number, str(error)) from None
        hosts += named
        for kind, word in found:
            traps.setdefault(kind, (number, word))
    if not hosts:
        raise UsageError(f"{source}:1: names no host")
    times = Counter(short(host.name) for host in hosts)
    for host in hosts:
        if not host.slots and times[short(host.name)] == 1:
            traps.setdefault("cores", (host.line, host.name))
    return Hostfile(source, tuple(hosts), traps)


def guess(file: Hostfile) -> tuple[str, str]:
    """Return the dialect that a file is written in, and what tells it; MPICH's in doubt."""
    told = {}
    for key, dialect in DIALECTS.items():
        signs = [file.traps[sign] for sign in dialect.signs if sign in file.traps]
        if signs:
            told[key] = min(signs)[1]
    if len(told) == 1:
        [(key, word)] = told.items()
        return key, f"guessed from {word}"
    return "mpich", f"ambiguous: {' and '.join(told.values()) or 'nothing but names'}"


def nodes(file: Hostfile, dialect: Dialect, cores: int | None = None) -> list[Host]:
    """Return the launcher's nodes in its order, each with its slots.

    `cores` is how many a host has that Open MPI counts slots on; with 0, it is left with 0 slots.
    Raises UsageError for the first trap that the file has for it.
    """
    for fault in dialect.faults(file if cores is None else _without(file, "cores")):
        raise UsageError(fault)
    return dialect.merge(file, cores)


def check_ranks(file: Hostfile, dialect: Dialect, hosts: Sequence[Host], ranks: int) -> None:
    """Raise UsageError for more ranks than there are slots, or than a map can show."""
    slots = slots_of(hosts)
    if ranks > slots:
        raise UsageError(f"{file.source}: {ranks} ranks, but {slots} slots: {dialect.beyond}")
    if ranks > LONGEST:
        raise UsageError(f"{file.source}: a map of {ranks} ranks is too long; -n asks for fewer")


def slots_of(hosts: Sequence[Host]) -> int:
    """Return how many slots there are in all."""
    return sum(host.slots for host in hosts)


def slots_by_name(hosts: Sequence[Host]) -> dict[str, int]:
    """Return the slots of each host, which may be several nodes; 0 where its cores are counted."""
    slots: Counter[str] = Counter()
    for host in hosts:
        slots[host.name] += host.slots
    return dict(slots)


def in_blocks(hosts: Sequence[Host], ranks: int) -> list[Host]:
    """Return the node of each rank where a node is filled before the next one is."""
    return list(islice((host for host in hosts for _ in range(host.slots)), ranks))


def convert(file: Hostfile, source: Dialect, target: Dialect) -> str:
    """Return what makes `target` do what `source` is meant to do with this file.

    Raises UsageError where it has no words for that.
    """
    meant = replace(file, traps={k: v for k, v in file.traps.items() if k == "cores"})
    hosts = nodes(meant, source)
    for host in hosts:
        for kind, word in _inherent(host):
            if kind in target.traps:
                raise _refusal(file.source, host.line, target.says(kind, word))
    target.merge(Hostfile(file.source, tuple(hosts), {}), None)
    return "".join(f"{target.write(host)}\n" for host in hosts)


def _read(number: int, line: str, is_last: bool) -> tuple[list[Host], list[tuple[str, str]]]:
    """Return the hosts of a line, and its traps, each a kind and a word."""
    content = _COMMENT.split(line, maxsplit=1)[0]
    comment = line[len(content) :]
    words = _WORD.findall(_EQUALS.sub("=", content))
    hosts, traps = _name_hosts(number, *words) if words else ([], [])
    is_there = {
        "crlf": content.endswith("\r"),
        "behind": bool(comment and words),
        "slashes": comment.startswith("//"),
        "open": bool(comment and is_last),
    }
    return hosts, traps + [(kind, comment[:2]) for kind, is_so in is_there.items() if is_so]


def _name_hosts(number: int, first: str, *others: str) -> tuple[list[Host], list[tuple[str, str]]]:
    """Return what the words of a line say: a host, or several for a range, and their traps."""
    traps = []
    user, name, count, is_bracketed = _split(first)
    if is_bracketed:
        traps.append(("brackets", first))
    if count is not None:
        traps.append(("colon", first))
    slots = 0 if count is None else _slots(first, count)
    max_slots, extras = 0, []
    for word in others:
        key, _, value = word.partition("=")
        if key in _SLOTS and not slots:
            slots = _slots(word, value)
            traps.append(("slots", word))
        elif key in _MAX and not max_slots:
            max_slots = _slots(word, value)
            extras.append(word)
        elif key in ("user", *_USER) and value and not user:
            user = value
            traps.append(("user=" if key == "user" else "username=", word))
        elif key in ("binding", "port") and value:
            extras.append(word)
        else:
            raise UsageError(f"{word!r} behind the host is neither slots nor a comment")
    if 0 < max_slots < slots:
        raise UsageError(f"{slots} slots are more than max_slots")
    slots = slots or max_slots
    names = [name]
    if "[" in name:
        traps.append(("range", name))
        names = expand(name)
    hosts = [Host(number, name, slots, user, tuple(extras)) for name in names]
    return hosts, [*traps, *_inherent(hosts[0])]


def _split(word: str) -> tuple[str, str, str | None, bool]:
    """Return user, name, what stands behind the colon, and whether the name is in brackets."""
    user, _, host = word.rpartition("@")
    if _is_address(host):
        return user, host, None, False
    bracketed = _BRACKETED.fullmatch(host)
    if bracketed:
        address, count = bracketed.groups()
        if not _is_address(address):
            raise UsageError(f"{address!r} is not an IPv6 address")
        return user, address, count, True
    name, colon, count = host.partition(":")
    if not _NAME.fullmatch(name) and not _RANGE.fullmatch(name):
        raise UsageError(f"{word!r} does not begin with a host's name")
    return user, name, count if colon else None, False


def _is_address(text: str) -> bool:
    try:
        return "%" not in text and bool(IPv6Address(text))
    except ValueError:
        return False


def _slots(word: str, digits: str) -> int:
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and 0 < int(digits) <= _MOST:
        return int(digits)
    raise UsageError(f"{word!r} does not give a number of slots from 1")


def _inherent(host: Host) -> Iterator[tuple[str, str]]:
    """Yield the traps that are in what is said, not in how it is written."""
    if ":" in host.name:
        yield "address", host.name
    if not _OPENMPI_USER.fullmatch(host.user):
        yield "user", host.user
    for word in host.extras:
        yield "binding" if word.startswith("binding") else "key", word


def _refusal(source: str, line: int, reason: str) -> UsageError:
    return UsageError(f"{source}:{line}: {reason}")


def _without(file: Hostfile, trap: str) -> Hostfile:
    return replace(file, traps={k: v for k, v in file.traps.items() if k != trap})


def _mpich_merge(file: Hostfile, cores: int | None) -> list[Host]:
    """Add up lines of a host that follow each other; further down it is another node."""
    merged = []
    for _, lines in groupby(file.hosts, attrgetter("user", "name")):
        first, *others = lines
        slots = sum(host.slots or 1 for host in (first, *others))
        merged.append(replace(first, slots=slots))
    return merged


def _openmpi_merge(file: Hostfile, cores: int | None) -> list[Host]:
    """Collect the lines of a host. Only the first may give slots; each other line adds one.

    Without any, a host has a slot for each line, or, named once, one for each core.
    """
    merged: dict[str, Host] = {}
    for host in file.hosts:
        name = short(host.name)
        first = merged.get(name)
        if first is None:
            merged[name] = host
        elif host.slots:
            reason = f"Open MPI refuses slots of {host.name}, which line {first.line} names as well"
            raise _refusal(file.source, host.line, reason)
        else:
            merged[name] = replace(first, slots=(first.slots or 1) + 1)
    return [replace(host, slots=host.slots or cores or 0) for host in merged.values()]


def _mpich_in_turn(hosts: Sequence[Host], ranks: int) -> list[Host] | None:
    """Give each node one, whatever its slots, and begin again: `-ppn 1`."""
    return list(islice(cycle(hosts), ranks))


def _openmpi_in_turn(hosts: Sequence[Host], ranks: int) -> list[Host] | None:
    """Share the ranks out in two passes, then deal each node's share in turn.

    A node takes an equal share of what is left, but no more than one before it in the pass had
    room for. So a small node early in the file can leave ranks over, and the launcher gives up.
    """
    shares = [0] * len(hosts)
    left = ranks
    for _ in range(2):
        share = max(1, left // len(hosts))
        for index, host in enumerate(hosts):
            room = host.slots - shares[index]
            if room:
                share = min(share, room)
                shares[index] += min(share, left)
                left -= min(share, left)
    if left:
        return None
    turns = sorted((turn, index) for index, own in enumerate(shares) for turn in range(own))
    return [hosts[index] for _, index in turns]


def _write_mpich(host: Host) -> str:
    user = f"{host.user}@" if host.user else ""
    return " ".join((f"{user}{host.name}:{host.slots}", *host.extras))


def _write_openmpi(host: Host) -> str:
    user = f"{host.user}@" if host.user else ""
    return " ".join((f"{user}{host.name}", f"slots={host.slots}", *host.extras))


DIALECTS = {
    "mpich": Dialect(
        "MPICH",
        signs=("colon", "user=", "binding"),
        traps={
            "mark": "takes the byte order mark at the beginning for a part of the name",
            "range": "takes {} for the name of one host; `mpiring hostfile convert` expands it",
            "address": "ends a name at its first colon, and cannot name {}",
            "behind": "has no comments behind a host",
            "slashes": "has no comments that begin with //",
            "slots": "refuses {}: it is host:slots there",
            "username=": "refuses {}: it is user= there",
            "key": "refuses {}",
        },
        merge=_mpich_merge,
        in_turn=_mpich_in_turn,
        write=_write_mpich,
        beyond="MPICH would begin again with the first host",
    ),
    "openmpi": Dialect(
        "Open MPI",
        signs=("slots", "username=", "key", "slashes"),
        traps={
            "mark": "refuses the byte order mark at the beginning",
            "crlf": "refuses lines that end in CR LF",
            "open": "refuses a comment in a last line that does not end",
            "range": "refuses {}; `mpiring hostfile convert` expands it",
            "brackets": "refuses the brackets of {}",
            "user": "cannot read the user {}",
            "colon": "takes all of {} for a name: it is host slots=N there",
            "user=": "refuses {}: it is username= there",
            "binding": "refuses {}",
            "cores": "has as many slots on {} as it has cores, without slots=N",
        },
        merge=_openmpi_merge,
        in_turn=_openmpi_in_turn,
        write=_write_openmpi,
        beyond="Open MPI would refuse to start",
    ),
}
