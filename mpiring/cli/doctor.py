"""`mpiring doctor`: what is wrong with how a job is started, before it runs for long."""

import json
from typing import TYPE_CHECKING

import click

from mpiring.cli.choices import FILE
from mpiring.errors import NoLibrary, UsageError

if TYPE_CHECKING:
    from mpiring.checkup import Finding, Slots


@click.command()
@click.option("--hostfile", type=FILE, help="The hosts and slots that the launcher was given.")
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON, for a support ticket.")
@click.pass_context
def doctor(ctx: click.Context, hostfile: str | None, as_json: bool) -> None:
    """Examine how this job is started, in a second.

    \b
    srun --mpi=pmi2 -N 4 --ntasks-per-node=16 mpiring doctor    as the job will be started
    mpiring doctor                                              what can be told of one rank

    Each line is ok, a warning or an error, with what to do: which MPI library is loaded, whether
    the launcher belongs to it, the ranks of each host and core, binding, shared memory, thread
    level, GPUs, clocks, the sizes of the batch job or the hostfile, and versions. The exit status
    is 1 if there is an error.
    """
    from mpiring.checkup import Launch, document, examine, no_library
    from mpiring.cli.job import job

    whole = None
    try:
        with job(checked=False) as comm:
            from mpiring.agreement import on_rank_zero
            from mpiring.communicator import private
            from mpiring.implementation import library_name
            from mpiring.probe import gather

            launcher = "openmpi" if library_name() == "Open MPI" else "mpich"
            slots = on_rank_zero(comm, lambda: _slots(hostfile, launcher)) if hostfile else None
            whole = Launch(gather(comm), private(comm).topology.nodes, slots)
            findings = examine(whole)
            speaks = comm.rank == 0
    except NoLibrary as error:
        findings, speaks = [no_library(str(error))], True
    text = document(findings, whole)
    if speaks and as_json:
        click.echo(json.dumps(text, indent=1))
    elif speaks:
        for finding in findings:
            for line in _lines(finding):
                click.echo(line)
    ctx.exit(0 if text["ok"] else 1)


def _slots(path: str, launcher: str) -> "Slots":
    """Return what a hostfile tells the launcher of a library; one for another is a finding."""
    from mpiring.checkup import Slots
    from mpiring.hostfile import DIALECTS, nodes, parse, slots_by_name
    from mpiring.texts import read_text

    read = parse(read_text(path, exact=True), path)
    try:
        return Slots(slots_by_name(nodes(read, DIALECTS[launcher], cores=0)))
    except UsageError as error:
        return Slots({}, str(error), f"mpiring hostfile convert {path} --to {launcher}")


def _lines(finding: "Finding") -> list[str]:
    lines = [f"{finding.status:7}  {finding.check:13}  {finding.said}"]
    return lines + [f"{'':24}-> {finding.todo}"] * bool(finding.todo)
