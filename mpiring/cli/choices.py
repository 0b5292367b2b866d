"""Options that several commands share: which algorithms, what is chosen of them, on which ranks."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click

from mpiring.algorithms import ALGORITHMS, find
from mpiring.errors import UsageError
from mpiring.options import DEFAULTS, RING_ORDERS, Options
from mpiring.topology import blocks, flat
from mpiring.topology_file import read
from mpiring.units import parse_size

Command = Callable[..., Any]


MOST = 10**9
"""A bound for numbers of things: what nobody wants, and a result could not be read with."""


class FileName(click.types.StringParamType):
    """The name of a file, which is not empty, as from a variable that is not set: silence would
    lose the results.
    """

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail as any other value that cannot be used."""
        path: str = super().convert(value, param, ctx)
        if not path:
            self.fail("the name of the file is empty", param, ctx)
        return path


FILE = FileName()


def parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Let a parser's UsageError be that of the option it reads; an option not given stays None."""

    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except UsageError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return callback


def read_algorithms(text: str) -> tuple[str, ...]:
    """Read names with commas, or `all`."""
    names = ALGORITHMS if text == "all" else [name.strip() for name in text.split(",")]
    return tuple(dict.fromkeys(find(name).name for name in names))


def algorithms_option(help: str, default: str | None = "all") -> Callable[[Command], Command]:
    """Give a command the names of algorithms; it gets them as `algorithms`."""
    return click.option(
        "-a",
        "--algorithms",
        metavar="NAMES",
        callback=parsed(read_algorithms),
        default=default,
        show_default=default is not None,
        help=help,
    )


def verbosity_options(command: Command) -> Command:
    """Give a command -v and -q; it gets what they ask of its progress, as `verbosity`."""

    @click.option("-v", "--verbose", is_flag=True, help="Say on standard error what is done.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
    @wraps(command)
    def with_verbosity(*arguments: Any, verbose: bool, quiet: bool, **others: Any) -> Any:
        if verbose and quiet:
            raise click.UsageError("-v and -q exclude each other.")
        verbosity = "verbose" if verbose else "quiet" if quiet else "usual"
        return command(*arguments, verbosity=verbosity, **others)

    return with_verbosity


def _read_torus(text: str) -> tuple[int, int]:
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.strip().isdecimal() for side in sides):
        raise UsageError(f"{text!r} is not a grid such as 4x8")
    return int(sides[0]), int(sides[1])


def _read_tree(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [pair.split("=") for pair in text.split(",")]
    if not all(len(pair) == 2 and all(map(str.strip, pair)) for pair in pairs):
        raise UsageError(f"{text!r} is not levels with algorithms, as node=ring,top=swing")
    return tuple((level.strip(), name.strip()) for level, name in pairs)


_OPTIONS = {
    "segment": click.option(
        "--segment",
        metavar="SIZE",
        callback=parsed(parse_size),
        help="Send chunks in segments of so many bytes.  [default: whole chunks; 128 KiB for"
        " segmented_ring and double_binary_tree, 512 KiB for tree between nodes]",
    ),
    "radix": click.option(
        "--radix",
        type=click.IntRange(max=MOST),
        default=DEFAULTS.radix,
        show_default=True,
        help="Groups that meet in a round of recursive_multiplying.",
    ),
    "torus": click.option(
        "--torus",
        metavar="XxY",
        callback=parsed(_read_torus),
        help="Rows and columns of torus_ring.  [default: nearest to a square]",
    ),
    "root": click.option(
        "--root",
        type=click.IntRange(max=MOST),
        default=DEFAULTS.root,
        show_default=True,
        help="The rank that is parameter_server.",
    ),
    "leaders": click.option(
        "--leaders",
        type=click.IntRange(max=MOST),
        help="Ranks of a node, at most, that talk to other nodes.  [default: all in tree, 2 in"
        " multi_leader]",
    ),
    "tree": click.option(
        "--tree",
        metavar="LEVEL=NAME,...",
        callback=parsed(_read_tree),
        help="What the groups of a level do in tree, as node=ring; above the last level,"
        " top=rabenseifner.  [default: direct exchange]",
    ),
    "ring_order": click.option(
        "--ring-order",
        type=click.Choice(RING_ORDERS),
        default=DEFAULTS.ring_order,
        show_default=True,
        help="Neighbours in rings: those of a node together, or as in the tour of the topology"
        " file.",
    ),
    "rendezvous": click.option(
        "--rendezvous",
        is_flag=True,
        help="Complete no send before its receive has begun (MPI_Ssend).",
    ),
}
SCHEDULING = ("radix", "torus", "root", "leaders", "tree", "ring_order")
"""What changes the rounds of an algorithm."""


def chosen_of(values: Mapping[str, Any]) -> Options:
    """Return the options of these values; None is the default."""
    return Options(**{name: value for name, value in values.items() if value is not None})


def algorithm_options(*names: str) -> Callable[[Command], Command]:
    """Give a command options of algorithms; it gets them together, as `options`."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_options(*arguments: Any, **others: Any) -> Any:
            chosen = {name: others.pop(name) for name in names}
            return command(*arguments, options=chosen_of(chosen), **others)

        decorated: Command = with_options
        for name in reversed(names):
            decorated = _OPTIONS[name](decorated)
        return decorated

    return decorate


def check_heeded(options: Options, names: tuple[str, ...]) -> None:
    """Raise UsageError for an option that none of the algorithms heeds."""
    heeded = {option for name in names for option in ALGORITHMS[name].heeded}
    for option in options.chosen:
        if option not in heeded:
            written = option.replace("_", "-")
            raise UsageError(f"--{written} changes nothing: {', '.join(names)} has no {written}")


def ranks_options(command: Command) -> Command:
    """Give a command without MPI its ranks and nodes; it gets them as `topology`."""

    @click.option(
        "-n",
        "--ranks",
        type=click.IntRange(1, 10**7),
        required=True,
        help="Number of ranks.",
    )
    @click.option(
        "--nodes",
        type=click.IntRange(min=1),
        help="Divide the ranks over so many nodes, block by block.  [default: 1]",
    )
    @click.option(
        "--topology",
        "topology_file",
        type=FILE,
        help="TOML file of levels, instead of --nodes.",
    )
    @wraps(command)
    def with_topology(
        *arguments: Any,
        ranks: int,
        nodes: int | None,
        topology_file: str | None,
        **others: Any,
    ) -> Any:
        if nodes and topology_file:
            raise click.UsageError("--nodes and --topology exclude each other.")
        if topology_file:
            from mpiring.texts import read_text

            topology = read(read_text(topology_file), [None] * ranks, source=topology_file)
        else:
            topology = blocks(ranks, nodes) if nodes else flat(ranks)
        return command(*arguments, topology=topology, **others)

    return with_topology
