"""`mpiring plot`: results as a picture."""

import click

from mpiring.cli.choices import FILE


@click.command()
@click.argument("files", type=FILE, metavar="RESULT.json...", nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, required=True, help="The picture: .png, .svg or .pdf.")
def plot(files: tuple[str, ...], output: str) -> None:
    """Draw time and bus bandwidth over size, from result files of mpiring bench.

    Lines are medians, bands their 95 % intervals; native is black, the machine's limit grey. Of
    several files, each has dashes of its own. A mark stands where another line becomes the fastest.
    Needs matplotlib, and no MPI.
    """
    from pathlib import Path

    from mpiring.report.files import read
    from mpiring.report.plot import plot as draw

    stems = [Path(file).stem for file in files]
    named = zip(files, stems, strict=True)
    labelled = [(file if stems.count(stem) > 1 else stem, read(file)) for file, stem in named]
    draw(labelled, output)
    click.echo(f"{output} is drawn")
