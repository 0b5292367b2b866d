"""The steps of a schedule as a picture: ranks are lanes, time runs to the right.

A rank's buffer is a row of cells, one for each chunk, the darker the more contributions it holds; a
cell that is complete has a frame. Messages stand between two moments: full arrows add to what the
receiver holds, dashed ones replace it.
"""

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from mpiring.explain import Frame, Message
from mpiring.report.steps import chunk_name, chunk_names, held_text

CELL, HEIGHT, LANE = 20, 22, 44
GAP = range(64, 120)
"""Pixels between two moments, for the messages."""
LEFT, TOP = 50, 34
NARROWEST, WIDEST = 520, 1040
"""Pixels: a row of moments that would be longer is broken, as a line of text is."""

LIGHT, DARK = (228, 236, 244), (8, 64, 129)
STYLE = """
text { font: 12px sans-serif; fill: #222 }
.title { font-weight: bold }
.chunk { text-anchor: middle; pointer-events: none }
.complete { stroke: #d95f02; stroke-width: 2 }
.message { stroke: #444; stroke-width: 1.2 }
.copy { stroke-dasharray: 5 3 }
.letter { font-size: 11px; paint-order: stroke; stroke: #fff; stroke-width: 3px }
"""


def picture(moments: Sequence[Frame], title: str, first: int = 0, heading: bool = True) -> str:
    """Return the moments side by side as SVG; the first of them comes after round `first`."""
    ranks, chunks = len(moments[0].held), len(moments[0].held[0])
    cell = max(4, min(CELL, 560 // chunks))
    room = (WIDEST - LEFT - chunks * cell) // max(1, len(moments) - 1) - chunks * cell
    gap = min(max(room, GAP.start), GAP.stop)
    stride = chunks * cell + gap
    in_a_row = max(1, (WIDEST - LEFT - chunks * cell) // stride)  # after the one at its left end
    starts = range(0, max(1, len(moments) - 1), in_a_row)
    row_height = ranks * LANE + 40
    width = max(NARROWEST, LEFT + min(in_a_row, len(moments) - 1) * stride + chunks * cell + 10)
    height = TOP + row_height * len(starts) + 20

    svg = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=str(width),
        height=str(height),
    )
    _add(svg, "title", title)
    _add(svg, "style", STYLE)
    _add(svg, "rect", width=width, height=height, fill="#fff")  # whatever a page has behind it
    head = f"head{first}"  # its own in each picture, since a page may show several
    if len(moments) > 1:
        _arrow_head(svg, head)
    if heading:
        _add(svg, "text", title, x=LEFT, y=20, **{"class": "title"})
    for row, start in enumerate(starts):
        group = _add(svg, "g", transform=f"translate({LEFT} {TOP + row * row_height})")
        for rank in range(ranks):
            _add(group, "text", f"rank {rank}", x=8 - LEFT, y=_lane(rank) + 15)
        for column, frame in enumerate(moments[start : start + in_a_row + 1]):
            left, number = column * stride, first + start + column
            _add(group, "text", f"round {number}" if number else "at first", x=left, y=14)
            if column:
                _messages(group, frame.messages, left - gap, left, head)
            for rank in range(ranks):
                _buffer(group, frame, rank, left, cell)
    _add(
        svg,
        "text",
        "darker: more contributions. Framed: complete. Full arrow: added, dashed: copied.",
        x=LEFT,
        y=height - 12,
    )
    ElementTree.indent(svg)
    return ElementTree.tostring(svg, encoding="unicode")


def _arrow_head(svg: ElementTree.Element, name: str) -> None:
    size = {"viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerWidth": 7, "markerHeight": 7}
    marker = _add(_add(svg, "defs"), "marker", id=name, orient="auto")
    for key, value in size.items():
        marker.set(key, str(value))
    _add(marker, "path", d="M0 0L8 4L0 8z", fill="#444")


def _lane(rank: int) -> int:
    return 24 + rank * LANE


def _buffer(group: ElementTree.Element, frame: Frame, rank: int, left: int, cell: int) -> None:
    size = len(frame.held)
    complete = set(frame.complete(rank))
    for chunk, held in enumerate(frame.held[rank]):
        shade = (len(held) - 1) / max(1, size - 1)
        x, y = left + chunk * cell, _lane(rank)
        box = _add(group, "rect", x=x, y=y, width=cell - 1, height=HEIGHT, fill=_blue(shade))
        if chunk in complete:
            box.set("class", "complete")
        _add(box, "title", held_text(chunk, held))
        if cell >= 14:
            ink = "#fff" if shade > 0.45 else "#222"
            style = f"fill: {ink}"
            _add(
                group,
                "text",
                chunk_name(chunk),
                x=x + cell / 2,
                y=y + 15,
                style=style,
                **{"class": "chunk"},
            )


def _messages(
    group: ElementTree.Element, messages: Sequence[Message], left: int, right: int, head: str
) -> None:
    drawn: Counter[int] = Counter()
    for sender, receiver, first, chunks, reduce in messages:
        x1, x2 = left + 1, right - 3
        y1, y2 = _lane(sender) + HEIGHT / 2, _lane(receiver) + HEIGHT / 2
        kind = "message" if reduce else "message copy"
        line = _add(group, "line", x1=x1, y1=y1, x2=x2, y2=y2)
        line.set("class", kind)
        line.set("marker-end", f"url(#{head})")
        # Letters stand near the sender, so near that those of the next lane do not come in their
        # way; further ones of the same sender each a little further on.
        along = min(0.14, 14 / max(1, abs(y2 - y1))) + 0.13 * min(4, drawn[sender])
        drawn[sender] += 1
        x, y = x1 + (x2 - x1) * along, y1 + (y2 - y1) * along + 3
        _add(group, "text", chunk_names(first, chunks), x=x, y=y, **{"class": "letter"})


def _blue(shade: float) -> str:
    mixed = (round(a + (b - a) * shade) for a, b in zip(LIGHT, DARK, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _add(
    parent: ElementTree.Element, tag: str, text: str | None = None, **attributes: object
) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, tag)
    for name, value in attributes.items():
        element.set(name, f"{value:g}" if isinstance(value, float) else str(value))
    element.text = text
    return element
