"""What stands of a point in a table, and lines for what stands in none."""

from collections.abc import Callable, Iterable, Iterator

from mpiring.algorithms.algorithm import NATIVE
from mpiring.results import Point
from mpiring.stats import Interval
from mpiring.units import format_size


def floor(point: Point) -> str:
    """Return what the harness itself takes, in us."""
    return f"{point.noise_floor_s * 1e6:.1f} us"


def time(point: Point) -> str:
    """Return the median, in us."""
    return "-" if point.median_s is None else microseconds(point.median_s)


def interval_of(interval: Interval | None, write: Callable[[float], str]) -> str:
    """Return both ends of an interval."""
    return "-" if interval is None else f"{write(interval[0])}..{write(interval[1])}"


def microseconds(seconds: float) -> str:
    """Return a time in us, with as many digits as mean something."""
    return f"{seconds * 1e6:.{1 if seconds < 1e-3 else 0}f}"


def speedup(point: Point) -> str:
    """Return how many times as fast as native it is, with the interval and the verdict."""
    if point.speedup is None:
        return "-"
    if point.algorithm == NATIVE:
        return "1"
    interval = point.speedup.interval
    between = f"({interval_of(interval, '{:.2f}'.format)}) " if interval else ""
    return f"{point.speedup.ratio:.2f} {between}{point.speedup.verdict}"


def by_size(remarks: Iterable[tuple[str, int, str]], everywhere: int = 0) -> Iterator[str]:
    """Yield a line for each algorithm and remark, with the sizes unless it is `everywhere`."""
    sizes: dict[tuple[str, str], list[str]] = {}
    for algorithm, nbytes, remark in remarks:
        sizes.setdefault((algorithm, remark), []).append(format_size(nbytes))
    for (algorithm, remark), where in sizes.items():
        at = "" if len(where) == everywhere else f" at {', '.join(where)}"
        yield f"{algorithm}{at}: {remark}"
