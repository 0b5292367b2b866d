"""What the doctor finds, in jobs that are made up; and as it is called."""

import json
import os
import re
from dataclasses import replace

import pytest
from command import MPIRING, assert_refused, mpirun, run

from mpiring.checkup import SHARED_BYTES_PER_RANK, Launch, Seen, Slots, examine
from mpiring.errors import UsageError
from mpiring.launcher import allocated_cpus, check_allocation
from mpiring.probe import bound_to, find_gpus

SEEN = Seen(
    host="n1",
    affinity=(0, 1, 2, 3),
    shared_bytes=1 << 30,
    mpi_library="MPICH 5.0.2, /opt/libmpi.so",
    thread_level="multiple",
    versions={"mpiring": "1", "python": "3.12"},
    wall_s=1000.0,
    tick_s=1e-7,
)
SLURM = {"SLURM_JOB_CPUS_PER_NODE": "4(x2)", "SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS": "4"}


def two_by_two(**changes):
    """Return a job of two ranks on each of two hosts, in which nothing is wrong."""
    seen = [replace(SEEN, host=f"n{1 + rank // 2}") for rank in range(4)]
    return Launch(**{"seen": seen, "nodes": ((0, 1), (2, 3)), **changes})


def changed(*ranks, **changes):
    job = two_by_two()
    seen = [replace(s, **changes) if r in ranks else s for r, s in enumerate(job.seen)]
    return replace(job, seen=seen)


def told(**environ):
    return changed(0, 1, 2, 3, environ=environ)


def listed(**slots):
    """Return the job with a hostfile."""
    return two_by_two(slots=Slots(slots))


def given_gpus(usable, visible):
    """Return the job in which each rank may open such GPUs, as `01`, and was given such of them."""
    seen = [
        replace(one, gpus=2, gpu_aware=True, usable_gpus=tuple(map(int, numbers)), visible=text)
        for one, numbers, text in zip(
            two_by_two().seen, usable.split(), visible.split(), strict=True
        )
    ]
    return two_by_two(seen=seen)


def alarms(job):
    return {f.check: (f.status, f.said) for f in examine(job) if f.status != "ok"}


pure = pytest.mark.pure


@pure
@pytest.mark.parametrize(
    "job",
    [
        two_by_two(),
        told(**SLURM),
        told(**SLURM, PMI_RANK="0", PMI_SIZE="4"),
        told(**SLURM | {"SLURM_NTASKS": "2"}),  # mpirun, in a job of fewer tasks
        told(**SLURM | {"SLURM_JOB_CPUS_PER_NODE": "1(x2)", "SLURM_OVERCOMMIT": "1"}),
        told(**SLURM | {"SLURM_JOB_CPUS_PER_NODE": "1(x2)", "SLURM_STEP_NUM_TASKS": "4"}),
        told(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="4"),
        listed(n1=2, n2=2),
        listed(**{"n1": 2, "n2.site": 2}),
        listed(localhost=4),
        listed(localhost=2, n2=2),
        listed(**{"10.0.0.1": 2, "10.0.0.2": 2}),
        listed(**{"fe80::1": 2, "n2": 2}),
        listed(n1=0, n2=0),  # Open MPI's, of four cores each
        listed(n1=0, n2=2),
        listed(n1=2, n2=2, n3=0),
        told(PMI_RANK="0", PMI_SIZE="4", OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="8"),
        changed(0, affinity=(0,), bound_to=0),
        changed(0, 2, affinity=(0,), bound_to=0),  # of two hosts
        changed(0, 1, 2, 3, gpus=2, gpu_aware=True),
        given_gpus("01 01 01 01", "0 1 0 1"),
        given_gpus("0 1 0 1", "0 0 0 0"),  # by control groups: the first that a rank may open
        given_gpus("01 01 01 01", "0,1 0,1 GPU-a,GPU-b GPU-a,GPU-b"),
        given_gpus("01 01 01 01", "-1 -1 NoDevFiles NoDevFiles"),
        changed(0, wall_s=1001.0),
    ],
)
def test_a_job_that_is_well(job):
    assert alarms(job) == {}
    assert all(finding.said and not finding.todo for finding in examine(job))


SICK = [
    (
        told(PMI_RANK="0", PMI_SIZE="8"),
        "launcher",
        "error",
        "mpirun started 8 ranks, MPICH 5.0.2 sees",
    ),
    (
        told(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2"),
        "launcher",
        "error",
        "Open MPI's mpirun started 2, MPI sees 4",
    ),
    (
        told(SLURM_PROCID="0", SLURM_NTASKS="8", SLURM_STEP_NUM_TASKS="8", SLURM_MPI_TYPE="pmix"),
        "launcher",
        "error",
        "Slurm started 8 ranks, MPICH 5.0.2 sees 4",
    ),
    (told(**SLURM | {"SLURM_NTASKS": ""}), "allocation", "warning", "SLURM_NTASKS is ''"),
    (told(**SLURM | {"SLURM_NTASKS": "abc"}), "allocation", "warning", "SLURM_NTASKS is 'abc'"),
    (told(**SLURM | {"SLURM_JOB_NUM_NODES": "x"}), "allocation", "warning", "NUM_NODES is 'x'"),
    (told(**SLURM | {"SLURM_JOB_CPUS_PER_NODE": "x"}), "allocation", "warning", "PER_NODE is 'x'"),
    (changed(3, mpi_library="MPICH 4, /usr"), "MPI library", "error", "MPICH 4, /usr on ranks 3"),
    (changed(2, versions={"mpiring": "2"}), "versions", "error", "mpiring 2 on ranks 2"),
    (told(**SLURM | {"SLURM_JOB_CPUS_PER_NODE": "1,2"}), "allocation", "error", "with 3 CPUs"),
    (told(**SLURM | {"SLURM_JOB_NUM_NODES": "4"}), "allocation", "warning", "2 without a rank"),
    (told(**SLURM | {"SLURM_NTASKS": "8"}), "allocation", "warning", "4 ranks in 2 nodes"),
    (listed(n1=2, n2=1), "hostfile", "error", "3 slots for 4 ranks"),
    (listed(n1=1, n2=3), "hostfile", "error", "4 slots for 4 ranks; n1 has 2 ranks and 1 slot"),
    (listed(n1=2, n3=2), "hostfile", "error", "n2 is not among them"),
    (listed(**{"10.0.0.1": 2, "10.0.0.2": 1}), "hostfile", "error", "3 slots for 4 ranks"),
    (listed(**{"10.0.0.1": 3, "n2": 1}), "hostfile", "error", "n2 has 2 ranks and 1 slot"),
    (listed(**{"n1.a": 2, "n1.b": 2, "n2": 2}), "hostfile", "warning", "could be n1.a or n1.b"),
    (
        replace(changed(2, 3, affinity=(5,)), slots=Slots({"n1": 0, "n2": 0})),
        "hostfile",
        "error",
        "2 hosts with a slot for each core for 4 ranks; n2 has 2 ranks and 1 slot",
    ),
    (
        two_by_two(slots=Slots({}, "h:1: MPICH refuses slots=2", "mpiring hostfile convert")),
        "hostfile",
        "error",
        "h:1: MPICH refuses slots=2",
    ),
    (two_by_two(nodes=((0, 1, 2), (3,))), "ranks", "warning", "from 1 to 3 on each"),
    (changed(2, 3, affinity=(5,)), "cores", "warning", "2 ranks share 1 core of n2"),
    (changed(2, 3, bound_to=5), "binding", "error", "ranks 2-3 are bound to core 5 of n2"),
    (changed(0, 1, shared_bytes=SHARED_BYTES_PER_RANK), "shared memory", "warning", "16 MiB free"),
    (changed(0, shared_bytes=0), "shared memory", "warning", "0 B free for 2 ranks of n1"),
    (changed(2, shared_bytes=None), "shared memory", "warning", "no /dev/shm on n2"),
    (changed(0, 1, 2, 3, thread_level="single"), "thread level", "warning", "single"),
    (
        changed(3, thread_level="single"),
        "thread level",
        "error",
        "multiple on ranks 0-2; single on ranks 3",
    ),
    (changed(0, gpus=1, gpu_aware=False), "GPUs", "warning", "does not take their buffers"),
    (changed(0, gpus=1), "GPUs", "warning", "does not say"),
    (given_gpus("0 0 0 1", "0 0 0 0"), "GPUs", "warning", "ranks 0-1 of n1 share GPU 0"),
    (given_gpus("01 01 01 01", "0 1 1 1"), "GPUs", "warning", "ranks 2-3 of n2 share GPU 1"),
    (given_gpus("01 01 01 01", "GPU-a GPU-a GPU-a GPU-b"), "GPUs", "warning", "share GPU GPU-a"),
    (changed(0, wall_s=900.0), "clock", "warning", "within 100.000 s"),
    (changed(0, tick_s=1e-3), "clock", "warning", "reads to 1000000 ns"),
]


@pure
def test_only_what_is_looked_for_is_not_seen():
    (said,) = (finding.said for finding in examine(two_by_two()) if finding.check == "GPUs")
    assert said == "no NVIDIA GPU seen"


@pure
@pytest.mark.parametrize(("job", "check", "status", "said"), SICK, ids=lambda v: str(v)[:20])
def test_what_is_wrong_is_found_with_what_to_do(job, check, status, said):
    (finding,) = (finding for finding in examine(job) if finding.check == check)
    assert finding.status == status
    assert said in finding.said
    assert finding.todo


@pure
def test_ranks_that_do_not_see_each_other():
    alone = replace(SEEN, environ={"SLURM_NTASKS": "4", "SLURM_PROCID": "0"})
    found = alarms(Launch([alone], ((0,),)))
    assert found["launcher"] == ("error", "Slurm started 4 ranks, MPICH 5.0.2 sees 1")


@pure
def test_srun_is_told_from_mpirun():
    environ = {"PMI_RANK": "0", "PMI_SIZE": "4", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}
    job = told(**environ, SLURM_MPI_TYPE="pmi2")
    (said,) = (finding.said for finding in examine(job) if finding.check == "launcher")
    assert said == "srun --mpi=pmi2 started 4, MPI sees 4"


@pure
@pytest.mark.parametrize(
    ("text", "cpus"), [("2", 2), ("16(x2)", 32), ("16(x2),8,4(x3)", 52), ("", None), ("x", None)]
)
def test_cpus_of_a_job(text, cpus):
    assert allocated_cpus({"SLURM_JOB_CPUS_PER_NODE": text}) == cpus


@pure
@pytest.mark.parametrize(
    ("size", "environ", "fits"),
    [
        (8, SLURM, True),
        (9, SLURM, False),
        (9, SLURM | {"SLURM_STEP_NUM_TASKS": "2"}, False),  # mpirun's agents
        (9, SLURM | {"SLURM_STEP_NUM_TASKS": "9"}, True),
        (9, SLURM | {"SLURM_OVERCOMMIT": "1"}, True),
        (9, {}, True),
    ],
)
def test_more_ranks_than_the_job_has_room_for(size, environ, fits):
    if fits:
        check_allocation(size, environ)
    else:
        with pytest.raises(UsageError, match="9 ranks were started, the Slurm job has 8 CPUs"):
            check_allocation(size, environ)


def threads(system, *cores):
    """Let Linux say which threads each core has."""
    for siblings in cores:
        for cpu in siblings.split(","):
            folder = system / f"sys/devices/system/cpu/cpu{cpu}/topology"
            folder.mkdir(parents=True)
            (folder / "thread_siblings_list").write_text(f"{siblings}\n")


@pytest.mark.parametrize(
    ("affinity", "core"),
    [({0}, 0), ({5}, 1), ({1, 5}, 1), ({0, 1}, None), ({0, 1, 4, 5}, None)],
)
def test_a_core_is_all_of_its_threads(tmp_path, affinity, core):
    threads(tmp_path, "0,4", "1,5")
    assert bound_to(affinity, 4, tmp_path) == core


def test_who_may_use_all_that_there_is_was_not_bound(tmp_path):
    threads(tmp_path, "0,1")
    assert bound_to({0, 1}, 2, tmp_path) is None
    assert bound_to({0}, 2, tmp_path) == 0
    assert bound_to({0}, 1, tmp_path) is None


def test_where_linux_does_not_tell_each_thread_is_a_core(tmp_path):
    assert bound_to({3}, 4, tmp_path) == 3
    assert bound_to({2, 3}, 4, tmp_path) is None


def test_a_gpu_that_cannot_be_opened_is_seen_and_not_usable(tmp_path):
    """A link that leads nowhere refuses root as well, as control groups do."""
    (tmp_path / "dev").mkdir()
    for name in ("nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / "dev" / name).touch()
    (tmp_path / "dev/nvidia0").symlink_to(tmp_path / "nowhere")
    assert list(find_gpus(tmp_path).items()) == [(0, False), (2, True), (10, True)]


def doctor(ranks, *arguments, **environ):
    command = [*MPIRING, "doctor", *arguments]
    return run(mpirun(ranks, *command) if ranks else command, **environ)


@pytest.mark.parametrize("ranks", [0, 2])
def test_the_command_says_each_line_once(ranks):
    finished = doctor(ranks)
    assert finished.status == 0, finished.stdout + finished.stderr
    lines = [line for line in finished.stdout.splitlines() if not line.strip().startswith("->")]
    assert [re.split("  +", line)[:2] for line in lines if line[:2] == "ok"]
    assert sum("MPI library" in line for line in lines) == 1
    assert len(lines) == 10


def test_all_of_it_as_json():
    finished = doctor(2, "--json")
    document = json.loads(finished.stdout)
    assert document["schema"] == "mpiring.doctor/1"
    assert document["ok"] is True
    assert document["nodes"] == [[0, 1]]
    assert {rank["host"] for rank in document["ranks"]} == {os.uname().nodename}
    assert all(
        finding.keys() == {"check", "status", "said", "todo"} for finding in document["findings"]
    )


def test_without_the_right_launcher_it_is_an_error_and_still_told():
    finished = doctor(0, SLURM_NTASKS="4", SLURM_PROCID="0")
    assert finished.status == 1
    assert re.search(
        r"error +launcher +Slurm started 4 ranks, .* sees 1\n +-> start it", finished.stdout
    )


def test_of_ranks_that_do_not_see_each_other_one_speaks():
    """What they write goes to one file: one document."""
    alone = [doctor(0, "--json", SLURM_NTASKS="2", SLURM_PROCID=str(rank)) for rank in (0, 1)]
    assert [finished.status for finished in alone] == [1, 1]
    assert json.loads(alone[0].stdout)["ok"] is False
    assert alone[1].stdout == alone[1].stderr == ""


def test_without_mpi(tmp_path):
    (tmp_path / "mpi4py.py").write_text("raise ImportError('no libmpi.so')")
    finished = doctor(0, PYTHONPATH=str(tmp_path))
    assert finished.status == 1
    assert re.match(
        "error +MPI library +MPI cannot be loaded: no libmpi.so\n +-> load", finished.stdout
    )


OF_MPICH = [
    ("localhost:1\nother:1\nlocalhost:2\n", 0, "2 hosts with 4 slots for 2 ranks"),
    ("localhost\n", 1, "1 host with 1 slot for 2 ranks"),
    ("localhost:1\n", 1, "1 host with 1 slot for 2 ranks"),
    ("10.0.0.1:2\n", 0, "cannot be compared with 10.0.0.1"),
    ("localhost slots=2\n", 1, "MPICH refuses slots=2"),
]
OF_OPEN_MPI = [
    ("localhost slots=1\n", 1, "1 host with 1 slot for 2 ranks"),
    ("localhost\n", 0, "1 host with a slot for each core for 2 ranks"),
    ("10.0.0.1 slots=2\n", 0, "cannot be compared with 10.0.0.1"),
    ("localhost:2\n", 1, "Open MPI takes all of localhost:2 for a name"),
]
IS_OPEN_MPI = os.environ.get("MPIRING_MPI") == "openmpi"


@pytest.mark.parametrize(("text", "status", "said"), OF_OPEN_MPI if IS_OPEN_MPI else OF_MPICH)
def test_a_hostfile_is_read_as_the_librarys_launcher_does(tmp_path, text, status, said):
    (tmp_path / "hosts").write_text(text)
    finished = doctor(2, "--hostfile", tmp_path / "hosts")
    assert said in finished.stdout, finished.stderr
    assert finished.status == status, finished.stdout


def test_a_hostfile_that_is_not_there(tmp_path):
    finished = doctor(2, "--hostfile", tmp_path / "none")
    assert_refused(finished, "No such file")


def test_rank_0_alone_knows_of_the_job_and_all_leave():
    """As where the ranks of other hosts were reached by ssh."""
    command = [*MPIRING, "bench", "-s", "8"]
    knows = ["env", "SLURM_JOB_CPUS_PER_NODE=1", *command]
    finished = run(["mpirun", "-n", "1", *knows, ":", "-n", "1", *command])
    assert_refused(finished, "2 ranks were started, the Slurm job has 1 CPU: ask for")


def test_bench_refuses_more_ranks_than_the_job_has_room_for():
    environ = {"SLURM_JOB_CPUS_PER_NODE": "1", "SLURM_JOB_NUM_NODES": "1"}
    finished = run(mpirun(2, *MPIRING, "bench", "-s", "8"), **environ)
    assert_refused(finished, "2 ranks were started, the Slurm job has 1 CPU: ask for")
