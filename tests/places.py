"""What tests need of the machine that they run on, and waiting for what happens there."""

import os
import shutil
import time

from command import run


def lacking(programs, packages, namespaces, path=None):
    """Return what is missing of root, programs and namespaces; nothing where all of it is there."""
    if os.geteuid() != 0:
        return "root"
    if not all(shutil.which(program, path=path) for program in programs):
        return packages
    if run(["unshare", *(f"--{kind}" for kind in namespaces), "--fork", "true"]).status != 0:
        return "a machine or container that lets root make namespaces"
    return ""


def comes(condition, seconds=20):
    """Return what a condition gives once it is true, or at the end of the time."""
    end = time.monotonic() + seconds
    while not (there := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return there
