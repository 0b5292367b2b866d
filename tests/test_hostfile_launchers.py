"""Hostfiles, as the launcher at hand reads them: it shows its map, and no host is contacted."""

import itertools
import re

import pytest
from command import run
from hostfile_cases import CASES, Case

from mpiring.errors import UsageError
from mpiring.hostfile import DIALECTS, in_blocks, nodes, parse, slots_of

VERSION = run(["mpirun", "--version"]).stdout
NAME = "openmpi" if "Open MPI" in VERSION else "mpich"
DIALECT = DIALECTS[NAME]
SHOW = {
    "openmpi": "--rtos donotlaunch --display map --bind-to none",
    "mpich": "-launcher ssh -launcher-exec /bin/false -v",
}
UNEQUAL = [(2, 2), (1, 3), (3, 1), (2, 1, 3), (3, 2, 1)]
BY_NODE = {"openmpi": "--map-by node", "mpich": "-ppn 1"}

if not ("HYDRA" in VERSION or "(Open MPI) 5." in VERSION):
    pytest.skip("neither MPICH nor Open MPI 5: it shows no map", allow_module_level=True)


@pytest.fixture(name="launch")
def fixture_launch(tmp_path):
    """Let the launcher show the host of each rank; [] if it refuses."""

    def launch(text, options=""):
        path = tmp_path / "hosts"
        path.write_bytes(text.encode())
        option = "--hostfile" if NAME == "openmpi" else "-f"
        command = ["mpirun", option, path, *options.split(), *SHOW[NAME].split(), "true"]
        policy = {"PRTE_MCA_rmaps_default_mapping_policy": ":nooversubscribe"}
        finished = run(command, **(policy if NAME == "openmpi" else {}))
        return shown(finished.stdout + finished.stderr)

    return launch


def shown(said):
    hosts = {}
    if NAME == "openmpi":
        for node in re.split(r"^Data for node: ", said, flags=re.MULTILINE)[1:]:
            for rank in re.findall(r"Data for proc: \[\S+,(\d+)\]", node):
                hosts[int(rank)] = node.split()[0]
    for line in said.splitlines():
        for first, count in re.findall(r"--exec-rank (\d+) --exec-proc-count (\d+)", line):
            name = re.search(r"--hostname (?:\S+@)?(\S+)", line)[1]
            hosts |= {int(first) + rank: name for rank in range(int(count))}
    return [hosts[rank] for rank in sorted(hosts)]


def as_shown(hosts):
    """Return names as the launcher shows them: Open MPI's without the domain."""
    names = [host.name for host in hosts]
    if NAME == "openmpi":
        return [re.sub(r"^([^.:]*[^.:\d][^.:]*)\..*", r"\1", name) for name in names]
    return names


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.text))
def test_the_launcher_does_what_the_case_says(case: Case, launch):
    file = parse(case.text, "f")
    if isinstance(getattr(case, NAME), str):
        hosts = nodes(file, DIALECT)
        assert launch(case.text) == as_shown(in_blocks(hosts, slots_of(hosts)))
        return
    with pytest.raises(UsageError) as error:
        nodes(file, DIALECT)
    meant = [host for host in file.hosts for _ in range(host.slots or 1)]
    assert "as it has cores" in str(error.value) or launch(case.text) != as_shown(meant)


@pytest.mark.parametrize("slots", UNEQUAL)
def test_the_launcher_places_each_number_of_ranks_as_the_map_does(slots, launch):
    sign = " slots=" if NAME == "openmpi" else ":"
    text = "".join(f"{name}{sign}{count}\n" for name, count in zip("abc", slots, strict=False))
    hosts = nodes(parse(text, "f"), DIALECT)
    for ranks, by_node in itertools.product(range(1, sum(slots) + 1), (False, True)):
        placed = DIALECT.in_turn(hosts, ranks) if by_node else in_blocks(hosts, ranks)
        found = launch(text, f"-n {ranks} {BY_NODE[NAME] if by_node else ''}")
        assert found == as_shown(placed or []), (ranks, by_node)


def test_more_ranks_than_slots_begin_again_with_mpich_and_end_with_open_mpi(launch):
    if NAME == "openmpi":
        assert launch("a slots=2\nb slots=1\n", "-n 4") == []
    else:
        assert launch("a:2\nb:1\n", "-n 4") == ["a", "a", "b", "a"]
