"""Hostfiles from the field, and what each launcher makes of them.

Either the host of each rank where every slot gets one, or the line, with the reason, where the
launcher refuses the file or takes a line for something else than it seems. All of it was seen in
`mpiexec -v` of MPICH 5.0 and `mpirun --display map` of Open MPI 5.0, and is seen again by
test_hostfile_launchers.py wherever one of them is at hand.
"""

from typing import NamedTuple

SLOTS = "MPICH refuses slots=2"
COLON = "Open MPI takes all of a:2 for a name"
CORES = "as many slots on a as it has cores"
BEHIND = "MPICH has no comments behind a host"
TWICE = "Open MPI refuses slots of a, which line 1 names as well"
CRLF = "Open MPI refuses lines that end in CR LF"


class Case(NamedTuple):
    text: str
    mpich: str | tuple[int, str]
    openmpi: str | tuple[int, str]


CASES = [
    Case("a:2\nb:1\n", "a a b", (1, COLON)),
    Case("a slots=2\nb slots=1\n", (1, SLOTS), "a a b"),
    Case("a\n", "a", (1, CORES)),
    # A host that comes again.
    Case("a slots=2\na slots=2\n", (1, SLOTS), (2, TWICE)),
    Case("a:2\na:2\n", "a a a a", (1, COLON)),
    Case("a\na\n", "a a", "a a"),
    Case("a\na\na\nb slots=1\n", (4, "MPICH refuses slots=1"), "a a a b"),
    Case("a slots=2\na\n", (1, SLOTS), "a a a"),
    Case("a\na slots=2\n", (2, SLOTS), (2, TWICE)),
    Case("a\nb\nb\na\n", "a b b a", "a a b b"),
    Case("a:1\nb:1\na:2\n", "a b a a", (1, "takes all of a:1 for a name")),
    Case("a slots=1\nb slots=1\na\n", (1, "MPICH refuses slots=1"), "a a b"),
    Case("a.x\na.y\n", "a.x a.y", "a.x a.x"),
    Case("a.x slots=1\na.y slots=1\n", (1, "slots=1"), (2, "Open MPI refuses slots of a.y")),
    Case("A:1\na:1\n", "A a", (1, "A:1")),
    # Names.
    Case("n1-10:2\n", "n1-10 n1-10", (1, "n1-10:2")),
    Case("n1-10 slots=2\n", (1, SLOTS), "n1-10 n1-10"),
    Case("n[1-3]:2\n", (1, "n[1-3] for the name of one host"), (1, "refuses n[1-3]")),
    Case("n[1-3] slots=2\n", (1, "n[1-3] for the name of one host"), (1, "refuses n[1-3]")),
    Case("a@b@c:1\n", "c", (1, "cannot read the user a@b")),
    Case("a@b@c slots=1\n", (1, "MPICH refuses slots=1"), (1, "cannot read the user a@b")),
    Case("u@a slots=2\n", (1, SLOTS), "a a"),
    Case("u@a:2\n", "a a", (1, "u@a:2")),
    Case("a:2 user=u\n", "a a", (1, "a:2")),
    Case("a slots=2 username=u\n", (1, SLOTS), "a a"),
    Case("10.0.0.1 slots=1\n10.0.0.2 slots=1\n", (1, "slots=1"), "10.0.0.1 10.0.0.2"),
    Case("10.0.0.1:1\n10.0.0.2:1\n", "10.0.0.1 10.0.0.2", (1, "10.0.0.1:1")),
    Case("[fe80::1]:2\n", (1, "cannot name fe80::1"), (1, "the brackets of [fe80::1]:2")),
    Case("[fe80::1] slots=2\n", (1, "cannot name fe80::1"), (1, "the brackets of [fe80::1]")),
    Case("fe80::1 slots=2\n", (1, "cannot name fe80::1"), "fe80::1 fe80::1"),
    # Comments, blank lines, ends of lines.
    Case("# c\n\n \t\n  # d\na:2\n", "a a", (5, COLON)),
    Case("# c\n\n \t\n  # d\na slots=2\n", (5, SLOTS), "a a"),
    Case("a:2 # c\n", (1, BEHIND), (1, COLON)),
    Case("a slots=2 # c\n", (1, BEHIND), "a a"),
    Case("a slots=2#c\n", (1, BEHIND), "a a"),
    Case("// c\na slots=2\n", (1, "comments that begin with //"), "a a"),
    Case("a:2\nb:1", "a a b", (1, COLON)),
    Case("a slots=2\nb slots=1", (1, SLOTS), "a a b"),
    Case("a\na\n# c", "a a", (3, "a last line that does not end")),
    Case("a:2\r\nb:1\r\n", "a a b", (1, CRLF)),
    Case("a slots=2\r\nb slots=1\r\n", (1, SLOTS), (1, CRLF)),
    Case("# c\r\na\na\n", "a a", "a a"),
    Case("\ufeffa:2\n", (1, "the byte order mark"), (1, "the byte order mark")),
    Case("\ufeffa slots=2\n", (1, "the byte order mark"), (1, "the byte order mark")),
    # Other words.
    Case("\ta  slots = 2 \n", (1, SLOTS), "a a"),
    Case("a cpu=2\n", (1, "cpu=2"), "a a"),
    Case("a slots=2 max_slots=3\n", (1, SLOTS), "a a"),
    Case("a max-slots=3\n", (1, "MPICH refuses max-slots=3"), "a a a"),
    Case("a port=22\na\n", (1, "MPICH refuses port=22"), "a a"),
    Case("a:2 binding=user:1\n", "a a", (1, "a:2")),
    Case("a binding=user:1\na\n", "a a", (1, "Open MPI refuses binding=user:1")),
]

WRONG = {
    "a slots=0\n": "f:1: 'slots=0' does not give a number of slots from 1",
    "a:0\n": "f:1: 'a:0' does not give",
    "a\nb slots=-1\n": "f:2: 'slots=-1' does not give",
    "a:-1\n": "f:1: 'a:-1' does not give",
    "a:\n": "f:1: 'a:' does not give",
    "a:two\n": "f:1: 'a:two' does not give",
    "a slots\n": "f:1: 'slots' does not give",
    "a:4294967297\n": "f:1: 'a:4294967297' does not give",
    "a:1000000000000001\n": "f:1: 'a:1000000000000001' does not give",
    "a:٣\n": "f:1: 'a:٣' does not give",
    "a:2 slots=2\n": "f:1: 'slots=2' behind the host",
    "a slots=1 slots=2\n": "f:1: 'slots=2' behind the host",
    "a slots=2 max_slots=1\n": "f:1: 2 slots are more than max_slots",
    "a b\n": "f:1: 'b' behind the host is neither slots nor a comment",
    "a: 2\n": "f:1: 'a:' does not give",
    "a\rb\r": "f:1: 'b' behind the host",
    "a,b\n": "f:1: 'a,b' does not begin with a host's name",
    "a;b\n": "f:1: 'a;b' does not begin",
    "slots=2\n": "f:1: 'slots=2' does not begin",
    ":2\n": "f:1: ':2' does not begin",
    "é:2\n": "f:1: 'é:2' does not begin",
    "a\u00a0slots=2\n": "f:1: 'a\\xa0slots=2' does not begin",
    "[1-3]:2\n": "f:1: '[1-3]:2' does not begin",
    "[fe80::1:2\n": "f:1: '[fe80::1:2' does not begin",
    "fe80::1%eth0\n": "f:1: 'fe80::1%eth0' does not give",
    "[fe80::x]:2\n": "f:1: 'fe80::x' is not an IPv6 address",
    "n[3-1]:2\n": "f:1: 'n[3-1]' is not a range of hosts",
    "n[1-:2\n": "f:1: 'n[1-:2' does not begin",
    "": "f:1: names no host",
    "# only a comment\n\n": "f:1: names no host",
    "\0\1\2": "f: not a text file",
}
