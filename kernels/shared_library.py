"""The compiled library beside this file."""

import ctypes
from pathlib import Path

FILE = Path(__file__).parent / "libkvasir.so"


def load(*functions: str) -> ctypes.CDLL | None:
    """Return the library; None if it was not built, or from older sources that lack one of these functions."""
    if not FILE.exists():
        return None
    library = ctypes.CDLL(str(FILE))
    return library if all(hasattr(library, function) for function in functions) else None
