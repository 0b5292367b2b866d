"""The Slurm job around this process: when it ends, and how it is queued again."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mpiring.errors import UsageError

MOST_RESTARTS = 10
ANSWERS_S = 10
"""How long Slurm's controller has to answer."""


@dataclass(frozen=True)
class Job:
    """A job, or one task of a job array. Times are seconds since 1970; None where nobody knows."""

    name: str
    """For Slurm's commands. To them the number of an array's last task means the whole array."""
    restarts: int
    began: float | None
    ends: float | None

    @classmethod
    def around(cls, environ: Mapping[str, str] = os.environ) -> "Job | None":
        """Return the job around this process, if there is one. Slurm is asked what it did not tell.

        One process asks for all: a controller that thousands ask at once answers nobody.
        """
        if "SLURM_JOB_ID" not in environ:
            return None
        name, array = environ["SLURM_JOB_ID"], environ.get("SLURM_ARRAY_JOB_ID")
        if array:
            name = f"{array}_{environ['SLURM_ARRAY_TASK_ID']}"
        restarts = environ.get("SLURM_RESTART_COUNT", "")
        told = [environ.get(f"SLURM_JOB_{at}_TIME", "") for at in ("START", "END")]
        began, ends = [float(at) if at.isdecimal() else None for at in told]
        if ends is None:
            began, ends = _asked_times(name)
        return cls(name, int(restarts) if restarts.isdecimal() else 0, began, ends)

    def has_more_again(self, since: float) -> bool:
        """Whether what had the time of this job from `since` on has at least twice as much next."""
        if self.began is None or self.ends is None:
            return False
        return since > (self.began + self.ends) / 2

    def requeue(self) -> None:
        """Queue it again; Slurm then ends what still runs of it. Raises UsageError if it is not."""
        if self.restarts >= MOST_RESTARTS:
            raise UsageError(f"that was done {self.restarts} times")
        _asked("scontrol", "requeue", self.name)


def _asked_times(name: str) -> tuple[float | None, float | None]:
    """Return when a job began and when it has to end."""
    try:
        answer = _asked("squeue", "--noheader", "--jobs", name, "--format", "%S %e")
        began, ends = (datetime.fromisoformat(word).timestamp() for word in answer.split())
    except (UsageError, ValueError):  # no answer, or `N/A` and the like where there is no such time
        return None, None
    return began, ends


def _asked(*command: str) -> str:
    """Return what a command of Slurm's answers. Raises UsageError where it does not.

    Python starts it by vfork. A fork would copy memory that MPI has promised to the network.
    """
    try:
        return subprocess.run(
            command,
            env={**os.environ, "SLURM_TIME_FORMAT": "standard"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWERS_S,
            check=True,
        ).stdout
    except OSError as error:
        raise UsageError(f"{command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{command[0]} does not answer") from None
    except subprocess.CalledProcessError as error:
        raise UsageError(f"{command[0]} failed: {error.stderr.strip()}") from None
