"""What the documents show is what the program does."""

from pathlib import Path

import pytest
from shapes import moments

from mpiring.algorithms import ALGORITHMS
from mpiring.report.picture import picture

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parent.parent
STAR = r"\*"


def test_the_readmes_table_is_the_registry():
    lines = (ROOT / "README.md").read_text().splitlines()
    shown = [line for line in lines if line.startswith("| [`")]
    assert shown == [
        f"| [`{a.name}`](mpiring/algorithms/{a.name}.py){STAR * a.commutative} | {a.summary}"
        f" | {a.rounds} | {a.bytes_sent} |"
        for a in ALGORITHMS.values()
        if a.schedule
    ]
    for algorithm in ALGORITHMS.values():
        assert not algorithm.schedule or (ROOT / f"mpiring/algorithms/{algorithm.name}.py").exists()


@pytest.mark.parametrize(
    ("name", "size", "nodes"),
    [("naive", 4, 1), ("reduce_scatter", 4, 1), ("tree", 8, 2), ("ring", 4, 1)],
)
def test_the_pictures_are_those_that_explain_draws(name, size, nodes):
    _, shown = moments(name, size, nodes)
    title = f"{name} on {size} ranks{' in 2 nodes' if nodes > 1 else ''}"
    assert (ROOT / f"docs/{name}.svg").read_text() == picture(shown, title)
