"""What may be written where: a new file takes the place of an old one of its kind alone."""

import json
import os

import pytest
from command import mpiring
from machines import blocks, links
from test_results import result

from mpiring.errors import UsageError
from mpiring.report.files import LEVELS, LINKS, RESULT, TRACE, check_writable
from mpiring.report.formats import to_csv
from mpiring.timeline import to_trace
from mpiring.topology import flat
from mpiring.topology_file import to_toml

pytestmark = pytest.mark.pure

NODES = blocks(4, 2)
WRITTEN = {
    RESULT: [result().to_json(), to_csv(result())],
    LEVELS: [to_toml(flat(4))],
    LINKS: [json.dumps(links(4, [NODES], [0.5, 30], [5, 0.117]).document(), indent=1)],
    TRACE: [to_trace([], 0.0)],
}


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.called)
def test_only_an_empty_file_and_one_of_its_kind_may_be_replaced(tmp_path, kind):
    path = tmp_path / f"f.{(kind.endings or ['json'])[0]}"
    own = WRITTEN[kind]
    others = [text for texts in WRITTEN.values() for text in texts if text not in own]
    for text in ["", *own]:
        path.write_text(text)
        check_writable(str(path), kind)
    for text in ["{}", "\n", *others]:
        path.write_text(text)
        with pytest.raises(UsageError, match=f"no {kind.called}: not overwritten"):
            check_writable(str(path), kind)


def test_what_holds_nothing_may_be_written_to(tmp_path):
    """Nor is it read: nobody writes to the pipe."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", tmp_path / "none"):
        check_writable(str(path), TRACE)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize(
    "command",
    [
        ["bench", "-s", "8", "-a", "ring", "--trace"],
        ["topology", "measure", "--matrix"],
    ],
    ids=lambda command: command[0],
)
def test_an_earlier_result_is_no_other_output(tmp_path, command):
    before = tmp_path / "before.json"
    before.write_text(result().to_json())
    finished = mpiring(2, *command, before)
    assert finished.status == 2
    assert finished.stderr.count("before.json: is there already, and no ") == 1
    assert before.read_text() == result().to_json()
