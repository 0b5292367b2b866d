import pytest

from mpiring.errors import UsageError
from mpiring.units import (
    algbw,
    busbw,
    counted,
    differing,
    format_amount,
    format_size,
    parse_duration,
    parse_size,
    parse_sizes,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("1", 1),
        ("7", 7),
        ("7B", 7),
        ("1M", 10**6),
        ("1MB", 10**6),
        ("1m", 10**6),
        ("1MiB", 2**20),
        ("4KiB", 4096),
        ("4kib", 4096),
        ("1e6", 10**6),
        ("1.5M", 1500000),
        ("0.5KiB", 512),
        ("1 M", 10**6),
        (" 2 GB ", 2 * 10**9),
        ("1TiB", 2**40),
        (".5k", 500),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_sizes(text, nbytes):
    assert parse_size(text) == nbytes


@pytest.mark.parametrize(
    "text",
    [
        "-1",
        "",
        "M",
        "iB",
        "1iB",
        "1 2",
        "1,5M",
        "10X",
        "0x10",
        "1_000",
        "nan",
        "inf",
        "1.5",
        "0.3KiB",
        "1e-3",
        "1e30",
        "1e999",
        "1e99999999999",
        "9223372036854775808",
        "٣",
    ],
)
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), (" 1.5 h ", 5400), ("0.5", 0.5)]
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0m", "-1", "1e3", "inf", "nan", "10:00", "2 d", "٣"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UsageError, match="is not a time such as 90s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("8", (8,)),
        ("8:64", (8, 16, 32, 64)),
        ("8:63", (8, 16, 32)),
        ("8:64MiB:x4", tuple(8 * 4**i for i in range(12))),
        ("8:100:x10", (8, 80)),
        ("1KiB,1500,1MiB", (1024, 1500, 2**20)),
        ("64,8:32,8", (64, 8, 16, 32)),
        ("0,4:4", (0, 4)),
        ("1M:2MB", (10**6, 2 * 10**6)),
    ],
)
def test_lists_and_ranges(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    "text",
    [
        "8:",
        ":8",
        "64:8",
        "0:8",
        "8:64:4",
        "8:64:x1",
        "8:64:x0",
        "8:64:x-2",
        "8:64:x2:x2",
        "8:64:x99999999999",
        "8,",
        ",",
    ],
)
def test_what_is_no_list_is_refused(text):
    with pytest.raises(UsageError):
        parse_sizes(text)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (8, "8 B"),
        (1500, "1500 B"),
        (4096, "4 KiB"),
        (2**26, "64 MiB"),
        (2**50, "1024 TiB"),
    ],
)
def test_formatted_sizes_are_exact(nbytes, text):
    assert format_size(nbytes) == text
    assert parse_size(text) == nbytes


def test_amounts_are_rounded():
    assert format_amount(1536) == "1.5 KiB"
    assert format_amount(2**40 * 7) == "7 TiB"


@pytest.mark.parametrize(("size", "bus"), [(1, 0), (2, 1), (4, 1.5)])
def test_bandwidths(size, bus):
    assert algbw(10**9, 1.0) == 1
    assert busbw(10**9, 1.0, size) == bus


def test_two_long_values_are_shown_where_they_differ():
    assert differing(4, "ring", 9) == ("4", "ring")
    hosts = [f"node{number:04}" for number in range(8192)]
    for index in (0, 17, 8191):
        others = [*hosts[:index], "elsewhere", *hosts[index + 1 :]]
        one, other = differing(hosts, others, 60)
        assert hosts[index] in one
        assert "elsewhere" in other
        assert max(len(one), len(other)) <= 60


def test_one_thing_is_no_plural():
    assert [counted(number, "rank") for number in (0, 1, 2)] == ["0 ranks", "1 rank", "2 ranks"]
