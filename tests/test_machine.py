"""What can be found out without MPI: memory, as the machine and control groups bound it."""

import os
import platform
from contextlib import nullcontext

import pytest
from mpi4py import MPI

from mpiring.environment import cpu_model, tuning_variables
from mpiring.errors import UsageError
from mpiring.implementation import mpi_build
from mpiring.machine import Machine
from mpiring.memory import available_memory, free_shared_memory

GIB = 1 << 30


@pytest.fixture(name="system")
def fixture_system(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 16 kB\nMemAvailable:   10485760 kB\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/slurm/job_7/step_0\n")
    return tmp_path


def bound(system, group, limit, current=0, cache=0):
    folder = system / "sys/fs/cgroup" / group
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{current}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {cache}\n")


def test_a_machine_without_bounds(system):
    assert available_memory(system) == 10 * GIB
    bound(system, "slurm/job_7", "max")
    assert available_memory(system) == 10 * GIB


def test_the_bound_of_an_outer_group_holds(system):
    bound(system, "slurm/job_7", 4 * GIB, current=3 * GIB, cache=2 * GIB)
    bound(system, "slurm/job_7/step_0", "max")
    assert available_memory(system) == 3 * GIB


OLDER = "12:pids:/\n4:memory:/slurm/job_7/step_0\n1:name=systemd:/elsewhere\n"


def bound_of_old(system, group, limit, current=0, cache=0):
    folder = system / "sys/fs/cgroup/memory" / group
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{current}\n")
    (folder / "memory.stat").write_text(f"inactive_file 1\ntotal_inactive_file {cache}\n")


@pytest.mark.parametrize("groups", [OLDER, f"{OLDER}0::/\n", OLDER.replace("memory", "cpu,memory")])
def test_the_older_control_groups_bound_as_well(system, groups):
    (system / "proc/self/cgroup").write_text(groups)
    assert available_memory(system) == 10 * GIB
    bound_of_old(system, "", (1 << 63) - 4096, current=GIB)  # as where there is none
    bound_of_old(system, "elsewhere", GIB)
    assert available_memory(system) == 10 * GIB
    bound_of_old(system, "slurm/job_7", 4 * GIB, current=3 * GIB, cache=2 * GIB)
    assert available_memory(system) == 3 * GIB


def test_the_tighter_bound_of_both_kinds_of_groups_holds(system):
    (system / "proc/self/cgroup").write_text("4:memory:/old\n0::/new\n")
    bound(system, "new", 2 * GIB)
    bound_of_old(system, "old", 3 * GIB)
    assert available_memory(system) == 2 * GIB
    bound_of_old(system, "old", GIB)
    assert available_memory(system) == GIB


def test_this_machine_has_some():
    assert available_memory() > 0


MACHINE = Machine(("a", "a", "a", "b"), ((0, 1, 2), (3,)), (2, 4), (30, 30), (6, None))


def test_a_crowded_node_is_one_with_more_ranks_than_cores():
    assert MACHINE.crowded == [("a", 3, 2)]


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        ((10, 0), None),
        ((11, 0), "3 ranks of a needs 33 B of memory, 30 B is available"),
        ((10, 2), None),  # nobody knows what there is of it on b
        ((10, 3), "3 ranks of a needs 9 B of shared memory, 6 B is available"),
    ],
)
def test_what_does_not_fit_is_said_of_the_first_node_that_lacks_it(needed, said):
    with pytest.raises(UsageError, match=said) if said else nullcontext():
        MACHINE.check_memory(8, *needed)


def test_where_no_memory_is_shared_nothing_is_known_of_it(tmp_path):
    assert free_shared_memory(tmp_path) > 0
    assert free_shared_memory(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC\n\nmodel name\t: AMD EPYC\n", "AMD EPYC"),
        ("processor\t: 0\nCPU implementer\t: 0x41\n", os.uname().machine),
    ],
)
def test_the_processor_is_named_without_another_process(system, monkeypatch, cpuinfo, model):
    """A process that forks under MPI may not survive it."""
    monkeypatch.setattr(platform, "processor", lambda: pytest.fail("runs uname"))
    (system / "proc/cpuinfo").write_text(cpuinfo)
    assert cpu_model(system) == model


def test_the_build_of_the_library_is_one_short_line(monkeypatch):
    assert mpi_build()
    monkeypatch.setattr(MPI, "Get_library_version", lambda: "A 1\n  with:\t--b\n\0" + "x" * 2000)
    assert mpi_build().startswith("A 1 with: --b x")
    assert len(mpi_build()) == 1000


def test_variables_are_those_that_a_user_tunes_with():
    tuned = {"UCX_TLS": "tcp", "OMPI_MCA_pml": "ob1", "I_MPI_FABRICS": "shm", "FI_PROVIDER": "tcp"}
    launched = {
        "I_MPI_PIN_MAPPING": "2:0 0,1 1",
        "OMPI_MCA_orte_hnp_uri": "1487273984.0;tcp://10.0.0.1:1",
        "OMPI_MCA_ess_base_jobid": "1487273985",
    }
    assert tuning_variables({**tuned, **launched, "HOME": "/root"}) == tuned
