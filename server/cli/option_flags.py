"""Command-line flags of the decoding options, generated from their fields."""

import inspect
from collections.abc import Callable
from functools import wraps
from types import NoneType, UnionType
from typing import Annotated, TypeVar, Union, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from server.cli.one_line_errors import WRONG_USE, failure, flag_problems
from server.interface.decoding_options import DecodingOptions
from server.interface.option_table import bounds, section

Command = TypeVar("Command", bound=Callable[..., None])


def with_options(options: type[DecodingOptions]) -> Callable[[Command], Command]:
    """Give a command a flag for each field of `options`. The command receives their values as `decoding`.

    Flags have the types, ranges, defaults and descriptions of the fields, and the sections of the reference page.
    """
    flags = [_flag(name, field) for name, field in options.model_fields.items()]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(**values: object) -> None:
            given = {flag.name: values.pop(flag.name) for flag in flags}
            try:
                decoding = options.given({name: value for name, value in given.items() if value is not None})
            except ValidationError as error:
                raise failure(flag_problems(error.errors(), "kvasir translate"), WRONG_USE) from error
            command(**values, decoding=decoding)

        parameters = [each for each in inspect.signature(command).parameters.values() if each.name != "decoding"]
        parameters += flags
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        return call  # type: ignore[return-value]  # it takes the flags in place of `decoding`

    return decorate


def _flag(name: str, field: FieldInfo) -> inspect.Parameter:
    lower, upper = bounds(field)
    description = field.description or ""
    option = typer.Option(
        min=lower,
        max=upper,
        help=f"{description[:1].upper()}{description[1:]}.",
        rich_help_panel=section(name, field),
        show_default=field.default is not False,
    )
    default = None if field.default == () else field.default
    annotation = Annotated[_flag_type(field.annotation), option]  # type: ignore[valid-type]  # known at run time only
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flag_type(annotation: object) -> object:
    """Return the type of a flag: a list, which may be repeated, for a tuple; the first type of a union."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _flag_type(arguments[0])
    if origin in (Union, UnionType):
        first = next(each for each in arguments if each is not NoneType)
        return Union[_flag_type(first), None]  # noqa: UP007 - known at run time only
    if origin is tuple:
        return Union[list[_flag_type(arguments[0])], None]  # type: ignore[misc]  # noqa: UP007 - the same
    return annotation
