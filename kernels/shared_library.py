"""The compiled library beside this file."""

import ctypes
from pathlib import Path

FILE = Path(__file__).parent / "libkvasir.so"


def load() -> ctypes.CDLL | None:
    """Return the library, or None if it was not built."""
    return ctypes.CDLL(str(FILE)) if FILE.exists() else None
