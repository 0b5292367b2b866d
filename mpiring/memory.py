"""The memory that can still be had here, as the machine and control groups bound it."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SHM = Path("/dev/shm")
"""Where Linux keeps memory that processes share."""


class _Files(NamedTuple):
    """Where control groups of one version tell of memory."""

    line: str
    """Of /proc/self/cgroup, with the path of the group."""
    mount: str
    bound: str
    used: str
    cache: str
    """The line of memory.stat for what is used, and can be had at once."""


CONTROL_GROUPS = (
    _Files(
        r"^0::/(.*)$", "sys/fs/cgroup", "memory.max", "memory.current", r"^inactive_file (\d+)$"
    ),
    _Files(
        r"^\d+:(?:\S+,)?memory(?:,\S+)?:/(.*)$",
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        r"^total_inactive_file (\d+)$",
    ),
)
"""Their second version, and the first, which may be there beside it."""


def available_memory(system: Path = Path("/")) -> int:
    """Return the bytes that can still be allocated here: in this machine, and in this job's share.

    `system` is where /proc and /sys are.
    """
    meminfo = (system / "proc/meminfo").read_text()
    available = [int(re.findall(r"^MemAvailable: +(\d+) kB", meminfo, re.MULTILINE)[0]) * 1024]
    # A batch system bounds its jobs by control groups; a bound holds for all groups inside.
    for files in CONTROL_GROUPS:
        groups = re.findall(files.line, (system / "proc/self/cgroup").read_text(), re.MULTILINE)
        for group in map(Path, groups):
            for inner in (group, *group.parents):
                available += _left(system / files.mount / inner, files)
    return min(available)


def _left(folder: Path, files: _Files) -> list[int]:
    """Return the bytes that a group has left, if it has a bound."""
    with suppress(OSError, ValueError):
        bound = int((folder / files.bound).read_text())  # "max" where there is none
        statistics = (folder / "memory.stat").read_text()
        cache = int(re.findall(files.cache, statistics, re.MULTILINE)[0])
        return [max(0, bound - int((folder / files.used).read_text()) + cache)]
    return []


def free_shared_memory(folder: Path = SHM) -> int | None:
    """Return the bytes that are free where ranks share memory; None where it lies elsewhere."""
    try:
        free = os.statvfs(folder)
    except OSError:
        return None
    return free.f_bavail * free.f_frsize
