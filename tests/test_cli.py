"""The command line as users run it: ranks, options, exit status, and what is said where."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from command import MPIRING, clean_environment, faulty, mpiring, mpirun, run, start

from mpiring import ALGORITHMS

FOUR = ["naive", "reduce_scatter", "tree", "ring", "native"]


def bench(ranks, *arguments, **options):
    return mpiring(ranks, "bench", "--repetitions", "6", "--warmup", "1", *arguments, **options)


def rows(finished):
    """The lines of the table, as algorithm, size, and check."""
    lines = finished.stdout.splitlines()[3:]
    return [
        (f[3], f"{f[0]} {f[1]}", f[-1])
        for f in map(str.split, lines)
        if f[1:2] and f[1] in ("B", "KiB", "MiB")
    ]


# ranks, arguments, status, and a pattern for standard error or output
MISTAKES = [
    (2, ["--sizes", "10X"], "'10X' is not a size"),
    (2, ["--sizes", ""], "is not a size"),
    (2, ["--sizes=-1"], "is not a size"),
    (2, ["--sizes", "nan"], "is not a size"),
    (2, ["--sizes", "1e30"], "beyond 2"),
    (2, ["--sizes", "64:8"], "the first size is larger"),
    (2, ["-a", "rng"], "did you mean ring"),
    (2, ["-a", ""], "unknown algorithm"),
    (4, ["--foo"], "No such option '--foo'"),
    (2, ["--op", "average"], "'average' is not one of"),
    (2, ["--dtype", "float99"], "unknown dtype 'float99'"),
    (2, ["--dtype", "object"], "dtype 'object' is neither bfloat16 nor one of numpy's numbers"),
    (2, ["--dtype", "i4,f4"], "dtype 'i4,f4' is neither"),
    (2, ["-v", "-q"], "-v and -q exclude each other"),
    (2, ["--topology", "setup.cfg"], "setup.cfg: not TOML"),
    (2, ["--op", "band"], "band is not defined for float32"),
    (2, ["--repetitions", "0"], "'0' is neither a number such as 50 nor a range"),
    (2, ["--repetitions", "9:3"], "the first number is larger than the last"),
    (2, ["--repetitions", "1:2:3"], "is neither a number"),
    (2, ["--time-limit", "0"], "0.0 is not in the range x>0"),
    (2, ["--batch", "3", "--in-place"], "--batch and --in-place exclude each other"),
    (2, ["--sync", "clock"], "'clock' is not one of"),
    (2, ["--thread-level", "double"], "'double' is not one of"),
    (2, ["--resume", "/no/such.json"], "/no/such.json: No such file or directory"),
    (2, ["--resume", "setup.cfg"], "setup.cfg: not JSON, or cut off"),
    (2, ["--warmup", "-1"], "-1 is not in the range"),
    (2, ["--seed", "x"], "'x' is not a valid integer"),
    (2, ["--format", "xml"], "'xml' is not one of"),
    (2, ["--sizes", "1TiB"], r"needs \S+ TiB of memory, \S+ GiB is available"),
    (2, ["--topology", "/no/such.toml"], "/no/such.toml: No such file or directory"),
    (2, ["--topology", "/"], "/: Is a directory"),
    (2, ["-o", "/no/such/r.json"], "/no/such/r.json: cannot be written: No such file"),
    (2, ["-o", "/proc/r.json"], "/proc/r.json: cannot be written"),
    (2, ["-o", "r.txt"], "r.txt: the ending has to be .json or .csv"),
    (2, ["surplus"], "unexpected extra argument"),
]


@pytest.mark.parametrize(("ranks", "arguments", "message"), MISTAKES, ids=lambda v: str(v)[:30])
def test_a_mistake_is_said_once_and_all_leave_with_2(ranks, arguments, message):
    finished = bench(ranks, *arguments)
    assert finished.status == 2
    assert len(re.findall(message, finished.stderr)) == 1, finished.stderr
    assert "Traceback" not in finished.stderr
    assert finished.stdout == ""


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_all_algorithms_are_checked_and_timed(ranks):
    finished = bench(ranks, "-a", "all", "--sizes", "4,12,1001KiB")
    assert finished.status == 0, finished.stderr
    sizes = ["4 B", "12 B", "1001 KiB"]
    assert rows(finished) == [(name, size, "ok") for size in sizes for name in ALGORITHMS]


def test_the_table_says_what_was_measured():
    finished = bench(2, "--sizes", "1KiB", "--in-place", "--dtype", "int16", "--op", "max")
    header, columns, _, *lines = finished.stdout.splitlines()
    assert re.match(
        r"mpiring \S+, (MPICH|Open MPI|Intel MPI) [\d.]+,"
        r" 2 ranks on 1 node with \d+ cores?, int16 max in place, noise floor [\d.]+ us$",
        header,
    )
    for column in ("size", "count", "time (us)", "95 % interval", "algbw (GB/s)", "of limit"):
        assert column in columns
    assert [line.split()[3] for line in lines[:5]] == FOUR
    native = lines[4].split()
    assert native[:4] == ["1", "KiB", "512", "native"]
    assert native[-2:] == ["1", "ok"]
    assert "tree: one node, so the phase between nodes is empty" in finished.stdout


def test_chosen_algorithms_and_native_in_the_registrys_order():
    assert [row[0] for row in rows(bench(2, "-a", "ring,naive", "-s", "8"))] == [
        "naive",
        "ring",
        "native",
    ]
    assert [row[0] for row in rows(bench(2, "-a", "native", "-s", "8"))] == ["native"]


def test_nothing_is_checked_where_that_was_asked():
    finished = bench(2, "-s", "8", "--no-check")
    assert finished.status == 0
    assert finished.stdout.count("not checked") == 5


def test_no_elements():
    finished = bench(2, "-s", "0", "-a", "all")
    assert finished.status == 0
    assert {row[1:] for row in rows(finished)} == {("0 B", "ok")}


def test_rounding_to_whole_elements_is_said():
    finished = bench(2, "-s", "10,16,24", "--dtype", "float64", "-a", "ring")
    assert [row[1] for row in rows(finished)] == ["16 B", "16 B", "24 B", "24 B"]
    assert "mpiring: 10 B rounded up to whole elements: 16 B" in finished.stderr


def test_what_the_library_cannot_reduce_is_not_available():
    finished = bench(2, "-s", "8", "--dtype", "bfloat16")
    assert finished.status == 0
    assert rows(finished)[-1] == ("native", "8 B", "n/a")
    assert "native: n/a: the MPI library has no datatype for bfloat16" in finished.stdout
    assert [row[2] for row in rows(finished)[:-1]] == ["ok"] * 4


def test_more_ranks_than_cores_is_said_once_and_ends():
    finished = bench(8, "-s", "8,64KiB")
    assert finished.status == 0
    cores = len(os.sched_getaffinity(0))
    if cores < 8:
        assert finished.stderr.count(f"8 ranks share {cores} core") == 1
    assert len(rows(finished)) == 10


DOCUMENT = {
    "schema": str,
    "status": str,
    "environment": dict,
    "config": dict,
    "points": list,
}
POINT = {
    "algorithm": str,
    "nbytes": int,
    "count": int,
    "dtype": str,
    "op": str,
    "in_place": bool,
    "time_s": dict,
    "samples_s": list,
    "algbw_GBps": float,
    "busbw_GBps": float,
    "speedup_vs_native": float,
    "check": dict,
    "ran": str,
    "ranks": int,
    "batch": int,
    "rank_mean_s": dict,
    "speedup_interval95": list,
    "verdict": str,
    "limit_s": float,
    "percent_of_limit": float,
    "noise_floor_s": float,
    "below_noise_floor": bool,
    "noisy": bool,
    "exactness": dict,
    "note": str,
    "rounds": (int, type(None)),
    "bytes_sent_per_rank": (int, type(None)),
}


def reject(token):
    raise ValueError(f"{token} is no JSON")


def check_document(text, ranks, status="complete"):
    document = json.loads(text, parse_constant=reject)
    assert {key: type(value) for key, value in document.items()} == DOCUMENT
    assert document["schema"] == "mpiring.results/1"
    assert document["status"] == status
    assert document["environment"]["ranks"] == ranks
    for point in document["points"]:
        assert point.keys() == POINT.keys()
        for key, kind in POINT.items():
            assert isinstance(point[key], kind), (key, point)
        samples, times = point["samples_s"], point["time_s"]
        assert len(samples) == 6
        assert times["interval95"] == [min(samples), max(samples)]  # as it is with six
        assert point["ran"] == point["algorithm"]
        means = point["rank_mean_s"]
        assert means["fastest"] <= means["mean"] <= means["slowest"] <= times["mean"] * 1.0001
        assert 0 <= means["slowest_rank"] < ranks
        assert times["min"] == min(samples) <= times["median"] <= max(samples) == times["max"]
        assert times["min"] <= times["mean"] <= times["max"]
        assert point["algbw_GBps"] == pytest.approx(point["nbytes"] / times["median"] / 1e9)
        factor = 2 * (ranks - 1) / ranks
        assert point["busbw_GBps"] == pytest.approx(point["algbw_GBps"] * factor)
        assert point["check"] == {"ok": True}
    return document


@pytest.mark.parametrize("extra", [[], ["-v"], ["-q"]], ids=str)
def test_json_on_standard_output_parses(extra):
    finished = bench(3, "-s", "8,1000", "--format", "json", *extra)
    document = check_document(finished.stdout, 3)
    assert [(p["algorithm"], p["nbytes"]) for p in document["points"]] == [
        (name, nbytes) for nbytes in (8, 1000) for name in FOUR
    ]
    by_name = {point["algorithm"]: point for point in document["points"][5:]}
    assert (by_name["ring"]["rounds"], by_name["ring"]["bytes_sent_per_rank"]) == (4, 1336)
    assert (by_name["naive"]["rounds"], by_name["naive"]["bytes_sent_per_rank"]) == (1, 2000)
    assert by_name["native"]["rounds"] is None
    assert by_name["native"]["speedup_vs_native"] == 1
    assert by_name["native"]["verdict"] == "tie"
    assert all(point["exactness"]["ranks_equal"] for point in by_name.values())
    assert all(0 <= point["exactness"]["max_ulp"] <= 3 for point in by_name.values())
    assert document["config"]["sizes"] == [8, 1000]
    assert ("checking ring" in finished.stderr) == (extra == ["-v"])


def test_csv_holds_the_same_as_json(tmp_path):
    bench(2, "-s", "8,1000", "-o", tmp_path / "r.json")
    finished = bench(2, "-s", "8,1000", "--format", "csv", "-o", tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == finished.stdout
    table = list(csv.DictReader(io.StringIO(finished.stdout)))
    document = check_document((tmp_path / "r.json").read_text(), 2)
    for row, point in zip(table, document["points"], strict=True):
        assert row["algorithm"] == point["algorithm"]
        assert int(row["nbytes"]) == point["nbytes"]
        assert row["check"] == "ok"
        assert float(row["min_s"]) <= float(row["median_s"]) <= float(row["max_s"])
        assert row["repetitions"] == "6"
    assert sorted(os.listdir(tmp_path)) == ["r.csv", "r.json"]


def test_the_topology_is_on_record():
    finished = bench(4, "-s", "8", "--format", "json", "--topology", "hostfiles/by-hostname.toml")
    topology = check_document(finished.stdout, 4)["environment"]["topology"]
    assert topology["source"] == "hostfiles/by-hostname.toml"
    assert [level["groups"] for level in topology["levels"]] == [[[0, 1, 2, 3]]]
    detected = json.loads(bench(2, "-s", "8", "--format", "json").stdout)["environment"]["topology"]
    assert detected["source"] == "MPI"
    assert detected["levels"][0]["groups"] == [[0, 1]]


@pytest.mark.parametrize("file", ["two-nodes-4ranks", "two-nodes-dealt-4ranks"])
def test_all_algorithms_on_two_nodes(file):
    finished = bench(4, "-s", "4,1001KiB", "--topology", f"hostfiles/{file}.toml")
    assert finished.status == 0
    assert [row[2] for row in rows(finished)] == ["ok"] * 10


def test_nested_levels():
    finished = bench(8, "-s", "12", "--topology", "hostfiles/two-switches-8ranks.toml")
    assert [row[2] for row in rows(finished)] == ["ok"] * 5


def test_osus_columns():
    finished = bench(2, "-s", "8,1KiB", "-a", "ring", "--format", "osu")
    lines = finished.stdout.splitlines()
    assert [line for line in lines if line.startswith("# MPI")] == [
        "# MPI Allreduce Latency Test: ring",
        "# MPI Allreduce Latency Test: native",
    ]
    assert re.fullmatch(
        r"# Size +Avg Latency\(us\) +Min Latency\(us\) +Max Latency\(us\) +Iterations", lines[1]
    )
    for line, size in zip(lines[2:4], ("8", "1024"), strict=True):
        fields = line.split()
        assert (fields[0], int(fields[4]) % 6) == (size, 0)
        assert float(fields[2]) <= float(fields[1]) <= float(fields[3])


def test_nccls_columns():
    for in_place in ([], ["--in-place"]):
        finished = bench(2, "-s", "8,1KiB", "-a", "ring", "--format", "nccl", *in_place)
        rows_ = [line.split() for line in finished.stdout.splitlines() if line[0] != "#"]
        assert [row[:5] for row in rows_[:2]] == [
            ["8", "2", "float", "sum", "-1"],
            ["1024", "256", "float", "sum", "-1"],
        ]
        for row in rows_:
            measured, nothing = (row[9:], row[5:9]) if in_place else (row[5:9], row[9:])
            assert nothing == ["N/A"] * 4
            assert measured[3] == "0"
            assert float(measured[0]) > 0


@pytest.mark.parametrize("level", ["single", "serialized", "multiple"])
def test_the_thread_level_is_asked_for_and_on_record(level):
    finished = bench(2, "-s", "8", "-a", "ring", "--thread-level", level, "--format", "json")
    document = check_document(finished.stdout, 2)
    levels = ["single", "funneled", "serialized", "multiple"]
    assert levels.index(document["environment"]["thread_level"]) >= levels.index(level)
    assert (document["environment"]["thread_level"] == level) or level != "multiple"


@pytest.mark.parametrize("options", [["--sync", "window"], ["--cold"]], ids=str)
def test_other_ways_of_sampling(options):
    finished = bench(2, "-s", "8,64KiB", "-a", "ring", "--format", "json", *options)
    document = check_document(finished.stdout, 2)
    assert document["config"]["sampling"]["sync"] == (
        "window" if "window" in options else "barrier"
    )
    assert document["config"]["sampling"]["cold"] == ("--cold" in options)


def test_what_ran_is_on_record_and_nothing_else_of_the_environment():
    finished = bench(
        2, "-s", "8", "--format", "json", MPIR_CVAR_CH4_XPMEM_ENABLE="1", SECRET_TOKEN="hidden"
    )
    environment = check_document(finished.stdout, 2)["environment"]
    assert environment["variables"]["MPIR_CVAR_CH4_XPMEM_ENABLE"] == "1"
    assert "hidden" not in finished.stdout
    assert environment["command"][-1] == "json"
    assert len(environment["affinity"]) == len(environment["hosts"]) == 2
    assert environment["memory_bytes"] > 1 << 28
    assert environment["noise"]["tick_s"] > 0


def test_an_interrupted_run_is_resumed(tmp_path):
    whole, part = tmp_path / "whole.json", tmp_path / "part.json"
    assert bench(2, "-s", "8,64,512", "-a", "ring", "-o", whole).status == 0
    document = json.loads(whole.read_text())
    document["status"] = "interrupted"
    document["points"] = document["points"][:3]  # the second size has lost native
    part.write_text(json.dumps(document))
    kept = document["points"][0]["samples_s"]
    finished = bench(2, "-s", "8,64,512", "-a", "ring", "--resume", part)
    assert finished.status == 0, finished.stderr
    again = check_document(part.read_text(), 2)
    assert [(p["algorithm"], p["nbytes"]) for p in again["points"]] == [
        (name, nbytes) for nbytes in (8, 64, 512) for name in ("ring", "native")
    ]
    assert again["points"][0]["samples_s"] == kept
    assert len(rows(finished)) == 6

    finished = bench(3, "-s", "8", "-a", "ring", "--resume", part)
    assert finished.status == 2
    assert "part.json: its ranks is 2, that of this run is 3" in finished.stderr


def test_a_topology_file_is_used():
    two_nodes = "hostfiles/two-nodes-4ranks.toml"
    finished = bench(4, "-s", "1600", "-a", "tree", "--format", "json", "--topology", two_nodes)
    tree = check_document(finished.stdout, 4)["points"][0]
    assert tree["rounds"] == 3
    assert tree["note"] == ""
    assert tree["bytes_sent_per_rank"] == 800 + 800 + 800


def test_a_topology_file_for_other_ranks_is_refused():
    finished = bench(3, "-s", "8", "--topology", "hostfiles/two-nodes-4ranks.toml")
    assert finished.status == 2
    assert "two-nodes-4ranks.toml: level" in finished.stderr
    assert "names rank 3, the job has 3 ranks" in finished.stderr


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("skip_the_last_chunk", "are wrong"),
        ("add_twice", "are wrong"),
        ("return_the_input", "are wrong"),
        ("change_the_send_buffer", "the send buffer was changed"),
        ("change_the_send_buffer_and_skip_the_last_chunk", "are wrong"),
    ],
)
def test_planted_faults_are_wrong_data(fault, said):
    finished = faulty(3, fault, "bench", "-s", "8,1001", "--repetitions", "3")
    assert finished.status == 1
    wrong = [row for row in rows(finished) if row[2] == "WRONG"]
    assert {row[0] for row in wrong} == {"ring"}
    assert re.search(f"ring.*: WRONG: rank \\d: .*{said}", finished.stdout)
    assert "Traceback" not in finished.stderr


def test_wrong_data_stand_in_the_json_document_without_times():
    finished = faulty(2, "return_the_input", "bench", "-s", "64", "--format", "json")
    assert finished.status == 1
    points = json.loads(finished.stdout, parse_constant=reject)["points"]
    ring = next(point for point in points if point["algorithm"] == "ring")
    assert ring["check"] == {"ok": False}
    assert ring["samples_s"] == []
    assert set(ring["time_s"].values()) == {None}
    assert ring["verdict"] == "unknown"
    assert ring["speedup_vs_native"] is None


@pytest.mark.parametrize(("fault", "rank"), [("raise_on_rank_1", 1), ("raise_everywhere", 0)])
def test_an_exception_ends_the_job_with_one_traceback(fault, rank):
    begin = time.monotonic()
    finished = faulty(3, fault, "bench", "-s", "8")
    assert time.monotonic() - begin < 10
    assert finished.status != 0
    assert finished.stderr.count("Traceback") == 1
    assert f"mpiring: error on rank {rank} of 3:" in finished.stderr
    assert "ValueError: planted" in finished.stderr


def test_an_interrupt_on_one_rank_ends_the_job():
    begin = time.monotonic()
    finished = faulty(2, "interrupt_rank_1", "bench", "-s", "8")
    assert time.monotonic() - begin < 10
    assert finished.status != 0
    assert "Traceback" not in finished.stderr


def test_a_full_disk_is_one_error():
    program = (
        "import mpiring.report.files as files, errno, os\n"
        "def write(path, result): raise OSError(errno.ENOSPC, 'No space left on device', path)\n"
        "files.write = write\n"
        "from mpiring.cli import main; main()\n"
    )
    command = [sys.executable, "-c", program, "bench", "-s", "8", "-o", "full.json"]
    finished = run(mpirun(2, *command))
    assert finished.status == 2
    assert finished.stderr.count("mpiring: error: full.json: No space left on device") == 1
    assert "Traceback" not in finished.stderr


def test_a_rank_out_of_memory_ends_the_job():
    limited = 'ulimit -v 3000000; exec "$@"'
    command = [*MPIRING, "bench", "-s", "1GiB", "-a", "ring"]
    finished = run(
        ["mpirun", "-n", "1", *command, ":", "-n", "1", "sh", "-c", limited, "sh", *command]
    )
    assert finished.status != 0
    assert finished.stderr.count("Traceback") == 1
    assert "error on rank 1 of 2" in finished.stderr
    assert "MemoryError" in finished.stderr


def interrupt_when_three_sizes_are_done(path, stop):
    """Start a long sweep, let it finish three sizes, and stop it; return its status and result."""
    command = [*MPIRING, "bench", "-a", "ring", "-s", "8:1GiB", "--repetitions", "3000", "-o", path]
    with start(mpirun(2, *command)) as process:
        try:
            for _ in range(600):
                if path.exists() and len(json.loads(path.read_text())["points"]) >= 6:
                    break
                time.sleep(0.05)
            stop(process)
            process.communicate(timeout=20)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    return process.returncode, json.loads(path.read_text(), parse_constant=reject)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_stopped_run_leaves_every_finished_size(tmp_path, number):
    """The signal goes to the group, as a terminal's: Intel's mpirun is a shell that would wait."""
    status, document = interrupt_when_three_sizes_are_done(
        tmp_path / "r.json", lambda process: os.killpg(process.pid, number)
    )
    assert status != 0
    assert document["status"] == "interrupted"
    assert len(document["points"]) >= 6


def test_killed_ranks_leave_every_finished_size(tmp_path):
    def kill_ranks(process):
        ranks = subprocess.run(
            ["pgrep", "--full", str(tmp_path)], capture_output=True, text=True, check=True
        ).stdout.split()
        for pid in ranks:
            if int(pid) != process.pid:
                os.kill(int(pid), signal.SIGKILL)

    status, document = interrupt_when_three_sizes_are_done(tmp_path / "r.json", kill_ranks)
    assert status != 0
    assert document["status"] == "interrupted"
    assert len(document["points"]) >= 6


def test_ranks_that_do_not_see_each_other():
    finished = run([*MPIRING, "bench"], SLURM_NTASKS="4", SLURM_PROCID="2")
    assert finished.status == 2
    assert re.search(
        "mpiring: error: Slurm started 4 ranks, .* sees 1: start it with", finished.stderr
    )
    assert finished.stdout == ""


def test_without_a_launcher_one_rank_is_measured():
    finished = mpiring(0, "bench", "-s", "64", "-a", "all")
    assert finished.status == 0
    assert "1 rank on 1 node" in finished.stdout
    assert {row[2] for row in rows(finished)} == {"ok"}


WITHOUT_MPI = [["--help"], ["-h"], ["--version"], ["algorithms"], ["bench", "--help"], []]


@pytest.mark.parametrize("arguments", WITHOUT_MPI, ids=str)
def test_what_needs_no_mpi_imports_none(arguments):
    program = (
        "import sys; import mpiring.cli as cli\n"
        "try: cli.main(sys.argv[1:])\n"
        "finally: assert 'mpi4py.MPI' not in sys.modules\n"
    )
    finished = run([sys.executable, "-c", program, *arguments])
    assert finished.status == (0 if arguments else 2)
    assert "Traceback" not in finished.stderr
    said = finished.stdout + finished.stderr
    assert re.search(r"Usage: mpiring|mpiring \d|reduce_scatter +each rank", said)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["algorithms"]], ids=str)
def test_under_a_launcher_it_is_said_once(arguments):
    alone, together = mpiring(0, *arguments), mpiring(3, *arguments)
    assert together.status == 0
    assert together.stdout == alone.stdout != ""


def test_algorithms_are_listed_with_what_they_cost():
    lines = mpiring(0, "algorithms").stdout.splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(ALGORITHMS)
    ring = next(line for line in lines if line.startswith("ring"))
    assert "2(N-1) " in ring
    assert "2(N-1)/N n" in ring
    assert "commutes" in ring


def test_the_console_script_is_installed():
    finished = run(["mpiring", "--version"])
    assert re.fullmatch(r"mpiring \d+\.\d+\.\d+\n", finished.stdout)


def test_output_to_a_closed_pipe_is_no_traceback():
    process = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m mpiring algorithms | true"],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
    )
    assert "Traceback" not in process.stderr
