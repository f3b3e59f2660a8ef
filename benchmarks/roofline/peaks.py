"""Speed limits of one core, measured by a small C program."""

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("peaks.c")
# Half of each cache, so that nothing else evicts the numbers. Sizes of the usual server processors.
LEVELS = {"L1 cache": 16 << 10, "L2 cache": 512 << 10, "L3 cache": 8 << 20, "memory": 256 << 20}
_ROUND_BYTES = 4 << 30  # read in each measurement
_REGISTER_ROUNDS = 20_000_000
_REPETITIONS = 5


class NoCompiler(Exception):
    """No C compiler was found, or it rejects the program."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """Multiply-adds a second of one core: both factors in registers, and one read from each level of memory.

    A multiply-add reads one byte, so a speed from memory is its bandwidth in bytes a second as well.
    """

    instructions: str
    registers: float
    by_level: dict[str, float]


def measured_peaks() -> Peaks:
    """Compile the program with `$CC` or cc and run it. Raises `NoCompiler`."""
    with _library() as library:
        library.kind.restype = ctypes.c_char_p
        library.register_speed.restype = library.cached_speed.restype = ctypes.c_double
        library.register_speed.argtypes = [ctypes.c_long]
        library.cached_speed.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
        memory = np.ones(max(LEVELS.values()), np.int8)
        registers = max(library.register_speed(_REGISTER_ROUNDS) for _ in range(_REPETITIONS))
        by_level = {
            level: max(
                library.cached_speed(memory.ctypes.data, num_bytes, max(_ROUND_BYTES // num_bytes // 4, 1))
                for _ in range(_REPETITIONS)
            )
            for level, num_bytes in LEVELS.items()
        }
        return Peaks(library.kind().decode(), registers, by_level)


@contextmanager
def _library() -> Iterator[ctypes.CDLL]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "peaks.so"
        compiler = os.environ.get("CC", "cc")
        command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", str(SOURCE), "-o", str(target)]
        try:
            made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our program
        except FileNotFoundError:
            raise NoCompiler(f"{compiler} was not found; set CC to a C compiler") from None
        if made.returncode:
            raise NoCompiler(f"{compiler} failed: {made.stderr.strip().splitlines()[-1]}")
        yield ctypes.CDLL(str(target))
