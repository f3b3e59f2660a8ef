"""Return of freed memory to the operating system."""

import ctypes
import gc
import sys


def return_unused_memory() -> None:
    """Collect unreachable objects, and return the free pages of the allocator."""
    gc.collect()
    return_free_pages()


def return_free_pages() -> None:
    """Give the free pages of the allocator back to the operating system (glibc). Does not hold the interpreter."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
