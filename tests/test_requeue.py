"""Jobs that are queued again, where Slurm's commands are made up; test_slurm.py has a real one."""

import json
import os
import signal
import time
from datetime import datetime

import pytest
from command import assert_refused, faulty, mpiring

from mpiring.errors import UsageError
from mpiring.slurm import MOST_RESTARTS, Job

pure = pytest.mark.pure
JOB = {"SLURM_JOB_ID": "17"}
AGAIN = {"SLURM_RESTART_COUNT": "1"}
TASK = {"SLURM_JOB_ID": "19", "SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "3"}


@pytest.fixture(name="said")
def fixture_said(tmp_path, monkeypatch):
    """Return the file of what Slurm's commands were told."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    (tmp_path / "said").write_text("")
    return tmp_path / "said"


@pytest.fixture(name="answers")
def fixture_answers(said):
    """Return a function that says what `squeue` prints or `scontrol` does, in a shell's words."""

    def answers(name, does):
        path = said.parent / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{said}\n{does}\n')
        path.chmod(0o755)

    answers("squeue", "exit 1")
    answers("scontrol", "")
    return answers


@pure
def test_what_slurm_told_is_not_asked(said, answers):
    times = {"SLURM_JOB_START_TIME": "1600000000", "SLURM_JOB_END_TIME": "1700000000"}
    assert Job.around({}) is None
    assert Job.around(JOB | times) == Job("17", 0, 1.6e9, 1.7e9)
    assert Job.around(TASK | times | {"SLURM_RESTART_COUNT": "2"}) == Job("17_3", 2, 1.6e9, 1.7e9)
    assert said.read_text() == ""


@pure
def test_slurm_is_asked_for_this_task_alone(said, answers):
    answers("squeue", "echo 2023-11-14T20:00:00 2023-11-14T22:13:20")
    began, ends = (datetime(2023, 11, 14, *at).timestamp() for at in ((20, 0, 0), (22, 13, 20)))
    assert Job.around(TASK) == Job("17_3", 0, began, ends)
    assert said.read_text() == "squeue --noheader --jobs 17_3 --format %S %e\n"


@pure
@pytest.mark.parametrize(
    "does",
    [
        "",
        "echo N/A N/A",
        "echo 2023-11-14T20:00:00 NONE",
        "echo 2023-11-14T20:00:00",
        "echo; echo",
        "echo no such job >&2; exit 1",
        None,
    ],
)
def test_without_an_answer_no_end_is_known(said, answers, does, monkeypatch):
    answers("squeue", does)
    if does is None:
        monkeypatch.setenv("PATH", "/nowhere")
    assert Job.around(JOB) == Job("17", 0, None, None)


@pure
def test_a_slurm_that_does_not_answer_is_not_waited_for(answers, monkeypatch):
    monkeypatch.setattr("mpiring.slurm.ANSWERS_S", 0.1)
    answers("squeue", "exec sleep 60")
    assert Job.around(JOB) == Job("17", 0, None, None)


@pure
def test_a_job_is_queued_again_by_its_name(said, answers):
    Job.around(TASK | {"SLURM_JOB_END_TIME": "1"}).requeue()
    assert said.read_text() == "scontrol requeue 17_3\n"


@pure
def test_why_a_job_is_not_queued_again(said, answers, monkeypatch):
    answers("scontrol", "echo disabled >&2; exit 1")
    with pytest.raises(UsageError, match=r"^scontrol failed: disabled$"):
        Job("17", MOST_RESTARTS - 1, None, None).requeue()
    said.write_text("")
    with pytest.raises(UsageError, match="done 10 times"):
        Job("17", MOST_RESTARTS, None, None).requeue()
    assert said.read_text() == ""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="scontrol: No such file"):
        Job("17", 0, None, None).requeue()


@pure
def test_what_came_late_has_more_time_in_the_next_job():
    job = Job("17", 0, 1000.0, 2000.0)
    assert [job.has_more_again(since) for since in (1000.0, 1499.0, 1501.0)] == [False, False, True]
    assert not Job("17", 0, None, 2000.0).has_more_again(1999.0)


def times(began_s, ends_s):
    """Return the variables of a job, which began so many seconds ago and ends in so many."""
    now = int(time.time())
    return JOB | {
        "SLURM_JOB_START_TIME": str(now - began_s),
        "SLURM_JOB_END_TIME": str(now + ends_s),
    }


RUN = ["bench", "-q", "-a", "ring", "-s", "8,64,512", "--repetitions", "6"]
REQUEUED = "scontrol requeue 17\n"


def bench(path, *arguments, **job):
    return mpiring(2, *RUN, *arguments, "--requeue", path, **{**times(0, 1000), **job})


def sizes(path):
    document = json.loads(path.read_text())
    return document["status"], [point["nbytes"] for point in document["points"]][::2]


def test_a_part_that_measured_something_is_followed_by_the_rest(said, answers, tmp_path):
    path = tmp_path / "r.json"
    usr1 = {"SIGNAL": str(int(signal.SIGUSR1)), **times(0, 1000)}
    finished = faulty(2, "signal_rank_1", *RUN, "--requeue", path, **usr1)
    assert finished.status == 4, finished.stderr
    assert "stopped by SIGUSR1: 1 of 3 sizes" in finished.stderr
    assert finished.stderr.count("mpiring: job 17 is queued again\n") == 1
    assert said.read_text() == REQUEUED
    assert sizes(path) == ("interrupted", [8])
    for _ in range(2):  # the second time, as in a study whose later files lack something
        finished = bench(path, **AGAIN)
        assert finished.status == 0, finished.stderr
        assert sizes(path) == ("complete", [8, 64, 512])
    assert said.read_text() == REQUEUED


def test_the_file_of_another_job_is_left_alone(said, answers, tmp_path):
    """Numbers of jobs begin anew one day, and clusters that share a file system have the same."""
    path = tmp_path / "r.json"
    assert bench(path).status == 0
    before = path.read_bytes()
    finished = bench(path, "-s", "16")
    assert_refused(finished, "r.json: is there already, and job 17 has not been queued again")
    assert path.read_bytes() == before


def test_slurm_ends_what_is_queued_again_when_mpi_has_given_its_memory_back(
    said, answers, tmp_path
):
    answers("scontrol", "kill -KILL $PPID")  # as Slurm does with all ranks
    before = set(os.listdir("/dev/shm"))
    bench(tmp_path / "r.json", **times(1000, 1))
    assert said.read_text() == REQUEUED
    assert set(os.listdir("/dev/shm")) <= before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_cancelled_job_is_not_queued_again(said, answers, tmp_path, number):
    path = tmp_path / "r.json"
    signalled = {"SIGNAL": str(int(number)), **times(0, 1000)}
    finished = faulty(2, "signal_rank_1", *RUN, "--requeue", path, **signalled)
    assert finished.status == 4, finished.stderr
    assert sizes(path) == ("interrupted", [8])
    assert said.read_text() == ""
    assert "queued" not in finished.stderr


def test_a_part_that_measured_nothing_is_the_last(said, answers, tmp_path):
    finished = bench(tmp_path / "r.json", **times(0, 14))
    assert finished.status == 4
    assert finished.stderr.count("job 17 is not queued again: in as much time it would") == 1
    assert said.read_text() == ""


def test_unless_most_of_its_time_went_to_other_runs(said, answers, tmp_path):
    finished = bench(tmp_path / "r.json", **times(1000, 1))
    assert finished.status == 4
    assert said.read_text() == REQUEUED


def test_wrong_data_are_not_measured_again(said, answers, tmp_path):
    path = tmp_path / "r.json"
    fault = "skip_the_last_chunk"
    assert faulty(2, fault, *RUN, "--requeue", path, **times(0, 1000)).status == 1
    assert (
        bench(path, **AGAIN).status == 1
    )  # as in a study that is queued again: it has failed still
    document = json.loads(path.read_text())
    document |= {"status": "interrupted", "points": document["points"][:2]}
    path.write_text(json.dumps(document))
    finished = bench(path, **AGAIN, **times(0, 1))
    assert finished.status == 1, finished.stderr
    assert said.read_text() == ""


def test_what_slurm_refuses_is_said_and_what_is_measured_stays(said, answers, tmp_path):
    path = tmp_path / "r.json"
    answers("scontrol", "echo 'job 17 may not be requeued' >&2; exit 1")
    finished = bench(path, **times(1000, 1))
    assert finished.status == 4
    assert "not queued again: scontrol failed: job 17 may not be requeued" in finished.stderr
    assert sizes(path) == ("interrupted", [])


@pytest.mark.parametrize("options", [["--requeue"], ["-o"], ["--time-budget", "1h", "-o"]], ids=str)
def test_it_is_said_where_no_end_is_known(said, answers, tmp_path, options):
    finished = mpiring(2, *RUN, *options, tmp_path / "r.json", **JOB)
    assert finished.status == 0, finished.stderr
    planned = "--time-budget" in options
    assert finished.stderr.count("Slurm does not tell when this job ends") == (not planned)
    assert said.read_text().count("squeue") == 1  # by one rank


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "mine.json"], "--requeue names the file"),
        (["--resume", "mine.json"], "--requeue names the file"),
        (["-v"], "-v and -q exclude each other"),
    ],
    ids=str,
)
def test_options_that_contradict_those_of_the_script(tmp_path, arguments, message):
    finished = bench(tmp_path / "r.json", *arguments)
    assert_refused(finished, message)
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_gone_on_with_is_refused_at_once(said, answers, tmp_path):
    finished = bench(tmp_path / "r.csv")
    assert_refused(finished, "r.csv: the ending has to be .json")
    assert sorted(os.listdir(tmp_path)) == ["bin", "said"]


def test_outside_of_a_job_nothing_can_be_queued_again(tmp_path):
    finished = mpiring(2, *RUN, "--requeue", tmp_path / "r.json")
    assert_refused(finished, "--requeue is for Slurm jobs, and this is none")
    assert os.listdir(tmp_path) == []
