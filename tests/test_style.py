"""The code itself: formatted, linted, typed, and with imports that point downwards."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parent.parent

DESIGN = (ROOT / "docs" / "design.md").read_text().partition("\n## Layers\n")[2]


def layers():
    """Return the layers that the design names, from the top of the house to its foundation."""
    block = "".join(re.findall("^    (.*\n)", DESIGN, re.MULTILINE))
    return [re.findall(r"\w+", layer) for layer in block.split(">")]


# A module imports from its own line or below.
LAYERS = [["__main__"], *layers()]
TOUCH_MPI = set(
    re.findall(r"`(\w+)`", DESIGN[DESIGN.index("Only `") : DESIGN.index("touch mpi4py")])
)
NEEDS_MPI = TOUCH_MPI | {"node_rounds"}  # which imports node_memory


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
    assert touching - {"cli"} == TOUCH_MPI


RUN_JOBS = ("sweep.py", "search.py")
"""Modules of commands that are imported once a job has begun."""


def test_the_rest_imports_where_no_mpi_is_installed():
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for name, path in modules()
        if name not in NEEDS_MPI | {"__main__"} and path.name not in RUN_JOBS
    ]
    assert {"mpiring.report.plain", "mpiring.cli", "mpiring.algorithms.ring"} < set(names)
    program = (
        "import sys; sys.modules['mpi4py'] = None\n"
        f"for name in {names}: __import__(name)\n"
        "import mpiring\n"
        "assert mpiring.ALGORITHMS['ring'].scheduled(mpiring.topology.flat(4)).rounds(0)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
