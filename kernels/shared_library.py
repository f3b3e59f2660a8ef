"""The compiled library next to this file, and structs for it."""

import ctypes
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).parent / "libkvasir.so"


POINTER, INT64 = ctypes.c_void_p, ctypes.c_int64
"""Types of parameters. Addresses are passed as numbers."""


def load(**functions: tuple[type | None, ...]) -> ctypes.CDLL | None:
    """Return the library; None if it was not built, or from older sources that lack one of these functions.

    Each function has the type of its result, or None, followed by those of its parameters.
    """
    if not FILE.exists():
        return None
    library = ctypes.CDLL(str(FILE))
    for name, (result, *parameters) in functions.items():
        if not hasattr(library, name):
            return None
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


class SharedArrays:
    """A struct of C whose fields are 64-bit integers, followed by the addresses of arrays, which must not move."""

    def __init__(self, numbers: Iterable[int], arrays: Iterable[NDArray[np.generic]]) -> None:
        self._arrays = list(arrays)  # kept alive
        fields = [*numbers, *(array.ctypes.data for array in self._arrays)]
        self._fields = (ctypes.c_int64 * len(fields))(*fields)
        self.address = ctypes.addressof(self._fields)
        """Address of the struct."""
