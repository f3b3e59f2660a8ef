"""Progress lines of a benchmark."""

import sys


def log_progress(message: str) -> None:
    """Print a line to standard error; standard output is for results."""
    print(message, file=sys.stderr, flush=True)
