"""`mpiring scaling`: results on growing numbers of ranks, side by side."""

from typing import TYPE_CHECKING

import click

from mpiring.cli.choices import FILE, algorithms_option, parsed
from mpiring.cli.finite import Finite
from mpiring.errors import UsageError
from mpiring.units import differing, format_size, parse_sizes

if TYPE_CHECKING:
    from mpiring.results import Point
    from mpiring.scaling import Curve


@click.command()
@click.argument("files", type=FILE, metavar="RESULT.json...", nargs=-1, required=True)
@algorithms_option("Only these, with commas.  [default: all that were measured]", default=None)
@click.option(
    "-s",
    "--sizes",
    metavar="SIZES",
    callback=parsed(parse_sizes),
    help="Only these, as for mpiring bench.  [default: all that were measured]",
)
@click.option(
    "--efficiency",
    type=Finite(min=0, max=1, min_open=True),
    default=0.5,
    show_default=True,
    help="What surely lies below this does not scale.",
)
@click.option("-o", "--output", type=FILE, help="A picture as well: .png, .svg or .pdf.")
@click.pass_context
def scaling(
    ctx: click.Context,
    files: tuple[str, ...],
    algorithms: tuple[str, ...] | None,
    sizes: tuple[int, ...] | None,
    efficiency: float,
    output: str | None,
) -> None:
    """Show how time and bus bandwidth change with ranks and nodes, from result files of mpiring
    bench.

    For each size and algorithm: the median, busbw, and the efficiency, which is busbw over that of
    the smallest file with more than one rank, with the interval that holds it with 95 % confidence.
    An algorithm stops scaling where all of that interval is below --efficiency, there and on all
    larger numbers of ranks. Points whose check failed are named and left out, and the exit status
    is 1. Needs no MPI; pictures need matplotlib.
    """
    from mpiring.compare import differences
    from mpiring.report.curves import plot
    from mpiring.report.files import read
    from mpiring.report.plain import render
    from mpiring.report.scaled import scaling_lines, scaling_table
    from mpiring.results import DIFFERENCE
    from mpiring.scaling import EXPECTED, curves, lacking, smallest

    def asked(one: "Curve | Point") -> bool:
        return (algorithms is None or one.algorithm in algorithms) and (
            sizes is None or one.nbytes in sizes
        )

    results = [(file, read(file)) for file in dict.fromkeys(files)]
    found = list(filter(asked, curves(results)))
    wrong = [(file, point) for file, result in results for point in filter(asked, result.wrong)]
    if not found and not wrong:
        raise UsageError("no file has a time of these algorithms at these sizes")
    first = results[0][1]
    for file, result in results:
        for name, was, is_now in differences(first, result):
            if name not in EXPECTED:
                click.echo(f"{file}: {name}: {' -> '.join(differing(was, is_now, DIFFERENCE))}")
        if not result.is_complete:
            click.echo(f"{file}: interrupted, so it lacks points")
    for file, point in wrong:
        said = point.note or "wrong data"
        click.echo(f"{file}: {point.algorithm} at {format_size(point.nbytes)}: {said}")
    told: list[Curve | Point] = [*found, *(point for _, point in wrong)]
    for name in sorted({*(algorithms or ())} - {one.algorithm for one in told}):
        click.echo(f"no file has a time of {name}{' at these sizes' if sizes else ''}")
    for nbytes in sorted({*(sizes or ())} - {one.nbytes for one in told}):
        of = " of these algorithms" if algorithms else ""
        click.echo(f"no file has a time{of} at {format_size(nbytes)}")
    if found:
        click.echo(render(scaling_table(found)))
        for line in scaling_lines(found, efficiency):
            click.echo(line)
        file, base = smallest(results) or ("", None)
        for curve in lacking(found, base) if base else ():
            at = f"{curve.algorithm} at {format_size(curve.nbytes)}"
            click.echo(f"{file}, the smallest, has no time of {at} to compare with")
    if found and output:
        plot(found, efficiency, output)
        click.echo(f"{output} is drawn")
    ctx.exit(1 if wrong else 0)
