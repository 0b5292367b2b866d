"""`mpiring hostfile`: where a launcher would put the ranks, and a hostfile for the other one."""

import click

from mpiring.cli.choices import FILE
from mpiring.errors import UsageError
from mpiring.hostfile import DIALECTS, Host, check_ranks, guess, in_blocks, nodes, parse, slots_of
from mpiring.hostfile import convert as converted
from mpiring.launcher import speaks
from mpiring.units import counted

DIALECT = click.Choice(tuple(DIALECTS))


@click.group()
def hostfile() -> None:
    """Check hostfiles of MPICH and Open MPI, and convert them. Needs no MPI."""


@hostfile.command()
@click.argument("file", type=FILE)
@click.option(
    "--for",
    "launcher",
    type=DIALECT,
    help="The launcher that is to read it; Intel MPI goes by mpich.  [default: guessed from FILE]",
)
@click.option(
    "-n",
    "--ranks",
    type=click.IntRange(min=1),
    help="Number of ranks.  [default: one for each slot]",
)
@click.option(
    "--by",
    type=click.Choice(("slot", "node")),
    help="Fill a host before the next one, or give each one in turn.  [default: both]",
)
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    help="Cores of a host that FILE gives no slots, which Open MPI counts.",
)
def check(
    file: str, launcher: str | None, ranks: int | None, by: str | None, cores: int | None
) -> None:
    """Show the host of each rank, and what means something else to the other launcher.

    \b
    mpiring hostfile check hosts
    mpiring hostfile check hosts --for openmpi -n 8 --by node

    By slot is what both do by default; by node is `mpiexec -ppn 1` of MPICH and `mpirun --map-by
    node` of Open MPI. What the launcher would refuse, or take for something else, is said as
    FILE:LINE: REASON, and the exit status is 2; what only the other one would, with status 0.
    """
    from mpiring.texts import read_text

    read = parse(read_text(file, exact=True), file)
    name, why = (launcher, "--for") if launcher else guess(read)
    chosen = DIALECTS[name]
    if cores and "cores" not in chosen.traps:
        raise UsageError(f"--cores changes nothing: {chosen.name} takes a host without slots for 1")
    try:
        hosts = nodes(read, chosen, cores)
    except UsageError as error:
        raise UsageError(f"{error} ({why})") from None
    slots = slots_of(hosts)
    ranks = ranks or slots
    check_ranks(read, chosen, hosts, ranks)
    columns: dict[str, list[Host]] = {}
    if by != "node":
        columns["by slot"] = in_blocks(hosts, ranks)
    if by != "slot":
        columns["by node"] = chosen.in_turn(hosts, ranks) or []
    lost = f"{file}: {chosen.name} finds no place for {counted(ranks, 'rank')} by node"
    if not any(columns.values()):
        raise UsageError(lost)
    what = f"{counted(slots, 'slot')} on {counted(len(hosts), 'host')}"
    click.echo(f"{file} by {chosen.name}'s rules ({why}): {what}")
    click.echo(_table({title: placed for title, placed in columns.items() if placed}))
    reasons = [] if all(columns.values()) else [lost]
    for other in DIALECTS.values():
        reasons += [] if other is chosen else other.faults(read)
    for reason in reasons:
        _remark(reason)


@hostfile.command()
@click.argument("file", type=FILE)
@click.option("--to", "target", type=DIALECT, required=True, help="The launcher to write for.")
@click.option(
    "--from",
    "source",
    type=DIALECT,
    help="The launcher that FILE was written for.  [default: guessed from the file]",
)
@click.option(
    "-o", "--output", type=FILE, metavar="OUT", help="A file to write, instead of standard output."
)
def convert(file: str, target: str, source: str | None, output: str | None) -> None:
    """Write a hostfile that makes another launcher do the same.

    \b
    mpiring hostfile convert hosts --to openmpi -o hosts.openmpi
    mpiring hostfile convert hosts --to mpich --from mpich

    For the same launcher it leaves the hosts as they are and puts right what is only written wrong:
    line ends, a byte order mark, ranges such as n[1-10]. Comments are left out. What the other one
    cannot be told is refused as FILE:LINE: REASON, with exit status 2.
    """
    from mpiring.report.files import save
    from mpiring.texts import read_text

    read = parse(read_text(file, exact=True), file)
    if not source:
        source, why = guess(read)
        _remark(f"{file}: read as {DIALECTS[source].name}'s ({why})")
    text = converted(read, DIALECTS[source], DIALECTS[target])
    if output:
        save(output, text)
    else:
        click.echo(text, nl=False)


def _remark(text: str) -> None:
    if speaks():
        click.echo(text, err=True)


def _table(columns: dict[str, list[Host]]) -> str:
    """Return a line for each rank below the titles."""
    cells = [[title, *(host.name for host in hosts)] for title, hosts in columns.items()]
    ranks = ["rank", *map(str, range(len(cells[0]) - 1))]
    widths = [max(map(len, column)) for column in cells]
    return "\n".join(
        "  ".join((f"{rank:>{max(4, len(ranks[-1]))}}", *map(str.ljust, names, widths))).rstrip()
        for rank, *names in zip(ranks, *cells, strict=True)
    )
