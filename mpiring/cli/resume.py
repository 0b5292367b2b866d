"""`mpiring bench --resume`: the options of a run that goes on with an earlier one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from mpiring.errors import UsageError
from mpiring.fields import FLAG, MAPPING, POSITIVE, SECONDS, SEQUENCE, TEXT, WHOLE, Field

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiring.results import Result


class Earlier(NamedTuple):
    """A run that another one goes on with, and the file that it is in."""

    path: str
    result: "Result"


OPTION_FIELDS: Mapping[str, Field] = {
    "dtype": TEXT,
    "op": TEXT,
    "in_place": FLAG,
    "buffers": TEXT,
    "check": FLAG,
    "seed": WHOLE,
    "segment": POSITIVE.or_none(),
    "radix": POSITIVE,
    "root": WHOLE,
    "leaders": POSITIVE.or_none(),
    "ring_order": TEXT,
    "rendezvous": FLAG,
    "warmup": WHOLE.or_none(),
    "sync": TEXT,
    "cold": FLAG,
    "decision": TEXT.or_none(),
    "batch": POSITIVE.or_none(),
}
"""Options that stand in a result under their own names, and as they are."""

EXTENDED = ("algorithms", "sizes")
"""Of these, a resumed run has those of the earlier run and those that were given."""


def take_up(comm: "MPI.Intracomm", ctx: click.Context, path: str) -> Earlier:
    """Return the earlier run, with its options in `ctx.params` for those not given.

    Raises UsageError where there is no such file, or where what it says was asked is no option.
    """
    from mpiring.agreement import on_rank_zero
    from mpiring.report.files import read

    earlier = on_rank_zero(comm, lambda: read(path))
    try:
        known = asked(earlier)
        for option in ctx.command.params:
            name = option.name or ""
            given = ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
            if name in known and (not given or name in EXTENDED):
                value = _parsed(ctx, option, known[name])
                more = ctx.params[name] if given else ()
                ctx.params[name] = tuple(dict.fromkeys((*value, *more))) if more else value
    except click.BadParameter as error:
        where = f"{error.param.name}: " if error.param else ""
        raise UsageError(f"{path}: damaged: config: {where}{error.message}") from None
    except ValueError as error:
        raise UsageError(f"{path}: damaged: {error}") from None
    return Earlier(path, earlier)


def asked(earlier: "Result") -> dict[str, Any]:
    """Return what the earlier run asked for, by the names of the options."""
    inner = [MAPPING.read(earlier.config, name) for name in ("options", "sampling")]
    config = {**earlier.config, **inner[0], **inner[1]}
    torus = SEQUENCE.or_none().read(config, "torus")
    tree = [SEQUENCE.check(pair, "a level of tree") for pair in SEQUENCE.read(config, "tree")]
    fewest, most = POSITIVE.read(config, "fewest"), POSITIVE.read(config, "most")
    source = TEXT.read(MAPPING.read(earlier.environment, "topology"), "source")
    return {
        **{name: field.read(config, name) for name, field in OPTION_FIELDS.items()},
        **{name: ",".join(map(str, SEQUENCE.read(config, name))) for name in EXTENDED},
        "torus": torus and "x".join(map(str, torus)),
        "tree": ",".join("=".join(map(str, pair)) for pair in tree) or None,
        "repetitions": f"{fewest}:{most}",
        "time_limit": SECONDS.read(config, "time_limit_s"),
        "topology_file": None if source == "MPI" else source,
    }


def _parsed(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Read a value of a file as text, by the rules of the command line."""
    if value is None:
        return None
    value = option.type_cast_value(ctx, str(value))
    return option.callback(ctx, option, value) if option.callback else value
