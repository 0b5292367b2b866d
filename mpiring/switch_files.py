"""Slurm's files about a network: topology.conf, and topology.yaml in the form of a tree.

Both list switches, each with the nodes or with the switches that are directly below it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mpiring.errors import UsageError
from mpiring.hosts import expand

_KEYS = ("SwitchName", "Nodes", "Switches", "LinkSpeed")
_PAIR = re.compile(r'(\w+)\s*=\s*("[^"]*"|[^\s"=]+)\s*')


class Switch(NamedTuple):
    """A switch, and what is directly below it; `where` says in errors where a file has it."""

    where: str
    name: str
    nodes: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


def read_conf(text: str, source: str) -> list[Switch]:
    """Return the switches of a topology.conf. Raises UsageError, as `file:line: reason`."""
    switches = []
    number, begun = 1, ""
    for last, line in enumerate([*text.split("\n"), ""], 1):
        begun += line.partition("#")[0]
        if begun.rstrip().endswith("\\"):  # goes on in the next line
            begun = begun.rstrip()[:-1] + " "
            continue
        if begun.strip():
            switches.append(_read_line(begun.strip(), f"{source}:{number}"))
        number, begun = last + 1, ""
    if not switches:
        raise UsageError(f"{source}: names no switch")
    return switches


def _read_line(line: str, where: str) -> Switch:
    values: dict[str, str] = {}
    at = 0
    while at < len(line):
        pair = _PAIR.match(line, at)
        if not pair:
            raise UsageError(f"{where}: {line[at:].split()[0]!r} is not KEY=VALUE")
        key, value = pair[1].lower(), pair[2].strip('"')
        if key.startswith("block"):
            raise UsageError(f"{where}: {pair[1]} is of topology/block, a tree of switches is read")
        if key not in map(str.lower, _KEYS):
            raise UsageError(f"{where}: unknown key {pair[1]!r}, there are {', '.join(_KEYS)}")
        if key in values:
            raise UsageError(f"{where}: {pair[1]} stands there twice")
        values[key] = value
        at = pair.end()
    if "switchname" not in values:
        raise UsageError(f"{where}: there is no SwitchName")
    if ("nodes" in values) == ("switches" in values):
        raise UsageError(f"{where}: {values['switchname']} needs Nodes, or else Switches")
    return _switch(where, values["switchname"], values.get("nodes"), values.get("switches"))


def read_yaml(text: str, source: str) -> list[Switch]:
    """Return the switches of the default tree of a topology.yaml, or of its only one.

    Raises UsageError with the file, and the line or the key.
    """
    import yaml

    try:
        document = yaml.load(text, yaml.BaseLoader)  # to which each value is a text, as to Slurm
    except (yaml.YAMLError, RecursionError) as error:
        mark: Any = getattr(error, "problem_mark", None)
        where = f"{source}:{mark.line + 1}" if mark else source
        reason = getattr(error, "problem", None) or error
        raise UsageError(f"{where}: not YAML: {reason}") from None
    entries = _list_of_tables(document, "topology", source)
    default = [entry for entry in entries if entry.get("cluster_default") in ("true", "yes")]
    chosen = default[0] if default else entries[0]
    if not default and len(entries) > 1:
        names = ", ".join(entry["topology"] for entry in entries)
        raise UsageError(f"{source}: there are {names}, and none has cluster_default: true")
    where = f'{source}: topology "{chosen["topology"]}"'
    tree = chosen.get("tree")
    if not isinstance(tree, dict):
        raise UsageError(f"{where} has no tree of switches, which alone is read")
    tables = _list_of_tables(tree.get("switches"), "switch", where)
    return [_read_table(table, where) for table in tables]


def _list_of_tables(value: Any, key: str, where: str) -> list[dict[str, Any]]:
    """Return a list of tables that are named by `key`."""
    if not isinstance(value, list) or not value:
        raise UsageError(f"{where}: there is no list of entries with {key!r}")
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, dict) or not isinstance(entry.get(key), str) or not entry[key]:
            raise UsageError(f"{where}: entry {number} of the list has no name as {key!r}")
    return value


def _read_table(table: dict[str, Any], where: str) -> Switch:
    where = f'{where}: switch "{table["switch"]}"'
    for key, value in table.items():
        if key not in ("switch", "nodes", "children"):
            raise UsageError(f"{where}: unknown key {key!r}, there are switch, nodes, children")
        if not isinstance(value, str):
            raise UsageError(
                f"{where}: {key} is {value!r}, it has to be a list such as n[1-3,7],m2"
            )
    if "nodes" in table and "children" in table:
        raise UsageError(f"{where}: it has nodes and children, it can have either")
    # One without any is for nodes that join later.
    return _switch(where, table["switch"], table.get("nodes"), table.get("children"))


def _switch(where: str, name: str, nodes: str | None, below: str | None) -> Switch:
    try:
        return Switch(where, name, tuple(expand(nodes or "")), tuple(expand(below or "")))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


FORMS: Mapping[str, Callable[[str, str], list[Switch]]] = {
    ".conf": read_conf,
    ".yaml": read_yaml,
    ".yml": read_yaml,
}
"""What reads a file with this ending."""
