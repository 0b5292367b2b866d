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
from contextlib import suppress

import click
import numpy as np
import pytest
from click.types import StringParamType
from command import MPIRING, faulty, mpiring, mpirun, run, start
from mpi4py import MPI

from mpiring import ALGORITHMS, cli
from mpiring.bench import Config
from mpiring.cli.bench import _config as options_of
from mpiring.cli.choices import FileName
from mpiring.cli.resume import asked, take_up
from mpiring.decision import THREAD_LEVELS
from mpiring.errors import UsageError
from mpiring.operations import PREDEFINED
from mpiring.options import Options
from mpiring.report.formats import FORMATS
from mpiring.results import Result
from mpiring.sampling import STARTS, Sampling
from mpiring.stats import NEUTRAL_BAND

FOUR = ["naive", "reduce_scatter", "tree", "ring", "native"]


def bench(ranks, *arguments, **options):
    return mpiring(ranks, "bench", "--repetitions", "6", "--warmup", "1", *arguments, **options)


def rows(finished):
    """The lines of the table, as algorithm, size, and check."""
    lines = finished.stdout.splitlines()[3:]
    return [
        (f[2], f"{f[0]} {f[1]}", f[-1])
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
    (2, ["--time-limit", "0"], "0.0 is not in the range 1e-09<=x"),
    (2, ["--seed", "99999999999999999999"], "99999999999999999999 is not in the range"),
    (2, ["--repetitions", "6:9999999999"], "more than 1000000000 repetitions"),
    (2, ["--time-limit", "nan"], "nan is not a finite number"),
    (2, ["--time-limit", "inf"], "inf is not in the range"),
    (2, ["--batch", "3", "--in-place"], "--batch and --in-place exclude each other"),
    (2, ["--batch", "3", "--cold"], "--batch and --cold exclude each other"),
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
    (2, ["-o", ""], "the name of the file is empty"),
    (2, ["--resume", "r.csv"], "r.csv: only .json can be read"),
    (2, ["-o", "r.txt"], "r.txt: the ending has to be .json or .csv"),
    (2, ["surplus"], "unexpected extra argument"),
    (2, ["-a", "torus_ring", "--torus", "3x3"], "a torus of 3 x 3 has 9 ranks, the job has 2"),
    (2, ["-a", "torus_ring", "--torus", "3"], "'3' is not a grid such as 4x8"),
    (2, ["-a", "recursive_multiplying", "--radix", "1"], "radix is 1, it has to be a number from"),
    (2, ["-a", "parameter_server", "--root", "2"], "root is rank 2, the job has 2"),
    (2, ["-a", "multi_leader", "--leaders", "0"], "leaders is 0"),
    (2, ["-a", "tree", "--tree", "node"], "'node' is not levels with algorithms, as node=ring"),
    (2, ["-a", "tree", "--tree", "rack=ring"], "no level 'rack': the topology has node, and top"),
    (2, ["-a", "tree", "--tree", "node=rung"], "tree, level node: unknown algorithm 'rung'"),
    (2, ["-a", "tree", "--tree", "top=torus_ring"], "tree, level top: unknown algorithm"),
    (2, ["-a", "tree", "--tree", "top=ring,top=ring"], "tree has level 'top' twice"),
    (2, ["-a", "ring", "--tree", "top=ring"], "--tree changes nothing: ring has no tree"),
    (2, ["-a", "ring", "--segment", "3"], "a segment of 3 B is smaller than an element of 4 B"),
    (2, ["-a", "ring", "--segment", "x"], "'x' is not a size"),
    (2, ["-a", "ring", "--root", "1"], "--root changes nothing: ring has no root"),
    (2, ["--trace", "/tmp/t.json", "-o", "/tmp/../tmp/t.json"], "two outputs name the same file"),
    (2, ["--trace", "/no/such/t.json"], "/no/such/t.json: cannot be written"),
]


# How all leave is up to the launcher. One of each: by click, by all ranks, by rank 0 for all.
LEAVING = ("No such option '--foo'", "the job has 2", "/no/such.toml: No such file or directory")


@pytest.mark.parametrize(
    ("ranks", "arguments", "message"),
    [
        pytest.param(*mistake, marks=() if mistake[2].endswith(LEAVING) else pytest.mark.pure)
        for mistake in MISTAKES
    ],
    ids=lambda v: str(v)[:30],
)
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


def test_the_choices_of_algorithms_are_on_record():
    chosen = ["--radix", 3, "--torus", "4x1", "--segment", "1KiB", "--rendezvous"]
    names = "ring,torus_ring,recursive_multiplying"
    finished = bench(4, "-a", names, "-s", "8,64KiB", *chosen, "--format", "json")
    document = check_document(finished.stdout, 4)
    options = document["config"]["options"]
    assert (options["radix"], options["torus"], options["segment"]) == (3, [4, 1], 1024)
    ran = {point["algorithm"]: point["ran"] for point in document["points"]}
    assert ran == {
        "ring": "ring segment=1024 rendezvous=True",
        "torus_ring": "torus_ring segment=1024 torus=4,1 rendezvous=True",
        "recursive_multiplying": "recursive_multiplying segment=1024 radix=3 rendezvous=True",
        "native": "native",
    }


def test_the_table_says_what_was_measured():
    finished = bench(2, "--sizes", "1KiB", "--in-place", "--dtype", "int16", "--op", "max")
    header, columns, units, _, *lines = finished.stdout.splitlines()
    assert re.match(
        r"mpiring \S+, (MPICH|Open MPI|Intel MPI) [\d.]+,"
        r" 2 ranks on 1 node with \d+ cores?, int16 max in place, noise floor [\d.]+ us$",
        header,
    )
    assert columns.split() == ["time", "95", "%", "busbw", "of"]
    assert re.split("  +", units.strip()) == [
        *("size", "algorithm", "(us)", "interval", "(GB/s)", "limit", "vs native", "check"),
    ]
    assert [line.split()[2] for line in lines[:5]] == FOUR
    native = lines[4].split()
    assert native[:3] == ["1", "KiB", "native"]
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
    assert {row[2] for row in rows(finished)} == {"none"}


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


@pytest.mark.parametrize(
    ("dtype", "op"),
    [("complex64", "sum"), ("complex128", "prod"), ("complex64", "max"), ("bool", "lxor")],
)
def test_what_is_right_is_ok_whatever_the_dtype(dtype, op):
    finished = bench(3, "-s", "16,1001KiB", "--dtype", dtype, "--op", op, "-a", "ring,naive")
    assert finished.status == 0
    assert {row[2] for row in rows(finished)} <= {"ok", "n/a"}  # of the library's own reduction
    assert [row[2] for row in rows(finished) if row[0] != "native"] == ["ok"] * 4


def test_more_ranks_than_cores_is_said_once_and_ends():
    """Some launchers bind by what they may use themselves, others whatever that is."""
    bound = ["taskset", "-c", min(os.sched_getaffinity(0))]
    options = ["--repetitions", "6", "--warmup", "1", "-s", "8,64KiB"]
    finished = run([*bound, *mpirun(4, *bound, *MPIRING, "bench", *options)])
    assert finished.status == 0
    assert finished.stderr.count("4 ranks share 1 core") == 1
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
    "percent_of_limit": (float, type(None)),
    "noise_floor_s": float,
    "below_noise_floor": bool,
    "noisy": bool,
    "exactness": dict,
    "note": str,
    "rounds": (int, type(None)),
    "bytes_sent_per_rank": (int, type(None)),
    "node_crossings": (float, type(None)),
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
        assert point["ran"].split()[0] == point["algorithm"]
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
    below = by_name["native"]["below_noise_floor"]
    assert by_name["native"]["verdict"] == ("unknown" if below else "tie")
    assert all(point["exactness"]["ranks_equal"] for point in by_name.values())
    assert all(0 <= point["exactness"]["max_ulp"] <= 3 for point in by_name.values())
    assert document["config"]["sizes"] == [8, 1000]
    assert ("checking ring" in finished.stderr) == (extra == ["-v"])


@pytest.mark.pure
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


@pytest.mark.parametrize("dtype", ["complex128", "longdouble", "bool", "bfloat16"])
@pytest.mark.parametrize("form", ["osu", "nccl"])
@pytest.mark.pure
def test_columns_stay_apart_and_what_has_no_time_is_said(form, dtype):
    op = "lxor" if dtype == "bool" else "sum"
    options = ["-s", "16,1KiB", "-a", "ring", "--dtype", dtype, "--op", op, "--format", form]
    finished = bench(2, *options)
    lines = [line.split() for line in finished.stdout.splitlines() if line[0] != "#"]
    assert len({len(line) for line in lines}) == 1
    if form == "nccl":
        assert {tuple(line[2:4]) for line in lines} == {(dtype, op)}
        averages = re.findall(r"^# Avg bus bandwidth    : (\S+)$", finished.stdout, re.MULTILINE)
        assert len(averages) == (1 if dtype == "bfloat16" else 2)
        assert float(averages[0]) == pytest.approx(
            np.mean([float(x[7]) for x in lines[:2]]), abs=0.01
        )
    if dtype == "bfloat16":
        said = "mpiring: native at 16 B, 1 KiB: n/a: the MPI library has no datatype for bfloat16\n"
        assert said in finished.stderr


@pytest.mark.parametrize("form", ["osu", "nccl"])
def test_wrong_data_are_said_beside_columns(form):
    finished = faulty(2, "return_the_input", "bench", "-s", "8", "-q", "--format", form)
    assert finished.status == 1
    assert re.search(r"^mpiring: ring at 8 B: WRONG: rank \d: .* are wrong$", finished.stderr, re.M)


def test_options_offer_what_there_is_with_the_librarys_defaults():
    """They are written again, since `--help` loads neither MPI nor numpy."""
    choices = {
        "op": PREDEFINED,
        "sync": STARTS,
        "form": ("table", *FORMATS),
    }
    options = {option.name: option for option in cli.bench.params}
    for name, there_is in choices.items():
        assert sorted(options[name].type.choices) == sorted(there_is), name
    sampling, config = Sampling(), Config((), ())
    defaults = {
        "repetitions": (sampling.fewest, sampling.most),
        "time_limit": sampling.time_limit_s,
        **{name: getattr(sampling, name) for name in ("warmup", "sync", "cold", "batch")},
        **{name: getattr(config, name) for name in ("dtype", "op", "in_place", "check", "seed")},
    }
    chosen = cli.bench.make_context("bench", []).params
    assert {name: chosen[name] for name in defaults} == defaults
    compared = cli.compare.make_context("compare", ["old", "new"]).params
    assert compared["band"] == NEUTRAL_BAND


@pytest.mark.parametrize("level", ["single", "serialized", "multiple"])
def test_the_thread_level_is_asked_for_and_on_record(level):
    finished = bench(2, "-s", "8", "-a", "ring", "--thread-level", level, "--format", "json")
    document = check_document(finished.stdout, 2)
    given = THREAD_LEVELS.index(document["environment"]["thread_level"])
    assert given >= THREAD_LEVELS.index(level)
    assert (document["environment"]["thread_level"] == level) or level != "multiple"


@pytest.mark.parametrize("options", [["--sync", "window"], ["--cold"]], ids=str)
def test_other_ways_of_sampling(options):
    finished = bench(2, "-s", "8,64KiB", "-a", "ring", "--format", "json", *options)
    document = check_document(finished.stdout, 2)
    assert document["config"]["sampling"]["sync"] == (
        "window" if "window" in options else "barrier"
    )
    assert document["config"]["sampling"]["cold"] == ("--cold" in options)


def test_each_call_of_a_batch_has_its_share_of_the_noise_floor():
    finished = bench(2, "-s", "8", "-a", "ring", "--batch", "20", "--format", "json")
    document = check_document(finished.stdout, 2)
    noise = document["environment"]["noise"]
    start_s = noise["tick_s"] + noise["barrier_skew_s"]
    assert noise["floor_s"] == pytest.approx(noise["call_s"] + start_s)
    for point in document["points"]:
        assert point["batch"] == 20
        assert point["noise_floor_s"] == pytest.approx(noise["call_s"] + start_s / 20)


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


ASKED = ["--dtype", "i2", "--op", "max", "--in-place", "--sync", "window", "--no-check"]
ASKED += ["--seed", "3", "--warmup", "2", "--repetitions", "3:6", "--time-limit", "0.2"]
ASKED += ["--batch", "1", "--topology", "hostfiles/by-hostname.toml"]
ASKED += ["--segment", "64", "--torus", "1x2", "--rendezvous"]


@pytest.mark.parametrize(
    ("more", "sizes", "names"),
    [
        ([], [8, 64], ["torus_ring", "native"]),
        (["-s", "16,8"], [8, 64, 16], ["torus_ring", "native"]),
        (["-a", "naive"], [8, 64], ["naive", "torus_ring", "native"]),
    ],
    ids=str,
)
@pytest.mark.pure
def test_a_resumed_run_measures_what_the_earlier_one_had_asked_for(tmp_path, more, sizes, names):
    """Every option of it that is not given counts; more sizes and algorithms can be."""
    path = tmp_path / "r.json"
    asked = ["-q", "-a", "torus_ring", "-s", "8,64", *ASKED]
    assert mpiring(2, "bench", *asked, "-o", path).status == 0
    earlier = json.loads(path.read_text())
    earlier |= {"status": "interrupted", "points": earlier["points"][:2]}
    path.write_text(json.dumps(earlier))
    finished = mpiring(2, "bench", "-q", *more, "--resume", path)
    assert finished.status == 0, finished.stderr
    again = json.loads(path.read_text())
    assert again["status"] == "complete"
    assert {(p["algorithm"], p["nbytes"]) for p in again["points"]} == {
        (name, nbytes) for nbytes in sizes for name in names
    }
    assert (again["points"][0] == earlier["points"][0]) == ("naive" not in names)
    widened = {"sizes": sizes, "algorithms": again["config"]["algorithms"]}
    assert again["config"] == {**earlier["config"], **widened}
    assert {*again["config"]["algorithms"], "native"} == {*names}
    for name in ("command", "started"):
        assert again["environment"][name] == earlier["environment"][name]
    (resumed,) = again["environment"]["resumed"]
    assert resumed["command"][-1] == str(path)


def test_every_option_that_shapes_a_result_is_taken_from_the_file_it_resumes():
    not_of_the_result = {"output", "resume", "requeue", "trace"}
    not_of_the_result |= {"time_budget", "form", "verbose", "quiet"}
    before_any_file_is_read = {"thread_level"}
    options = {option.name for option in cli.bench.params}
    earlier = Result(
        {"topology": {"source": "MPI"}}, json.loads(json.dumps(Config((), ()).document()))
    )
    assert asked(earlier).keys() == options - not_of_the_result - before_any_file_is_read


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sizes", None, "sizes is null instead of a list"),
        ("sizes", ["x"], "config: sizes: 'x' is not a size"),
        ("algorithms", ["rng"], "config: algorithms: unknown algorithm 'rng'"),
        ("op", "average", "config: op: 'average' is not one of"),
        ("sampling", {}, "fewest is missing"),
    ],
)
@pytest.mark.pure
def test_what_no_run_can_have_asked_for_is_refused(tmp_path, name, value, said):
    path = tmp_path / "r.json"
    assert bench(2, "-s", "8", "-a", "ring", "-o", path).status == 0
    document = json.loads(path.read_text())
    document["config"][name] = value
    path.write_text(json.dumps(document))
    finished = mpiring(2, "bench", "--resume", path)
    assert finished.status == 2
    assert finished.stderr.count(f"{path}: damaged: {said}") == 1, finished.stderr
    assert "Traceback" not in finished.stderr


def with_each_value(document, values):
    """Yield the document with each of its values, at any depth, replaced by each of `values`."""
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in parts:
        inner = with_each_value(value, values) if isinstance(value, dict | list | tuple) else ()
        for other in (*values, *inner):
            changed = dict(document) if isinstance(document, dict) else list(document)
            changed[key] = other
            yield changed


def test_whatever_is_damaged_in_a_result_it_is_said_in_words(tmp_path):
    path = tmp_path / "r.json"
    options = Options(torus=(2, 2), tree=(("node", "ring"),))
    environment = {"topology": {"source": "MPI", "levels": [{"name": "node", "groups": [[0]]}]}}
    environment |= {"ranks": 1, "nodes": [[0]], "variables": {}, "resumed": []}
    config = Config(("ring",), (8,), options=options).document()
    known = json.loads(Result(environment, config).to_json())
    refused = []
    values = [None, 3, -1, 0.5, 10**30, "x", "", True, [], [3], [None], {}, {"x": 1}, float("nan")]
    for document in with_each_value(known, values):
        path.write_text(json.dumps(document))
        context = cli.bench.make_context("bench", ["--resume", str(path)])
        try:
            earlier = take_up(MPI.COMM_SELF, context, str(path)).result
            Result(environment, config).resume(earlier, "r.json", [8], ["ring"])
        except UsageError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert [said for said in refused if not said.startswith((f"{path}: ", "r.json: "))] == []


@pytest.mark.parametrize("value", ["1000000000", "99999999999999999999", "1e-300", "1e300"])
def test_a_number_that_could_not_be_read_again_is_refused(value):
    for option in cli.bench.params:
        if not isinstance(option.type, StringParamType) or option.name == "repetitions":
            with suppress(click.UsageError):
                context = cli.bench.make_context("bench", [option.opts[0], value])
                document = json.loads(json.dumps(options_of(context.params).document()))
                asked(Result({"topology": {"source": "MPI"}}, document))


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("r.json", "", 0),
        ("r.json", '{"schema": "mpiring.results/0"}', 0),
        ("r.csv", "algorithm,ran,nbytes,count\n", 0),
        ("r.json", '{"mine": 1}', 2),
        ("r.csv", "mine,1\n", 2),
    ],
)
@pytest.mark.pure
def test_a_file_of_another_program_is_not_overwritten(tmp_path, name, content, status):
    path = tmp_path / name
    path.write_text(content)
    finished = bench(2, "-s", "8", "-a", "ring", "-o", path)
    assert finished.status == status, finished.stderr
    assert (path.read_text() == content) == (status == 2)
    assert ("no result of mpiring: not overwritten" in finished.stderr) == (status == 2)


@pytest.mark.pure
def test_ranks_with_variables_of_their_own_resume(tmp_path):
    path = tmp_path / "r.json"
    assert bench(2, "-s", "8", "-a", "ring", "-o", path).status == 0
    command = [*MPIRING, "bench", "-s", "8,64", "-a", "ring", "--repetitions", "6"]
    command += ["--resume", path]
    finished = run(["mpirun", "-n", "1", *command, ":", "-n", "1", "env", "FI_OWN=1", *command])
    assert finished.status == 0, finished.stderr
    assert len(rows(finished)) == 4


def test_a_topology_file_is_used():
    two_nodes = "hostfiles/two-nodes-4ranks.toml"
    finished = bench(4, "-s", "1600", "-a", "tree", "--format", "json", "--topology", two_nodes)
    tree = check_document(finished.stdout, 4)["points"][0]
    assert tree["rounds"] == 3
    assert tree["note"] == ""
    assert tree["bytes_sent_per_rank"] == 800 + 800 + 800
    assert tree["node_crossings"] == 4 / 3


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
        ("miscount", "its schedule has"),
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


@pytest.mark.parametrize("in_place", [[], ["--in-place"]], ids=str)
def test_wrong_data_are_counted_in_nccls_columns(in_place):
    finished = faulty(2, "return_the_input", "bench", "-s", "8", "--format", "nccl", *in_place)
    assert finished.status == 1
    rows_ = [line.split()[5:] for line in finished.stdout.splitlines() if line[0] != "#"]
    wrong, nothing = ["N/A", "N/A", "N/A", "1"], ["N/A"] * 4
    assert rows_.count([*nothing, *wrong] if in_place else [*wrong, *nothing]) == 1


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


def test_the_rank_that_rounds_worst_tells_how_exact_a_result_is():
    finished = faulty(2, "round_worse_on_rank_1", "bench", "-s", "4", "--format", "json")
    assert finished.status == 0  # the check is of data that do not round
    points = json.loads(finished.stdout)["points"]
    ring, native = (
        next(point["exactness"] for point in points if point["algorithm"] == name)
        for name in ("ring", "native")
    )
    assert native["ranks_equal"]
    assert native["max_ulp"] <= 1
    assert not ring["ranks_equal"]
    assert 15 <= ring["max_ulp"] <= 17


@pytest.mark.parametrize(("fault", "rank"), [("raise_on_rank_1", 1), ("raise_everywhere", 0)])
def test_an_exception_ends_the_job_with_one_traceback(fault, rank):
    begin = time.monotonic()
    finished = faulty(3, fault, "bench", "-s", "8")
    assert time.monotonic() - begin < 10
    assert finished.status != 0
    assert finished.stderr.count("Traceback") == 1
    assert f"mpiring: error on rank {rank} of 3:" in finished.stderr
    assert "ValueError: planted" in finished.stderr


def test_a_full_disk_is_one_error(tmp_path):
    """As on a full disk, it is a write that fails, in a file that could be opened."""
    program = (
        "import resource; import mpiring.report.files as files\n"
        "write = files.write\n"
        "def limited(path, result):\n"
        "    bounds = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "    most = 4096 if len(result.points) > 2 else bounds[0]\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (most, bounds[1]))\n"
        "    try: write(path, result)\n"
        "    finally: resource.setrlimit(resource.RLIMIT_FSIZE, bounds)\n"
        "files.write = limited\n"
        "from mpiring.cli import main; main()\n"
    )
    full = tmp_path / "full.json"
    options = ["-s", "8,16", "-a", "ring", "-o", full]
    finished = run(mpirun(2, sys.executable, "-c", program, "bench", *options))
    assert finished.status == 2
    assert finished.stderr.count(f"mpiring: error: {full}: cannot be written: File too large") == 1
    assert "Traceback" not in finished.stderr
    assert os.listdir(tmp_path) == ["full.json"]
    assert len(json.loads(full.read_text())["points"]) == 2


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
    command = [*MPIRING, "bench", "-a", "ring", "-s", "8:1GiB", "--repetitions", "300", "-o", path]
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


STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)


@pytest.mark.parametrize("number", STOPS, ids=lambda number: number.name)
def test_a_signal_to_one_rank_stops_all_and_the_rest_is_resumed(tmp_path, number):
    path = tmp_path / "r.json"
    options = ["-q", "-a", "ring,tree", "-s", "8,64,512", "--repetitions", "6"]
    finished = faulty(3, "signal_rank_1", "bench", *options, "-o", path, SIGNAL=str(int(number)))
    assert finished.status == 4, finished.stderr
    said = f"mpiring: stopped by {number.name}: 1 of 3 sizes measured; --resume {path} measures"
    assert finished.stderr.count(said) == 1
    assert "Traceback" not in finished.stderr
    part = check_document(path.read_text(), 3, "interrupted")
    assert [point["nbytes"] for point in part["points"]] == [8] * 3
    assert len(rows(finished)) == 3
    assert mpiring(3, "bench", "-q", "--resume", path).status == 0
    whole = check_document(path.read_text(), 3)
    assert whole["points"][:3] == part["points"]
    assert [point["nbytes"] for point in whole["points"][3:]] == [64] * 3 + [512] * 3


SIGNALLED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == os.environ["BEFORE"]:
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))

sys.meta_path.insert(0, Finder())
from mpiring import cli
cli.main(sys.argv[1:])
"""
"""mpiring, with a signal to each rank before it imports the module that the test names."""


@pytest.mark.parametrize("before", ["mpi4py", "mpiring.noise", "mpiring.limits"])
@pytest.mark.parametrize("number", STOPS, ids=lambda number: number.name)
def test_a_signal_before_anything_is_measured(tmp_path, before, number):
    """MPI is not there yet, or the ranks look at what they run on."""
    path = tmp_path / "r.json"
    command = [sys.executable, "-c", SIGNALLED, "bench", "-q", "-a", "ring", "-s", "8,64"]
    finished = run(mpirun(2, *command, "-o", path), BEFORE=before, SIGNAL=str(int(number)))
    assert finished.status == 4, finished.stderr
    assert finished.stderr.count(f"mpiring: stopped by {number.name}: 0 of 2 sizes measured") == 1
    assert "Traceback" not in finished.stderr
    assert check_document(path.read_text(), 2, "interrupted")["points"] == []


@pytest.mark.parametrize("of", ["an option", "the job"])
@pytest.mark.pure
def test_without_time_nothing_is_measured_and_the_file_can_be_resumed(tmp_path, of):
    path = tmp_path / "r.json"
    budget = ["--time-budget", "0.001"] if of == "an option" else []
    end = {"SLURM_JOB_ID": "17", "SLURM_JOB_END_TIME": str(int(time.time()) + 1)}
    job = end if of == "the job" else {}
    finished = bench(2, "-a", "ring", "-s", "8,64", "-o", path, *budget, **job)
    assert finished.status == 4
    whose = "--time-budget" if of == "an option" else "job 17"
    said = f"mpiring: the time of {whose} is up: 0 of 2 sizes measured"
    assert finished.stderr.count(said) == 1
    assert check_document(path.read_text(), 2, "interrupted")["points"] == []
    assert mpiring(2, "bench", "--resume", path, "-q").status == 0
    assert len(check_document(path.read_text(), 2)["points"]) == 4


def test_a_clock_of_another_host_stops_nobody():
    ends = {"SLURM_JOB_ID": "17", "SLURM_JOB_END_TIME": str(int(time.time()) + 1000)}
    options = ["bench", "-q", "-s", "8", "-a", "ring", "--repetitions", "6"]
    finished = faulty(2, "set_the_clock_of_rank_1_ahead", *options, **ends)
    assert finished.status == 0, finished.stderr


def test_a_resumed_run_that_is_stopped_loses_nothing(tmp_path):
    path = tmp_path / "r.json"
    assert bench(2, "-a", "ring", "-s", "8,64", "-o", path).status == 0
    points = check_document(path.read_text(), 2)["points"]
    finished = bench(2, "-a", "tree", "--resume", path, "--time-budget", "0.001")
    assert finished.status == 4
    assert check_document(path.read_text(), 2, "interrupted")["points"] == points
    assert mpiring(2, "bench", "-q", "--resume", path).status == 0
    whole = check_document(path.read_text(), 2)["points"]
    assert [point["algorithm"] for point in whole] == ["tree", "ring", "native"] * 2


@pytest.mark.pure
def test_what_fits_into_the_time_is_measured_in_an_order_of_its_own(tmp_path):
    """A slow machine is assumed at first, so of 200 sizes some are not planned for."""
    path = tmp_path / "r.json"
    sizes = ",".join(str(8 * i) for i in range(1, 201))
    options = ["-a", "ring", "-s", sizes, "--time-limit", "0.1", "--time-budget", "3s"]
    finished = bench(2, *options, "-o", path)
    assert finished.status == 4
    assert re.search(r"in [23] s there is time for about \d+ of 200 sizes", finished.stderr)
    points = check_document(path.read_text(), 2, "interrupted")["points"]
    measured = [point["nbytes"] for point in points]
    assert measured[::2][:3] == [8, 1600, 112]  # the middle, on a logarithmic axis


def test_a_second_interrupt_ends_the_job():
    begin = time.monotonic()
    finished = faulty(2, "interrupt_rank_1_twice", "bench", "-s", "8")
    assert time.monotonic() - begin < 10
    assert finished.status not in (0, 4)
    assert "Traceback" not in finished.stderr


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


def test_of_ranks_that_do_not_see_each_other_one_says_so():
    alone = [run([*MPIRING, "bench"], SLURM_NTASKS="4", SLURM_PROCID=str(rank)) for rank in (0, 2)]
    assert [finished.status for finished in alone] == [2, 2]
    assert [finished.stdout for finished in alone] == ["", ""]
    assert re.search(
        "mpiring: error: Slurm started 4 ranks, .* sees 1: start it with", alone[0].stderr
    )
    assert alone[1].stderr == ""


def test_a_rank_with_variables_of_another_launcher_ends_all_together():
    finished = faulty(2, "tell_rank_1_of_more_ranks", "bench", "-s", "8", timeout=20)
    assert finished.status == 2
    assert len(re.findall("mpiring: error: rank 1: .* started 4 ranks, ", finished.stderr)) == 1
    assert finished.stdout == ""


def test_without_a_launcher_one_rank_is_measured():
    finished = mpiring(0, "bench", "-s", "64", "-a", "all")
    assert finished.status == 0
    assert "1 rank on 1 node" in finished.stdout
    assert {row[2] for row in rows(finished)} == {"ok"}


WITHOUT_MPI = [
    *(["--help"], ["-h"], ["--version"], ["algorithms"], ["algorithms", "ring"], []),
    *(["doctor", "--help"], ["scaling", "--help"]),
    *(["bench", "--help"], ["explain", "ring", "-n", "2"], ["traffic", "-n", "2"]),
]


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
    assert re.search(r"Usage: mpiring|mpiring \d|reduce_scatter|Ring: every rank|a0\+a1", said)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["algorithms"]], ids=str)
def test_under_a_launcher_it_is_said_once(arguments):
    alone, together = mpiring(0, *arguments), mpiring(3, *arguments)
    assert together.status == 0
    assert together.stdout == alone.stdout != ""


def test_algorithms_are_listed_with_what_they_cost():
    lines = mpiring(0, "algorithms").stdout.splitlines()
    assert max(map(len, lines)) <= 100
    named = [line.split()[0] for line in lines[3:-1] if not line.startswith(" ")]
    assert [name.rstrip("*") for name in named] == list(ALGORITHMS)
    assert len(ALGORITHMS) >= 14
    at = named.index("ring*")
    ring = "\n".join(lines).split("\nring*")[1]
    assert re.search(r"chunks go round.* 2\(N-1\)\n.*2\(N-1\)/N n", ring)
    assert at == list(ALGORITHMS).index("ring")


@pytest.mark.pure
@pytest.mark.parametrize("name", ALGORITHMS)
def test_all_is_told_of_one(name):
    told = mpiring(0, "algorithms", name).stdout
    algorithm = ALGORITHMS[name]
    assert algorithm.description in told
    assert f"needs           {algorithm.needs}" in told
    for option in algorithm.heeded:
        assert "--" + option.replace("_", "-") in told


def test_the_console_script_is_installed():
    finished = run(["mpiring", "--version"])
    assert re.fullmatch(r"mpiring \d+\.\d+\.\d+\n", finished.stdout)


def shell(line, *arguments, **changes):
    """Run a line of shell whose "$@" is mpiring with these arguments; the status is mpiring's."""
    command = ["bash", "-c", f"set -o pipefail; {line}", "bash", *MPIRING, *arguments]
    return run(command, **changes)


OUTPUTS = {
    "algorithms": [],
    "bench": ["-q", "-s", "8,64", "-a", "ring", "--repetitions", "6", "-o", "again.json"],
    "compare": ["r.json", "r.json"],
    "doctor": [],
    "explain": ["ring", "-n", "8"],
    "hostfile check": ["hosts"],
    "hostfile convert": ["hosts", "--from", "mpich", "--to", "openmpi"],
    "plot": ["r.json", "-o", "r.png"],
    "scaling": ["r.json"],
    "timeline": ["t.json"],
    "topology measure": ["-q"],
    "topology plot": ["l.json", "-o", "l.png"],
    "topology show": [],
    "topology write": ["t.toml"],
    "traffic": ["-n", "8"],
    "tune": ["-q", "-s", "8", "-a", "ring", "--time-limit", "0.05", "-o", "d.toml"],
}
"""Arguments for each command, which prints to standard output."""
HELP = {"--help": [], "--version": [], "bench --help": [], "topology --help": []}


@pytest.fixture(name="outputs", scope="module")
def fixture_outputs(tmp_path_factory):
    """Return a command line for each name, with the files that it reads."""
    place = tmp_path_factory.mktemp("outputs")
    (place / "hosts").write_text("n1:2\nn2:2\n")
    files = ["-o", place / "r.json", "--trace", place / "t.json"]
    assert bench(0, "-s", "8,64", "-a", "ring", *files).status == 0
    assert mpiring(2, "topology", "measure", "-q", "--matrix", place / "l.json").status == 0
    files = {"hosts", "r.json", "again.json", "r.png", "t.json", "l.json", "l.png", "t.toml"}
    files |= {"d.toml"}
    return {
        name: [*name.split(), *(place / word if word in files else word for word in arguments)]
        for name, arguments in (OUTPUTS | HELP).items()
    }


def commands(group=cli.cli, before=()):
    """Every command by its name, those of groups as well."""
    for name, command in group.commands.items():
        inner = hasattr(command, "commands")
        yield from commands(command, (*before, name)) if inner else [((*before, name), command)]


def test_no_command_is_left_out_where_outputs_are_tested():
    assert sorted(" ".join(name) for name, _ in commands()) == sorted(OUTPUTS)


NO_FILES = {"--dtype", "name"}
"""Options and arguments that are any text and name no file."""


@pytest.mark.pure
@pytest.mark.parametrize(("name", "command"), list(commands()), ids=lambda value: str(value)[:30])
def test_an_empty_name_of_a_file_is_refused_wherever_there_is_one(name, command):
    for param in command.params:
        if not isinstance(param.type, StringParamType) or param.callback:
            continue
        if param.opts[0] in NO_FILES:
            assert not isinstance(param.type, FileName)
            continue
        given = param.opts[-1:] if isinstance(param, click.Option) else []
        with pytest.raises(click.BadParameter, match="the name of the file is empty"):
            command.make_context(" ".join(name), [*given, ""])


@pytest.mark.pure
@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("command", [*OUTPUTS, *HELP])
def test_a_full_standard_output_is_one_line_and_status_1(outputs, command, buffered):
    finished = shell('"$@" >/dev/full', *outputs[command], PYTHONUNBUFFERED=buffered)
    assert finished.status == 1
    assert finished.stderr == "mpiring: error: standard output: No space left on device\n"


@pytest.mark.pure
@pytest.mark.parametrize("command", [*OUTPUTS, *HELP])
def test_a_reader_that_has_left_ends_it_without_a_word(outputs, command):
    finished = shell('"$@" | true', *outputs[command])
    assert (finished.status in (0, 1), finished.stderr) == (True, "")


@pytest.mark.parametrize("command", [*OUTPUTS, *HELP])
@pytest.mark.pure
def test_output_needs_no_unicode(outputs, command):
    finished = run([*MPIRING, *outputs[command]], PYTHONIOENCODING="latin-1")
    assert finished.stdout
    assert "UnicodeEncodeError" not in finished.stderr


@pytest.mark.parametrize("command", ["algorithms", "compare", "bench"])
@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_closed_stream_is_not_missed(outputs, command, closed):
    finished = shell(f'"$@" {closed}', *outputs[command])
    assert finished.status == 0
    assert "ring" in finished.stdout


@pytest.mark.parametrize("command", ["bench", "topology measure"])
def test_ranks_whose_standard_output_is_full_end_together(outputs, command):
    inner = '"$@" >/dev/full'
    finished = run(mpirun(2, "bash", "-c", inner, "bash", *MPIRING, *outputs[command]))
    assert finished.status != 0
    assert finished.stderr.count("mpiring: error: standard output: No space left on device") == 1
    assert "Traceback" not in finished.stderr
