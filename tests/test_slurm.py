"""Jobs of a real Slurm: what they leave behind, and in which state they end.

scripts/slurm/one-machine starts it, for this module and in a folder of its own. The jobs are those
of scripts/slurm, with the lines on top changed as on any site.
"""

import json
import os
import re
import shutil
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from command import HERE, MPIRING, run
from places import comes, lacking

ROOT = Path(__file__).parent.parent
SLURM = ROOT / "scripts" / "slurm"
ONE_MACHINE = SLURM / "one-machine"
LINK = Path("/etc/slurm/slurm.conf")
MPI = os.environ.get("MPIRING_MPI", "mpich")
PLUGIN = "pmix" if MPI == "openmpi" else "pmi2"
# Intel MPI finds Slurm's PMI by this variable alone.
SITE = {"I_MPI_PMI_LIBRARY": "/usr/lib/x86_64-linux-gnu/libpmi2.so.0"} if MPI == "impi" else {}
ON_ITS_OWN = "unset I_MPI_PMI_LIBRARY"


PROGRAMS = ("sbatch", "slurmctld", "slurmd", "munged")
LACKING = lacking(
    PROGRAMS,
    "Slurm and munge (Debian: slurm-wlm munge)",
    ("pid", "mount"),
    path=f"{os.environ['PATH']}:/usr/sbin",
)
with_slurm = pytest.mark.skipif(LACKING != "", reason=f"a real Slurm needs {LACKING}")


@pytest.fixture(scope="module", name="slurm")
def fixture_slurm(tmp_path_factory):
    """Return the variables that lead to a Slurm, which stays up for this module."""
    place = {"MPIRING_SLURM": str(tmp_path_factory.mktemp("slurm") / "state")}
    finished = run([ONE_MACHINE, "up"], **place)
    assert finished.status == 0, finished.stderr
    yield {"SLURM_CONF": f"{place['MPIRING_SLURM']}/slurm.conf", **SITE}
    run([ONE_MACHINE, "down"], **place)


@pytest.fixture(name="submit")
def fixture_submit(slurm, tmp_path):
    """Return a function that submits one of our jobs and returns its number.

    From a folder that has nothing to do with it, as all jobs.
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def submit(script, *arguments, options=(), edit=lambda text: text, **environ):
        text = (SLURM / script).read_text()
        assert "srun --mpi=pmi2" in text
        job = tmp_path / script
        job.write_text(edit(text.replace("--mpi=pmi2", f"--mpi={PLUGIN}")))
        environ = {"MPIRING_RESULTS": str(tmp_path / "results"), **slurm, **environ}
        command = ["sbatch", "--parsable", "--output", tmp_path / "log", *options, job, *arguments]
        finished = run(command, cwd=elsewhere, **environ)
        assert finished.status == 0, finished.stderr
        assert os.listdir(elsewhere) == []
        return finished.stdout.strip()

    return submit


@pytest.fixture(name="end")
def fixture_end(slurm):
    """Return a function that waits for the end of a job, and returns its state and exit code."""

    def end(job, seconds=100):
        def ended():
            shown = run(["scontrol", "show", "--oneliner", "job", job], **slurm).stdout
            told = dict(word.split("=", 1) for word in shown.split() if "=" in word)
            if told.get("Reason") == "BeginTime":
                # Slurm lets a job that is queued again wait for two minutes, so that its nodes have
                # ended all of it before. Here that takes less.
                time.sleep(5)
                run(["scontrol", "update", f"job={job}", "StartTime=now"], **slurm)
            if told["JobState"] not in ("PENDING", "RUNNING", "COMPLETING"):
                return told
            return None

        told = comes(ended, seconds)
        assert told, run(["squeue", "--long"], **slurm).stdout
        return told["JobState"], told["ExitCode"], int(told["Restarts"])

    return end


def planted(fault, text):
    """Return the job with a fault in mpiring."""
    assert text.count(" mpiring bench -q ") == 1
    return text.replace(" mpiring bench ", f" {sys.executable} {HERE / 'faulty.py'} {fault} bench ")


QUICK = ["-a", "ring", "-s", "8,64KiB", "--repetitions", "6", "--time-limit", "0.1"]
TWO = ["--nodes=2", "--ntasks-per-node=1"]


def results(folder):
    return {path.name: json.loads(path.read_text()) for path in sorted(folder.rglob("*.json"))}


@with_slurm
def test_a_benchmark_leaves_its_result_and_nothing_else(submit, end, tmp_path):
    job = submit("bench.sbatch", *QUICK, options=TWO)
    log = tmp_path / "log"
    assert end(job) == ("COMPLETED", "0:0", 0), log.read_text()
    ((name, document),) = results(tmp_path / "results").items()
    assert name == f"mpiring-{job}.json"
    assert document["status"] == "complete"
    assert document["environment"]["nodes"] == [[0], [1]]
    assert document["environment"]["slurm"] == {"job_id": job, "nodes": "n[1-2]"}
    assert [point["check"] for point in document["points"]] == [{"ok": True}] * 4
    assert os.listdir(tmp_path / "results") == [name]


@with_slurm
@pytest.mark.pure
def test_a_rank_for_each_gpu_is_examined_first(submit, end, tmp_path):
    """This Slurm knows of no GPUs, so the lines that ask for them are left out."""

    def without_gpus(text):
        assert text.count(" --gpus-per-task=1") == text.count("#SBATCH --gpus-per-node=4\n") == 1
        return text.replace(" --gpus-per-task=1", "").replace("#SBATCH --gpus-per-node=4\n", "")

    options = [*TWO, "--cpus-per-task=1"]
    job = submit("gpu.sbatch", *QUICK, options=options, edit=without_gpus)
    log = tmp_path / "log"
    assert end(job) == ("COMPLETED", "0:0", 0), log.read_text()
    assert list(results(tmp_path / "results")) == [f"mpiring-gpu-{job}.json"]
    doctors, table = log.read_text().index("MPI library"), log.read_text().index("vs native")
    assert doctors < table


@with_slurm
def test_a_scaling_study_leaves_a_result_for_each_number_of_nodes(submit, end, tmp_path):
    job = submit("scaling.sbatch", *QUICK, options=["--ntasks-per-node=1"])
    log = tmp_path / "log"
    assert end(job) == ("COMPLETED", "0:0", 0), log.read_text()
    found = results(tmp_path / "results" / f"mpiring-scaling-{job}")
    assert list(found) == [f"000{nodes}-nodes.json" for nodes in (1, 2, 3, 4)]
    for nodes, document in enumerate(found.values(), 1):
        assert document["status"] == "complete"
        assert document["environment"]["nodes"] == [[rank] for rank in range(nodes)]
    files = sorted((tmp_path / "results").rglob("*.json"))
    finished = run([*MPIRING, "scaling", *files, "-o", tmp_path / "scaling.svg"])
    assert finished.status == 0, finished.stderr
    rows = [line.split()[:5] for line in finished.stdout.splitlines() if "KiB   ring" in line]
    assert rows == [["64", "KiB", "ring", str(n), str(n)] for n in (1, 2, 3, 4)]
    assert (tmp_path / "scaling.svg").stat().st_size > 10_000


@with_slurm
def test_a_launcher_that_is_not_the_librarys_is_a_failed_job(submit, end, tmp_path):
    def other(text):
        return text.replace(
            f"launch=(srun --mpi={PLUGIN}", f"{ON_ITS_OWN}; launch=(srun --mpi=none"
        )

    job = submit("bench.sbatch", *QUICK, options=TWO, edit=other)
    assert end(job) == ("FAILED", "2:0", 0)
    log = (tmp_path / "log").read_text()
    # Each of the two believes that it is alone, and one says so.
    assert log.count("mpiring: error: Slurm started 2 ranks, ") == 1
    assert log.count("sees 1: start it with srun --mpi=") == 1
    assert results(tmp_path / "results") == {}


LONG = ["-a", "ring", "-s", "8:32KiB", "--repetitions", "6", "--time-limit", "0.1"]
"""13 sizes, each with two checks that `take_long`."""


@with_slurm
def test_a_cancelled_job_leaves_what_is_finished_and_completes_it_later(
    submit, end, slurm, tmp_path
):
    edit = partial(planted, "take_long")
    job = submit("bench.sbatch", *LONG, options=TWO, edit=edit, TAKES_S="0.3")
    path = tmp_path / "results" / f"mpiring-{job}.json"
    assert comes(path.exists, 40), (tmp_path / "log").read_text()
    assert run(["scancel", job], **slurm).status == 0
    assert end(job)[0] == "CANCELLED"
    part = json.loads(path.read_text())
    assert part["status"] == "interrupted"
    assert "mpiring: stopped by SIGTERM" in (tmp_path / "log").read_text()
    assert run(["scontrol", "requeue", job], **slurm).status == 0
    assert end(job)[0] == "COMPLETED", (tmp_path / "log").read_text()
    whole = json.loads(path.read_text())
    assert whole["status"] == "complete"
    assert whole["points"][: len(part["points"])] == part["points"]
    assert len(whole["points"]) == 2 * 13
    assert [again["slurm"]["job_id"] for again in whole["environment"]["resumed"]] == [job]


@with_slurm
@pytest.mark.pure
@pytest.mark.timeout(600)
def test_a_job_whose_time_is_up_is_queued_again_until_its_result_is_complete(submit, end, tmp_path):
    """A minute, of which 45 s are for measuring; the signal comes after 20 s at the earliest."""
    options = [*TWO, "--time=1", "--signal=USR1@10"]
    edit = partial(planted, "take_long")
    job = submit("bench.sbatch", *LONG, options=options, edit=edit, TAKES_S="1.9")
    state, code, restarts = end(job, 250)
    log = (tmp_path / "log").read_text()
    assert (state, code) == ("COMPLETED", "0:0"), log
    assert restarts >= 1
    assert re.search(
        r"mpiring: (stopped by SIGUSR1|the time of job \d+ is up): \d+ of 13 sizes measured", log
    )
    ((name, document),) = results(tmp_path / "results").items()
    assert name == f"mpiring-{job}.json"
    assert document["status"] == "complete"
    assert len(document["points"]) == 2 * 13
    assert len(document["environment"]["resumed"]) == restarts


@with_slurm
@pytest.mark.pure
def test_a_cancelled_study_leaves_what_is_finished(submit, end, slurm, tmp_path):
    edit = partial(planted, "take_long")
    job = submit("scaling.sbatch", *LONG, options=["--ntasks-per-node=1"], edit=edit, TAKES_S="0.3")
    path = tmp_path / "results" / f"mpiring-scaling-{job}" / "0001-nodes.json"
    assert comes(path.exists, 40), (tmp_path / "log").read_text()
    assert run(["scancel", job], **slurm).status == 0
    assert end(job)[0] == "CANCELLED"
    log = (tmp_path / "log").read_text()
    assert "mpiring: stopped by SIGTERM" in log
    assert "queued" not in log
    assert {name: part["status"] for name, part in results(tmp_path / "results").items()} == {
        path.name: "interrupted"
    }


@with_slurm
@pytest.mark.pure
def test_each_task_of_a_job_array_is_queued_again_on_its_own(submit, end, tmp_path):
    """The last task has the number of the array, by which Slurm would take it for all tasks."""

    def edit(text):
        text = planted("take_long", text)
        assert text.count(' "$@" ') == 1
        return text.replace(' "$@" ', ' "$@" --time-budget $((SLURM_ARRAY_TASK_ID == 2 ? 6 : 99)) ')

    options = [*TWO, "--array=1-2"]
    four = [*QUICK, "-s", "8,64,512,4KiB"]  # 2 s each
    job = submit("bench.sbatch", *four, options=options, edit=edit, TAKES_S="1")
    log = tmp_path / "log"
    ended = {task: end(f"{job}_{task}") for task in (1, 2)}
    assert [(state, code) for state, code, _ in ended.values()] == [("COMPLETED", "0:0")] * 2, (
        log.read_text()
    )
    assert ended[1][2] == 0
    assert ended[2][2] >= 1
    found = results(tmp_path / "results")
    assert len(found) == 2
    assert f"mpiring-{job}.json" in found  # of the last task
    assert [len(document["points"]) for document in found.values()] == [8, 8]


def tasks(job):
    """The processes of a job's ranks, each by its rank."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            environ = (process / "environ").read_bytes().split(b"\0")
            variables = dict(line.decode().split("=", 1) for line in environ if b"=" in line)
            words = (process / "cmdline").read_bytes().split(b"\0")
            if variables.get("SLURM_JOB_ID") == job and b"bench" in words:
                with suppress(KeyError):  # the job's script, and srun
                    if variables["SLURM_STEP_ID"] and b"python" in words[0]:
                        found[int(variables["SLURM_PROCID"])] = int(process.name)
    return found


@with_slurm
def test_a_rank_that_dies_is_a_failed_job(submit, end, tmp_path):
    """As one that takes too much memory: the others would wait for it to the end of the job."""

    def edit(text):
        assert text.count(" --wait=60)") == 1
        return planted("take_long", text).replace(" --wait=60)", " --wait=2)")

    job = submit("bench.sbatch", *LONG, options=TWO, edit=edit, TAKES_S="0.3")
    path = tmp_path / "results" / f"mpiring-{job}.json"
    assert comes(path.exists, 40), (tmp_path / "log").read_text()
    os.kill(tasks(job)[1], signal.SIGKILL)
    assert end(job, 40)[0] == "FAILED", (tmp_path / "log").read_text()
    assert json.loads(path.read_text())["status"] == "interrupted"


@with_slurm
def test_wrong_data_are_a_failed_job(submit, end, tmp_path):
    edit = partial(planted, "skip_the_last_chunk")
    job = submit("bench.sbatch", *QUICK, options=TWO, edit=edit)
    assert end(job) == ("FAILED", "1:0", 0), (tmp_path / "log").read_text()
    (document,) = results(tmp_path / "results").values()
    assert {p["algorithm"]: p["check"]["ok"] for p in document["points"]} == {
        "ring": False,
        "native": True,
    }


@with_slurm
def test_one_failure_ends_a_scaling_study(submit, end, tmp_path):
    job = submit("scaling.sbatch", "-a", "ring", "-s", "8", "--torus", "9x9")
    assert end(job) == ("FAILED", "2:0", 0)
    assert (tmp_path / "log").read_text().count("mpiring: error: --torus changes nothing") == 1
    assert results(tmp_path / "results") == {}


@with_slurm
@pytest.mark.pure
def test_results_have_to_have_a_place(submit, end, tmp_path):
    job = submit("bench.sbatch", *QUICK, options=TWO, MPIRING_RESULTS="/proc/results")
    assert end(job) == ("FAILED", "1:0", 0)
    assert "mkdir: cannot create directory" in (tmp_path / "log").read_text()


def srun(slurm, *arguments, **environ):
    return run(["srun", f"--mpi={PLUGIN}", *arguments], **slurm, **environ)


@pytest.fixture(name="of_two", scope="module")
def fixture_of_two(slurm, tmp_path_factory):
    path = tmp_path_factory.mktemp("of_two") / "r.json"
    assert srun(slurm, "-N2", "-n2", *MPIRING, "bench", "-q", *QUICK, "-o", path).status == 0
    return path


TOPOLOGY = ROOT / "hostfiles" / "two-nodes-4ranks.toml"
MISTAKES = {
    "a resume file of other ranks": (["--resume"], "its ranks is 2, that of this run is 3"),
    "a topology file of other ranks": (["--topology", TOPOLOGY], "rank 3, the job has 3 ranks"),
    "a folder that cannot be written": (["-o", "/proc/r.json"], "/proc/r.json: cannot be written"),
    "a folder that is not there": (["-o", "/nowhere/r.json"], "/nowhere/r.json: cannot be written"),
}


@with_slurm
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_said_once_before_anything_runs(slurm, of_two, mistake):
    arguments, said = MISTAKES[mistake]
    arguments = [*arguments, *[of_two] * (arguments == ["--resume"])]
    finished = srun(slurm, "-N3", "-n3", *MPIRING, "bench", "-s", "8", *arguments)
    assert finished.status == 2
    assert finished.stderr.count("mpiring: error: ") == 1
    assert said in finished.stderr
    assert finished.stdout == ""


@with_slurm
def test_more_ranks_than_the_allocation(slurm):
    options = {"openmpi": "--oversubscribe", "impi": "-bootstrap fork -hosts localhost"}.get(
        MPI, ""
    )
    started = f"{ON_ITS_OWN}; mpirun {options} -n 3 {' '.join(MPIRING)} bench -s 8"
    finished = run(["salloc", "--quiet", "-N1", "-n1", "sh", "-c", started], **slurm)
    assert finished.status != 0
    assert finished.stderr.count("3 ranks were started, the Slurm job has 1 CPU") == 1


@with_slurm
def test_mpich_has_addresses_that_pmi_can_carry(slurm):
    chosen = srun(slurm, "-N2", "-n2", "printenv", "MPIR_CVAR_CH4_NETMOD", "FI_PROVIDER")
    assert chosen.stdout.split() == ["ofi", "tcp"] * 2
    users = srun(slurm, "printenv", "MPIR_CVAR_CH4_NETMOD", MPIR_CVAR_CH4_NETMOD="ucx")
    assert users.stdout == "ucx\n"


@with_slurm
def test_slurms_switches_are_known_by_slurms_names(slurm, tmp_path):
    """All nodes have the machine's own name, which is none of these."""
    conf = tmp_path / "topology.conf"
    conf.write_text(
        "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=top Switches=a,b\n"
    )
    command = [*MPIRING, "topology", "show", "--topology", conf]
    finished = srun(slurm, "-N3", "-n3", "-w", "n[1-3]", *command)
    assert finished.status == 0, finished.stderr
    assert finished.stdout.startswith("3 ranks: 3 x node (from MPI), 2 x switch"), finished.stdout


@with_slurm
def test_the_doctor_in_a_job(slurm):
    finished = srun(slurm, "-N2", "-n2", *MPIRING, "doctor", "--json")
    document = json.loads(finished.stdout)
    assert finished.status == 0, finished.stdout
    said = {finding["check"]: finding["said"] for finding in document["findings"]}
    assert said["ranks"] == "2 ranks on 2 nodes, 1 on each"
    assert said["allocation"].startswith("2 ranks in 2 nodes with ")
    first, second = (rank["environ"]["SLURMD_NODENAME"] for rank in document["ranks"])
    assert first != second


# What starts and ends Slurm itself.


@pytest.fixture(name="place")
def fixture_place(tmp_path):
    """Return where a test of its own may have a Slurm."""
    place = {"MPIRING_SLURM": str(tmp_path / "state")}
    yield place
    run([ONE_MACHINE, "down"], **place)


def daemons(place):
    """Return the processes of Slurm and munge that were started there."""
    mark = f"SLURM_CONF={place['MPIRING_SLURM']}/slurm.conf".encode()
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return found


def assert_nothing_is_left(place):
    assert comes(lambda: not daemons(place)), daemons(place)
    assert not Path(place["MPIRING_SLURM"]).exists()
    assert not LINK.is_symlink() or place["MPIRING_SLURM"] not in os.readlink(LINK)


@with_slurm
@pytest.mark.pure
def test_up_and_status_leave_one_alone_with_a_node_that_is_down(place):
    assert run([ONE_MACHINE, "up"], **place).status == 0
    conf = {"SLURM_CONF": f"{place['MPIRING_SLURM']}/slurm.conf"}
    before = daemons(place)
    down = ["scontrol", "update", "nodename=n3", "state=down", "reason=x"]
    assert run(down, **conf).status == 0
    for command in ("status", "up"):
        finished = run([ONE_MACHINE, command], **place)
        assert finished.status == 0, finished.stderr
        assert re.search(r"^n3 .* down", finished.stdout, re.MULTILINE)
    assert daemons(place) == before


@with_slurm
@pytest.mark.pure
def test_more_than_the_machine_has_is_refused_at_once(slurm):
    job = [SLURM / "bench.sbatch", "-s", "8"]
    assert run(["sbatch", "--nodes=9", *job], **slurm).status != 0
    assert run(["sbatch", "--ntasks-per-node=999", *job], **slurm).status != 0


@with_slurm
@pytest.mark.pure
def test_up_and_down_can_be_repeated(place):
    first = run([ONE_MACHINE, "up"], **place)
    assert first.status == 0, first.stderr
    shown = [line.split() for line in first.stdout.splitlines()[:5]]
    assert [line[0] for line in shown] == ["NODELIST", "n1", "n2", "n3", "n4"]
    assert {line[2] for line in shown[1:]} == {"idle"}
    before = daemons(place)
    assert len(before) >= 6  # munged, slurmctld, four slurmd
    assert run([ONE_MACHINE, "up"], **place).stdout == first.stdout
    assert daemons(place) == before
    conf = f"{place['MPIRING_SLURM']}/slurm.conf"
    batch = ["sbatch", "--output=/dev/null", "--wrap", "sleep 100"]
    assert run(batch, SLURM_CONF=conf).status == 0
    assert comes(lambda: before < daemons(place))
    assert run([ONE_MACHINE, "up"], **place).status == 0  # leaves one alone that is busy
    assert before < daemons(place)
    # Bare commands find it, by the link or by what `up` said.
    assert LINK.resolve() == Path(conf).resolve() or f"export SLURM_CONF={conf}" in first.stdout
    for _ in range(2):
        assert run([ONE_MACHINE, "down"], **place).status == 0
        assert_nothing_is_left(place)


@with_slurm
@pytest.mark.pure
@pytest.mark.parametrize("after", [0.05, 0.5])
def test_a_killed_up_leaves_nothing_that_down_does_not_find(place, after):
    finished = run(["timeout", "--signal=KILL", str(after), ONE_MACHINE, "up"], **place)
    assert finished.status != 0
    run([ONE_MACHINE, "down"], **place)
    assert_nothing_is_left(place)


@with_slurm
@pytest.mark.pure
def test_after_a_crash_up_begins_anew(place):
    assert run([ONE_MACHINE, "up"], **place).status == 0
    before = daemons(place)
    first = int((Path(place["MPIRING_SLURM"]) / "first").read_text().split()[0])
    os.kill(first, signal.SIGKILL)
    assert comes(lambda: not daemons(place))
    gone = run([ONE_MACHINE, "status"], **place)
    message = "one-machine: no Slurm is up: scripts/slurm/one-machine up starts it\n"
    assert (gone.status, gone.stderr) == (2, message)
    assert run([ONE_MACHINE, "up"], **place).status == 0
    assert not before & daemons(place)


@with_slurm
@pytest.mark.pure
@pytest.mark.parametrize("command", ["up", "status", "down"])
def test_without_root_or_packages(command, place, tmp_path):
    finished = run(["unshare", "--user", ONE_MACHINE, command], **place)
    assert (finished.status, finished.stderr) == (
        2,
        "one-machine: needs root, to start the daemons\n",
    )
    for name in ("bash", "dirname", "id"):
        (tmp_path / name).symlink_to(shutil.which(name))
    copy = tmp_path / "scripts" / "slurm" / "one-machine"
    copy.parent.mkdir(parents=True)
    for name in ("environment.sh", "namespace.sh"):
        shutil.copy(SLURM.parent / name, tmp_path / "scripts" / name)
    copy.write_text(ONE_MACHINE.read_text().replace(":/usr/sbin", ""))
    copy.chmod(0o755)
    finished = run([copy, command], PATH=str(tmp_path), **place)
    message = "one-machine: needs munged (Debian: apt install slurm-wlm munge)\n"
    assert (finished.status, finished.stderr) == (2, message)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "needs a command: up, status or down (--help says more)"),
        (["sideways"], "there is no 'sideways': it can be up, status or down (--help says more)"),
        (["up", "4"], "up takes no arguments"),
    ],
    ids=str,
)
def test_a_mistake_is_said_in_one_line(arguments, message):
    finished = run([ONE_MACHINE, *arguments])
    assert (finished.status, finished.stderr) == (2, f"one-machine: {message}\n")


@pytest.mark.pure
@pytest.mark.parametrize("command", ["up", "down"])
def test_what_somebody_else_has_in_a_folder_stays(command, tmp_path):
    (tmp_path / "first").write_text("1 0\n")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "data").write_text("years of work")
    file = tmp_path / "thesis" / "data"
    for place in (tmp_path, file):
        finished = run([ONE_MACHINE, command], MPIRING_SLURM=str(place))
        said = (
            "is not a folder of one-machine's own: set MPIRING_SLURM to one that is not there yet"
        )
        assert (finished.status, finished.stderr) == (2, f"one-machine: {place} {said}\n")
    assert file.read_text() == "years of work"
    assert sorted(os.listdir(tmp_path)) == ["first", "thesis"]


@with_slurm
@pytest.mark.pure
def test_a_path_with_a_space_is_refused(tmp_path):
    finished = run([ONE_MACHINE, "up"], MPIRING_SLURM=str(tmp_path / "a b"))
    message = "one-machine: MPIRING_SLURM has a space in it, which Slurm does not take\n"
    assert (finished.status, finished.stderr) == (2, message)


@with_slurm
@pytest.mark.pure
def test_a_relative_path_is_one_from_here(tmp_path):
    (tmp_path / "state").mkdir()  # an empty folder may be taken
    whole = {"MPIRING_SLURM": str(tmp_path / "state")}
    try:
        finished = run([ONE_MACHINE, "up"], cwd=tmp_path, MPIRING_SLURM="state")
        assert finished.status == 0, finished.stderr
        assert len(daemons(whole)) >= 6
    finally:
        assert run([ONE_MACHINE, "down"], cwd=tmp_path, MPIRING_SLURM="state").status == 0
    assert_nothing_is_left(whole)


@pytest.mark.pure
def test_help_is_there_for_everybody():
    finished = run([ONE_MACHINE, "--help"])
    assert finished.status == 0
    assert "needs root" in finished.stdout
    assert "#" not in finished.stdout
