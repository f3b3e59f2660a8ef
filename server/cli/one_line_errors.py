"""Errors of the command line: one line on standard error and an exit code."""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from server.interface.errors import KvasirError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

WRONG_USE = 2  # the exit code for flags and settings that make no sense; other failures exit with 1

_MAX_SHOWN = 100  # characters of a wrong value

# Causes in words; others are those of the operating system.
_CAUSES = {
    errno.ENOENT: "does not exist",
    errno.EISDIR: "is a folder, not a file",
    errno.ENOTDIR: "is below a file, which is not a folder",
    errno.EACCES: "cannot be used: no permission",
    errno.EPERM: "cannot be used: no permission",
    errno.ENOSPC: "cannot be written: the disk is full",
}


def failure(message: str, code: int = 1) -> typer.Exit:
    """Write one line to standard error and return the exit to raise."""
    typer.echo(f"kvasir: {' '.join(message.split())}", err=True)
    return typer.Exit(code)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """End the command with the message of an error that a user can do something about; bugs keep their traceback."""
    try:
        yield
    except BaseExceptionGroup as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        if not isinstance(first, KvasirError | ValueError | OSError):
            raise
        raise failure(_message(first)) from group
    except (KvasirError, ValueError, OSError) as error:
        raise failure(_message(error)) from error


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Report a package that is not installed in one line, with the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        way_out = f"run `make venv-dev` or `pip install '.[{extra}]'` in a checkout"
        raise failure(f"`{error.name}` is not installed; {way_out}") from error


def flag_problems(problems: "Iterable[ErrorDetails]", command: str) -> str:
    """Return one line for the errors of pydantic about the flags of a command."""
    lines = []
    for problem in problems:
        flag = "".join(f"--{str(part).replace('_', '-')}: " for part in problem["loc"][:1])
        given = f", not {problem['input']!r}" if isinstance(problem["input"], str) else ""  # it may be a variable's
        # Options are tuples, so that they can be hashed; flags are repeated into lists.
        message = problem["msg"].removeprefix("Value error, ").replace("Tuple should", "List should")
        lines.append(f"{flag}{message}{given}")
    return "; ".join(lines) + f" ({command} --help lists all flags)"


def _message(error: BaseException) -> str:
    """Return the message of an error; for a file, its path and the cause in words instead of a number."""
    from pydantic import ValidationError  # not before an error: the help needs no pydantic

    if isinstance(error, ValidationError):
        return "; ".join(map(_problem, error.errors()))
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    cause = _CAUSES.get(error.errno or 0) or f"cannot be used: {(error.strerror or '').lower()}"
    return f"{error.filename} {cause}"


def _problem(problem: "ErrorDetails") -> str:
    """Return one of the errors of pydantic, whose own message has several lines and an address."""
    field = ".".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix("Value error, ")
    shown = repr(problem["input"])
    return f"`{field}`: {message}. Given: {shown[:_MAX_SHOWN]}" if field else message
