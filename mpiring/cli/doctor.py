"""`mpiring doctor`: what is wrong with how a job is started, before it runs for long."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mpiring.cli.choices import FILE
from mpiring.errors import NoLibrary

if TYPE_CHECKING:
    from mpiring.checkup import Finding


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
    from mpiring.checkup import Job, document, examine, no_library
    from mpiring.cli.job import job

    whole = None
    try:
        with job(checked=False) as comm:
            from mpiring.agreement import on_rank_zero
            from mpiring.communicator import private
            from mpiring.probe import gather

            slots = on_rank_zero(comm, lambda: _slots(hostfile)) if hostfile else None
            whole = Job(gather(comm), private(comm).topology.nodes, slots)
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


def _slots(path: str) -> Mapping[str, int]:
    """Return the slots of each host in a hostfile, by the rules of the launcher it is for."""
    from mpiring.hostfile import DIALECTS, guess, nodes, parse
    from mpiring.texts import read_text

    read = parse(read_text(path, exact=True), path)
    return {host.name: host.slots for host in nodes(read, DIALECTS[guess(read)[0]])}


def _lines(finding: "Finding") -> list[str]:
    lines = [f"{finding.status:7}  {finding.check:13}  {finding.said}"]
    return lines + [f"{'':24}-> {finding.todo}"] * bool(finding.todo)
