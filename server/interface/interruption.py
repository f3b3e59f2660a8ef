"""Interruption of work in threads, which cannot be cancelled from outside: the work checks whether it is still needed.

A check is part of the context, so that functions at any depth call `checkpoint` without a parameter.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], None] | None] = ContextVar("interruption_check", default=None)


def checkpoint() -> None:
    """Raise the error of the current check, if there is one and the work must end."""
    check = _check.get()
    if check is not None:
        check()


@contextmanager
def interrupted_by(check: Callable[[], None]) -> Iterator[None]:
    """Let every `checkpoint` in this context call `check`."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)
