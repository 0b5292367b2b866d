"""Names of hosts: lists in brackets, full and short names, and which of them mean the same host."""

import re
from collections.abc import Collection, Iterable

from mpiring.errors import UsageError

_LIST = re.compile(r"[\w.,\[\]-]*", re.ASCII)  # NodeSet knows more: sets of sets, groups, wildcards


MOST = 100_000
"""Hosts that a list may stand for."""


def expand(text: str) -> list[str]:
    """Return the names that a list such as `n[1-3,7],m2` stands for, each once.

    Raises UsageError for what is no such list, or stands for more than MOST.
    """
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if not _LIST.fullmatch(text):
        raise UsageError(f"{text!r} is not a list of names such as n[1-3,7],m2")
    try:
        # Its own count comes before a list of them, which could be longer than memory.
        nodes = NodeSet(text, resolver=RESOLVER_NOGROUP)
        if len(nodes) > MOST:
            raise UsageError(f"{text!r} are {len(nodes)} hosts, at most {MOST} are read")
        return list(nodes)
    except AssertionError:  # for ranges that it finds too large itself
        raise UsageError(f"{text!r} are too many hosts, at most {MOST} are read") from None
    except NodeSetException as error:
        raise UsageError(f"{text!r} is not a range of hosts: {error}") from None


def is_address(name: str) -> bool:
    """Whether a host is given by its IP address, which says nothing of its name."""
    return ":" in name or ("." in name and name.replace(".", "").isdecimal())


def short(name: str) -> str:
    """Return a name without its domain; an address is whole."""
    return name if is_address(name) else name.partition(".")[0]


def meant(hosts: Iterable[str], names: Collection[str]) -> dict[str, str]:
    """Return for each host the one of `names` that means it; a host that none means is left out.

    A short name and a full one, `n1` and `n1.cluster`, mean the same host where there is no other
    that they could mean. Raises UsageError where there is: two hosts are never taken for one.
    """
    by_short: dict[str, list[str]] = {}
    for name in names:
        by_short.setdefault(short(name), []).append(name)
    found: dict[str, str] = {}
    host_of: dict[str, str] = {}
    for host in dict.fromkeys(hosts):
        if host in names:
            could = [host]
        elif host == short(host):
            could = by_short.get(host, [])
        else:
            could = [name for name in by_short.get(short(host), []) if name == short(name)]
        if len(could) > 1:
            raise UsageError(f"host {host} could be {could[0]} or {could[1]}")
        for name in could:
            if name in host_of:
                raise UsageError(f"{name} could be host {host_of[name]} or host {host}")
            found[host], host_of[name] = name, host
    return found
