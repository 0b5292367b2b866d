"""`mpiring compare`: two results, point by point."""

import click

from mpiring.cli.choices import FILE
from mpiring.cli.finite import Finite


@click.command()
@click.argument("old", type=FILE, metavar="OLD.json")
@click.argument("new", type=FILE, metavar="NEW.json")
@click.option(
    "--band",
    type=Finite(min=0, max=1),
    default=0.05,
    show_default=True,
    help="Differences up to this share are a tie.",
)
@click.option(
    "--fail-below",
    type=Finite(min=0, min_open=True),
    metavar="FACTOR",
    help="Leave with 3 if some point is less than FACTOR times as fast as before, with its whole"
    " interval, or is wrong or missing in the new result.",
)
@click.option("--force", is_flag=True, help="Compare what differs in ranks, dtype, op or place.")
@click.pass_context
def compare(
    ctx: click.Context, old: str, new: str, band: float, fail_below: float | None, force: bool
) -> None:
    """Compare two result files of mpiring bench, point by point.

    For each algorithm and size that both hold: how many times as fast the new one is, the interval
    that holds this with 95 % confidence (from a bootstrap of the samples), and a verdict. Faster
    and slower need the whole interval beyond the band; it is unknown where the interval reaches
    beyond the band on both sides, where one side has fewer than 6 samples, or where a time is below
    its noise floor. Needs no MPI.

    The interval holds the noise within each run, and nothing of what changes from run to run. So
    before you believe a difference, repeat both sides in turn, and see whether it stays.
    """
    from mpiring import compare as comparing
    from mpiring.report.compared import compared_table, missing_lines, unclear
    from mpiring.report.files import read
    from mpiring.report.plain import render
    from mpiring.results import DIFFERENCE
    from mpiring.units import counted, differing

    before, after = read(old), read(new)
    comparison = comparing.compare(before, after, band, force)
    for name, was, is_now in comparing.differences(before, after):
        click.echo(f"{name}: {' -> '.join(differing(was, is_now, DIFFERENCE))}")
    if comparison.points:
        click.echo(render(compared_table(comparison.points)))
    for line in unclear(comparison.points):
        click.echo(line)
    for line in missing_lines(comparison):
        click.echo(line)
    if fail_below is not None:
        slower, lost = comparison.below(fail_below), comparison.lost
        click.echo(
            f"below {fail_below}x with the whole interval: {len(slower)} of"
            f" {counted(len(comparison.points), 'point')}; lost or wrong: {len(lost)}"
        )
        if slower:
            click.echo("(within these two runs: repeat both sides in turn to see whether it stays)")
        ctx.exit(3 if slower or lost else 0)
