"""`mpiring plot`: results as a picture."""

import click


@click.command()
@click.argument("files", metavar="RESULT.json...", nargs=-1, required=True)
@click.option(
    "-o", "--output", metavar="FILE", required=True, help="The picture: .png, .svg or .pdf."
)
def plot(files: tuple[str, ...], output: str) -> None:
    """Draw time and bus bandwidth over size, from result files of mpiring bench.

    Lines are medians, bands their 95 % intervals; native is black, the machine's limit grey. A mark
    stands where another algorithm becomes the fastest. Needs matplotlib, and no MPI.
    """
    from pathlib import Path

    from mpiring.report.files import read
    from mpiring.report.plot import plot as draw

    draw([(Path(file).stem, read(file)) for file in files], output)
    click.echo(f"{output} is drawn")
