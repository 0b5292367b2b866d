"""The steps of a schedule as one page that steps forward and back, with nothing beside it."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from mpiring.explain import Frame
from mpiring.report.picture import picture
from mpiring.report.steps import closing, cut_text, step_table
from mpiring.schedule import Schedule


def page(title: str, schedule: Schedule, moments: Sequence[Frame], only: int | None = None) -> str:
    """Return the page as HTML: a section for the beginning and each step, or `only` one of them."""
    steps = len(moments) - 1
    beginning = picture(moments[:1], "at first", heading=False)
    sections = [] if only else [_section("at first", beginning, "")]
    for number in [only] if only else range(1, steps + 1):
        before, after = moments[number - 1 : number + 1]
        name = f"round {number} of {steps}"
        drawn = picture((before, after), name, first=number - 1, heading=False)
        sections.append(_section(name, drawn, step_table(before, after)))
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title),
        cut=escape(cut_text(schedule.chunks)),
        sections="\n".join(sections),
        closing=escape(closing(schedule, steps)),
    )


def _section(name: str, drawn: str, table: str) -> str:
    text = f"<pre>{escape(table)}</pre>" if table else ""
    return f'<section data-name="{escape(name)}">\n{drawn}\n{text}</section>'
