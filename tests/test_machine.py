"""What can be found out without MPI: memory, as the machine and control groups bound it."""

import pytest

from mpiring.machine import Machine, available_memory

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


def test_the_older_control_groups_are_no_error(system):
    (system / "proc/self/cgroup").write_text("4:memory:/slurm\n1:name=systemd:/\n")
    assert available_memory(system) == 10 * GIB


def test_this_machine_has_some():
    assert available_memory() > 0


def test_a_crowded_node_is_one_with_more_ranks_than_cores():
    machine = Machine(("a", "a", "a", "b"), ((0, 1, 2), (3,)), (2, 4), (1, 1))
    assert machine.crowded == [("a", 3, 2)]
