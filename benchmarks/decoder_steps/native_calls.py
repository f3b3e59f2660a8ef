"""Processor time in calls of Kvasir's library from Python: moves of rows, searches, candidates, lists."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from kernels import cache_rows, candidates, searches

_MODULES = (cache_rows, candidates, searches)
_PREFIX = "kvasir_"


@dataclass(slots=True)
class NativeCalls:
    """The time so far, of the calling thread, conversion of arguments included."""

    seconds: float = 0.0

    def timed(self, function: Callable[..., object]) -> Callable[..., object]:
        """Return a function that adds its time."""

        def call(*arguments: object) -> object:
            start = time.thread_time()
            result = function(*arguments)
            self.seconds += time.thread_time() - start
            return result

        return call


@contextmanager
def native_calls() -> Iterator[NativeCalls]:
    """Time all calls. Without the library there are none."""
    calls = NativeCalls()
    with ExitStack() as patches:
        for module in _MODULES:
            library = module._library
            names = [] if library is None else [name for name in vars(library) if name.startswith(_PREFIX)]
            for name in names:
                patches.enter_context(patch.object(library, name, calls.timed(getattr(library, name))))
        yield calls
