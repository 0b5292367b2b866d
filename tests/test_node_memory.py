"""Shared memory of a machine that has little of it."""

import os
import re
from shutil import which

import pytest
from command import MPIRING, mpirun, run

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or which("unshare") is None, reason="needs root and unshare, to mount a tmpfs"
)
LITTLE = 'mount -t tmpfs -o size=32m tmpfs /dev/shm && exec "$@"'


@needs_root
def test_what_a_node_has_too_little_shared_memory_for_is_refused_at_once():
    """A run that ends at its last size has taken all the time before."""
    arguments = ["bench", "-q", "-a", "shared", "-s", "8,9MiB", "--repetitions", "6:6"]
    command = mpirun(2, *MPIRING, *arguments, "--buffers", "node-shared")
    finished = run(["unshare", "-m", "sh", "-c", LITTLE, "sh", *command])
    assert (finished.status, finished.stdout) == (2, "")
    said = r"9 MiB on 2 ranks of \S+ needs 36 MiB of shared memory, \S+ MiB is available"
    assert len(re.findall(said, finished.stderr)) == 1, finished.stderr
    assert "Traceback" not in finished.stderr
