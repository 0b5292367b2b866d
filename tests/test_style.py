"""The code itself: formatted, linted, typed, and with imports that point downwards."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parent.parent

# From the top of the house to its foundation; a module imports from its own line or below.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["report"],
    ["tune"],
    ["scaling"],
    ["compare", "tuning"],
    ["bench"],
    ["budget"],
    ["trace"],
    ["results", "verify", "limits", "sampling", "pingpong"],
    ["collective"],
    ["choice"],
    ["request"],
    ["native"],
    ["executor", "communicator", "operations"],
    ["node_rounds"],
    ["node_memory"],
    ["agreement"],
    ["probe"],
    ["machine"],
    ["noise", "starts", "stop"],
    ["clock"],
    ["outliers"],
    ["clusters"],
    ["links"],
    ["stats"],
    ["explain", "tour", "built_in"],
    ["decision_file"],
    ["arrays", "simulate", "cost", "decision"],
    ["algorithms"],
    ["node_tasks"],
    ["timeline", "checkup", "pairs", "topology_file", "switches"],
    ["topology", "schedule", "options", "launcher"],
    [
        "chunks",
        "units",
        "formula",
        "reductions",
        "fields",
        "hostfile",
        "hosts",
        "signals",
        "slurm",
        "switch_files",
        "toml",
        "texts",
    ],
    ["errors"],
]
NEEDS_MPI = {"bench", "collective", "native", "executor", "communicator", "agreement"}
NEEDS_MPI |= {"trace", "operations", "machine", "noise", "clock", "starts", "limits", "sampling"}
NEEDS_MPI |= {
    "choice",
    "request",
    "pingpong",
    "node_memory",
    "node_rounds",
    "probe",
    "stop",
    "tune",
}


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=["lint", "format", "types"],
)
def test_tools_have_nothing_to_say(command):
    finished = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def modules():
    for path in sorted((ROOT / "mpiring").rglob("*.py")):
        name = path.relative_to(ROOT / "mpiring").parts[0].removesuffix(".py")
        if name != "__init__":
            yield name, path


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_module_has_its_place():
    placed = [name for layer in LAYERS for name in layer]
    assert sorted(placed) == sorted({name for name, _ in modules()})


def test_imports_point_downwards():
    level = {name: index for index, layer in enumerate(LAYERS) for name in layer}
    upwards = [
        f"{path.name} imports {module}"
        for name, path in modules()
        for module in imported(path)
        if module.startswith("mpiring.")
        and module.split(".")[1] in level
        and level[module.split(".")[1]] < level[name]
    ]
    assert upwards == []


def test_only_the_upper_floors_touch_mpi():
    touching = {
        name for name, path in modules() if any(m.startswith("mpi4py") for m in imported(path))
    }
    assert touching - {"cli"} == NEEDS_MPI - {"node_rounds"}


def test_the_rest_imports_where_no_mpi_is_installed():
    names = sorted({name for name, _ in modules()} - NEEDS_MPI - {"__main__"})
    program = (
        "import sys; sys.modules['mpi4py'] = None\n"
        "import mpiring, mpiring.cli.bench, mpiring.report.files, mpiring.report.progress\n"
        f"for name in {names}: __import__('mpiring.' + name)\n"
        "assert mpiring.ALGORITHMS['ring'].scheduled(mpiring.topology.flat(4)).rounds(0)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
