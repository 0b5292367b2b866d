"""What each rank sees of its job, gathered for `checkup`."""

import ctypes
import os
import platform
import re
import time
from collections.abc import Collection
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from mpi4py import MPI

import mpiring
from mpiring.checkup import VARIABLES, Seen
from mpiring.implementation import mpi_library, thread_level
from mpiring.memory import free_shared_memory
from mpiring.noise import tick


def gather(comm: MPI.Intracomm) -> list[Seen]:
    """Return what each rank sees, in their order. Collective."""
    tick_s = tick()
    comm.Barrier()
    return comm.allgather(_look(time.time(), tick_s))


def _look(wall_s: float, tick_s: float) -> Seen:
    path, affinity, gpus = library_path(), os.sched_getaffinity(0), find_gpus()
    return Seen(
        host=platform.node(),
        affinity=tuple(sorted(affinity)),
        bound_to=bound_to(affinity, os.cpu_count() or 1),
        shared_bytes=free_shared_memory(),
        mpi_library=f"{mpi_library()}, {path}" if path else mpi_library(),
        thread_level=thread_level(),
        versions={
            "mpiring": mpiring.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "mpi4py")},
        },
        wall_s=wall_s,
        tick_s=tick_s,
        environ={name: os.environ[name] for name in VARIABLES if name in os.environ},
        gpus=len(gpus),
        usable_gpus=tuple(gpu for gpu, usable in gpus.items() if usable),
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        gpu_aware=gpu_aware(),
    )


def bound_to(affinity: Collection[int], online: int, system: Path = Path("/")) -> int | None:
    """Return the core whose threads alone a rank may use, by its first thread.

    None where there are several cores, or where all that is `online` in the host is one: then
    nobody was bound. `system` is where /sys is.
    """
    cores = {_first_thread(system / f"sys/devices/system/cpu/cpu{cpu}", cpu) for cpu in affinity}
    return cores.pop() if len(cores) == 1 and len(affinity) < online else None


def _first_thread(folder: Path, cpu: int) -> int:
    """Return the first thread of the core that `cpu` is a thread of."""
    with suppress(OSError, ValueError):
        siblings = (folder / "topology" / "thread_siblings_list").read_text()  # `0,64` or `0-1`
        return int(re.split("[,-]", siblings)[0])
    return cpu


def library_path() -> str:
    """Return where the MPI library of this process lies, as Linux tells it."""
    with suppress(OSError):
        maps = Path("/proc/self/maps").read_text()
        found = re.search(r"(/\S*/libmpi\w*\.so\S*)", maps)
        return found[1] if found else ""
    return ""


def find_gpus(system: Path = Path("/")) -> dict[int, bool]:
    """Return NVIDIA's GPUs, in their order, and whether this process may open each.

    Whoever may not, as in a control group of Slurm's, sees the others all the same. None is opened,
    which could take seconds. `system` is where /dev is.
    """
    names = (re.fullmatch(r"nvidia(\d+)", path.name) for path in (system / "dev").iterdir())
    numbers = sorted(int(name[1]) for name in names if name)
    wanted = os.R_OK | os.W_OK
    return {gpu: os.access(system / f"dev/nvidia{gpu}", wanted) for gpu in numbers}


def gpu_aware() -> bool | None:
    """Return whether the library says that it takes GPU buffers; None where it cannot say."""
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(MPI.__file__).MPIX_Query_cuda_support())
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(library_path()).MPIX_Query_cuda_support())
    return None
