"""Text files, as all of ours are read."""

from mpiring.errors import UsageError


def read_text(path: str, *, exact: bool = False) -> str:
    """Return what a text file says. Raises UsageError where it cannot be read as text.

    `exact` keeps a byte order mark, and each line end as it is.
    """
    encoding, newline = ("utf-8", "") if exact else ("utf-8-sig", None)
    try:
        with open(path, encoding=encoding, newline=newline) as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a text file") from None
