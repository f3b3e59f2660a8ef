"""The compiled library beside this file, where it was built."""

import ctypes
from pathlib import Path

FILE = Path(__file__).parent / "libkvasir.so"


def load() -> ctypes.CDLL | None:
    """The library, or None where it was not built."""
    return ctypes.CDLL(str(FILE)) if FILE.exists() else None
