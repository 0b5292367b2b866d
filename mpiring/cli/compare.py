"""`mpiring compare`: two results, point by point."""

import click


@click.command()
@click.argument("old", metavar="OLD.json")
@click.argument("new", metavar="NEW.json")
@click.option(
    "--band",
    type=click.FloatRange(min=0, max=1),
    default=0.05,
    show_default=True,
    help="Differences up to this share are a tie.",
)
@click.option(
    "--fail-below",
    type=click.FloatRange(min=0, min_open=True),
    metavar="FACTOR",
    help="Leave with 3 if some point is surely less than FACTOR times as fast as before.",
)
@click.option("--force", is_flag=True, help="Compare what differs in ranks, dtype, op or place.")
@click.pass_context
def compare(
    ctx: click.Context, old: str, new: str, band: float, fail_below: float | None, force: bool
) -> None:
    """Compare two result files of mpiring bench, point by point.

    For each algorithm and size that both hold: how many times as fast the new one is, the interval
    that holds this with 95 % confidence (from a bootstrap of the samples), and a verdict. A verdict
    other than tie needs the whole interval beyond the band. Needs no MPI.
    """
    from mpiring import compare as comparing
    from mpiring.report.files import read
    from mpiring.report.table import compared_table, render

    before, after = read(old), read(new)
    compared = comparing.compare(before, after, band, force)
    for name, was, is_now in comparing.differences(before.environment, after.environment):
        click.echo(f"{name}: {was} -> {is_now}")
    click.echo(render(compared_table(compared)))
    only = len({(p.algorithm, p.nbytes) for p in (*before.points, *after.points)}) - len(compared)
    if only:
        click.echo(f"{only} points were measured in one of the two alone")
    if fail_below is not None:
        slower = comparing.below(compared, fail_below)
        click.echo(f"{len(slower)} of {len(compared)} points are surely below {fail_below}x")
        ctx.exit(3 if slower else 0)
