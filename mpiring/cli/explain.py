"""`mpiring explain`: what an algorithm does, step by step."""

import click

from mpiring.algorithms import find
from mpiring.cli.choices import FILE, SCHEDULING, algorithm_options, check_heeded, ranks_options
from mpiring.errors import UsageError
from mpiring.options import Options
from mpiring.topology import Topology
from mpiring.units import counted

MOST_CELLS = 1 << 20
"""Chunks of all ranks in all rounds: more than anybody would look at."""


@click.command()
@click.argument("name", metavar="ALGORITHM")
@ranks_options
@algorithm_options(*SCHEDULING)
@click.option(
    "--segments",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Send each chunk in so many segments.",
)
@click.option("--round", "number", metavar="K", type=click.IntRange(min=1), help="This round only.")
@click.option("--svg", type=FILE, help="Draw it: ranks are lanes, time runs to the right.")
@click.option("--html", type=FILE, help="A page that steps forward and back.")
def explain(
    name: str,
    topology: Topology,
    options: Options,
    segments: int,
    number: int | None,
    svg: str | None,
    html: str | None,
) -> None:
    """Show what an algorithm does: who sends what to whom, and what each rank then holds.

    \b
    mpiring explain ring -n 4
    mpiring explain tree -n 8 --nodes 2 --svg tree.svg
    mpiring explain double_binary_tree -n 6 --html page.html

    The buffer is cut into chunks a, b, c, ...; a0+a2 is the sum of what ranks 0 and 2 brought to
    chunk a. In a round each rank sends and receives what is listed, all at once. Needs no MPI.
    """
    from mpiring.explain import frames
    from mpiring.report.files import check_apart, save
    from mpiring.report.page import page
    from mpiring.report.picture import picture
    from mpiring.report.steps import steps_text

    algorithm = find(name)
    if algorithm.schedule is None:
        raise UsageError(f"{name} has no steps to show: {algorithm.summary}")
    check_heeded(options, (name,))
    schedule = algorithm.schedule(topology, options)
    if algorithm.cut.number(segments) != segments:
        raise UsageError(f"{name} has two segments in flight: --segments has to be even")
    schedule = algorithm.cut(schedule, segments)
    cells = schedule.size * schedule.chunks
    if cells > MOST_CELLS or cells * sum(1 for _ in schedule.rounds(0)) > MOST_CELLS:
        raise UsageError(
            f"{schedule.size} ranks with {schedule.chunks} chunks are too many to show;"
            " mpiring traffic counts any number"
        )
    check_apart(svg, html)
    moments = list(frames(schedule))
    if number and number >= len(moments):
        raise UsageError(f"there is no round {number}: {name} has {len(moments) - 1}")
    nodes = f" in {counted(len(topology.nodes), 'node')}" if len(topology.nodes) > 1 else ""
    title = f"{name} on {counted(topology.size, 'rank')}{nodes}"
    shown = moments[number - 1 : number + 1] if number else moments
    if svg:
        save(svg, picture(shown, title, first=number - 1 if number else 0))
    if html:
        save(html, page(title, schedule, moments, number))
    for path in filter(None, (svg, html)):
        click.echo(f"{path} is drawn")
    if not svg and not html:
        for line in steps_text(title, schedule, moments, number):
            click.echo(line)
