"""Command-line flags of `kvasir serve`, generated from the settings."""

import argparse
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from server.operations.settings import ENVIRONMENT_PREFIX, Settings

_WORDS: dict[object, str] = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH", bool: "true|false"}
_MAX_HELP_COLUMNS = 110
_MAX_CHOICES = 6  # of a flag that has them in its line of help
_NAMES = "names"
_NAMES_HELP = (
    "Model to serve: a language pair (en-fr), a name of the hub, a URL, a folder or an archive. It is downloaded and "
    "converted if the cache lacks it; see kvasir pull."
)
_DESCRIPTION = (
    f"Serve models over HTTP. Every flag is an environment variable, too: --max-rows is {ENVIRONMENT_PREFIX}MAX_ROWS. "
    "A flag takes precedence. Repeat the flag of a list; separate the values of its variable by commas."
)


def names_and_settings(arguments: Sequence[str]) -> tuple[list[str], Settings]:
    """Return the names of models among the arguments of `kvasir serve`, and the settings of flags and environment.

    Prints and exits for `--help` (0) and for unknown flags (2). Raises pydantic's `ValidationError`.
    """
    columns = min(shutil.get_terminal_size().columns, _MAX_HELP_COLUMNS)
    parser = argparse.ArgumentParser(
        prog="kvasir serve",
        usage="kvasir serve [NAME ...] [OPTIONS]",
        description=_DESCRIPTION,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=32, width=columns),
        add_help=False,
        allow_abbrev=False,  # a flag added later may make an abbreviation ambiguous
    )
    parser.add_argument("-h", "--help", action="help", help="Show this message and exit.")
    parser.add_argument(_NAMES, nargs="*", metavar="NAME", help=_NAMES_HELP)
    for name, field in Settings.model_fields.items():
        _add_flag(parser, name, field)
    given = vars(parser.parse_intermixed_args(arguments))
    names = given.pop(_NAMES)
    # The settings split lists, as those of variables.
    joined = {name: ",".join(value) if isinstance(value, list) else value for name, value in given.items()}
    return names, Settings.model_validate(joined)


def _add_flag(parser: argparse.ArgumentParser, name: str, field: FieldInfo) -> None:
    """Add the flag of a setting with its type, default and meaning in words."""
    description = f"{(field.description or '')[:1].upper()}{(field.description or '')[1:]}."
    default = _default(field.default)
    parser.add_argument(
        f"--{name.replace('_', '-')}",
        action="append" if get_origin(field.annotation) is list else "store",
        default=argparse.SUPPRESS,
        metavar=_metavar(field.annotation),
        # argparse reads % as the beginning of a value.
        help=(description + (f" [default: {default}]" if default else "")).replace("%", "%%"),
    )


def _metavar(annotation: object) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _metavar(next(each for each in arguments if each is not NoneType))
    if origin in (Annotated, list):
        return _metavar(arguments[0])
    if origin is Literal:
        return "|".join(map(str, arguments)) if len(arguments) <= _MAX_CHOICES else "NAME"
    return _WORDS[annotation]


def _default(value: object) -> str:
    """Return a default as a user writes it; empty if the description states it as `unset`."""
    if isinstance(value, list):
        return ",".join(map(_default, value))
    if isinstance(value, Path):
        return os.path.relpath(value) if value.is_relative_to(Path.cwd()) else str(value)
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
