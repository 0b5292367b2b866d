"""`mpiring topology`: which ranks are close to each other."""

from functools import partial
from typing import TYPE_CHECKING

import click

from mpiring.cli.choices import FILE, parsed, verbosity_options
from mpiring.cli.finite import Finite
from mpiring.units import parse_size

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiring.links import Links
    from mpiring.machine import Machine
    from mpiring.pingpong import Probing
    from mpiring.report.progress import Verbosity
    from mpiring.topology import Topology


@click.group()
def topology() -> None:
    """Say which ranks are close to each other, and write it to a file.

    \b
    mpirun -n 8 mpiring topology show               levels, groups, hosts, cores and ranks
    mpirun -n 8 mpiring topology write nodes.toml   a file for --topology
    mpirun -n 8 mpiring topology measure            what the links between ranks give
    mpiring topology plot links.json -o links.png   a picture of that
    """


def _known(comm: "MPI.Intracomm", path: str | None) -> "tuple[Topology, Machine]":
    """Return what the file says, or else what is detected, and the machine. Collective."""
    from mpiring.cli.job import survey_job
    from mpiring.detection import detect_inside

    machine, known = survey_job(comm, path)
    return known if path else detect_inside(comm, known), machine


@topology.command()
@click.option("--topology", "path", type=FILE, help="A file, instead of what is detected.")
def show(path: str | None) -> None:
    """Show the levels as a tree: groups, hosts, cores and ranks."""
    from mpiring.cli.job import job
    from mpiring.report.levels import lines

    with job() as comm:
        known, machine = _known(comm, path)
        if comm.rank == 0:
            for line in lines(known, machine.hosts, machine.affinity):
                click.echo(line)
            if known.inside_nodes and not path:
                click.echo("Algorithms heed what is inside the nodes if a --topology file has it.")


@topology.command()
@click.argument("output", type=FILE, metavar="FILE.toml")
@click.option("--topology", "path", type=FILE, help="A file, instead of what is detected.")
def write(output: str, path: str | None) -> None:
    """Write a file that `--topology` reads back as it is, to keep or to edit."""
    from mpiring.agreement import on_rank_zero
    from mpiring.cli.job import job
    from mpiring.report.files import LEVELS, check_writable, save
    from mpiring.topology_file import to_toml

    with job() as comm:
        on_rank_zero(comm, lambda: check_writable(output, LEVELS))
        known, _ = _known(comm, path)
        on_rank_zero(comm, lambda: save(output, to_toml(known)))
        if comm.rank == 0:
            click.echo(f"{output} is written")


@topology.command()
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE.toml",
    help="Write the levels and the tour, for --topology.",
)
@click.option(
    "--matrix",
    type=FILE,
    metavar="FILE.json",
    help="Write what each pair gave, for mpiring topology plot.",
)
@click.option(
    "-s",
    "--size",
    "nbytes",
    metavar="SIZE",
    callback=parsed(parse_size),
    default="4MiB",
    show_default=True,
    help="Bytes of the messages that tell the rate.",
)
@click.option(
    "--max-pairs",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Of more pairs than that, measure a sample, of each two nodes."
    "  [default: 500, or as many as each two nodes need]",
)
@click.option(
    "--time-limit",
    type=Finite(min=0, min_open=True),
    metavar="SECONDS",
    default=0.1,
    show_default=True,
    help="Sample no longer for one figure of a pair, once there are 6 messages.",
)
@click.option(
    "--one-by-one",
    is_flag=True,
    help="One pair at a time, where nodes share more than the program can know: cores, an uplink.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
    help="What standard output gets.",
)
@verbosity_options
def measure(
    output: str | None,
    matrix: str | None,
    nbytes: int,
    max_pairs: int | None,
    time_limit: float,
    one_by_one: bool,
    form: str,
    verbosity: "Verbosity",
) -> None:
    """Measure the links between ranks, and find the levels of the machine in that.

    Of each pair, the latency is half the round trip of 8 bytes, and the rate that of long messages
    in each direction, in GB/s (10^9 B/s); both are medians. Hostnames play no part in what levels
    are found: links of the next level are at least 1.5 times as bad. Below the table stands what is
    more than 20 % worse than its level: a rank, if all of its links are, or else a pair.
    """
    from mpiring.cli.job import job
    from mpiring.pingpong import Probing

    with job() as comm:
        probing = Probing(nbytes, time_limit, max_pairs, one_by_one)
        _measure(comm, probing, output, matrix, form, verbosity)


def _measure(
    comm: "MPI.Intracomm",
    probing: "Probing",
    output: str | None,
    matrix: str | None,
    form: str,
    verbosity: "Verbosity",
) -> None:
    """Check everything that can be checked beforehand, then measure, and say what was found."""
    from mpiring.agreement import on_rank_zero
    from mpiring.communicator import private
    from mpiring.links import Links
    from mpiring.pingpong import arrange, measure
    from mpiring.report.files import LEVELS, LINKS, check_writable
    from mpiring.report.progress import progress

    known, machine = _known(comm, None)
    rounds = arrange(machine, probing)
    machine.check_memory(probing.nbytes, probing.nbytes)
    for path, kind in ((output, LEVELS), (matrix, LINKS)):
        if path:
            on_rank_zero(comm, partial(check_writable, path, kind))
    speaks = comm.rank == 0
    steps = len(rounds.latency) + len(rounds.rate)
    with progress(steps, verbosity if speaks else "quiet", "rounds") as reporter:
        links = measure(private(comm).comm, rounds, probing, reporter.doing, reporter.done)
    found = Links(machine.hosts, machine.nodes, probing.nbytes, links, _environment())
    said = on_rank_zero(comm, lambda: _report(found, known, output, matrix, form))
    if speaks:
        click.echo(said)


def _environment() -> dict[str, str]:
    """Return what there is to say of the run, beside hosts and nodes."""
    from datetime import UTC, datetime

    from mpiring import __version__
    from mpiring.implementation import mpi_library

    started = datetime.now(UTC).isoformat(timespec="seconds")
    return {"mpiring": __version__, "mpi_library": mpi_library(), "started": started}


def _report(
    links: "Links", known: "Topology", output: str | None, matrix: str | None, form: str
) -> str:
    """Find the levels, write the files, and return what there is to say."""
    import json

    from mpiring.clusters import find_levels, to_topology
    from mpiring.outliers import find_outliers
    from mpiring.report.files import save
    from mpiring.report.links import analysis, header, level_table, link_names, outlier_lines
    from mpiring.topology_file import to_toml

    levels = find_levels(links)
    topology = to_topology(links, levels, known)
    names, outliers = link_names(levels, topology), find_outliers(levels)
    document = links.document() | analysis(levels, names, outliers)
    text = json.dumps(document, indent=1, allow_nan=False)
    if output:
        save(output, to_toml(topology))
    if matrix:
        save(matrix, text + "\n")
    if form == "json":
        return text
    table = level_table(levels, names) if levels else "1 rank: there is no link to measure"
    return "\n".join((header(links), table, *outlier_lines(outliers, links.hosts)))


@topology.command()
@click.argument("file", type=FILE, metavar="LINKS.json")
@click.option("-o", "--output", type=FILE, required=True, help="The picture: .png, .svg or .pdf.")
def plot(file: str, output: str) -> None:
    """Draw latency and rate of each pair of ranks, from a file of mpiring topology measure.

    The darker a field, the worse the link. Needs matplotlib, and no MPI.
    """
    from mpiring.links import parse
    from mpiring.report.heatmap import plot as draw
    from mpiring.texts import read_text

    draw(parse(read_text(file), file), output)
    click.echo(f"{output} is drawn")
