"""Command-line flags of the decoding options, generated from their fields."""

import inspect
from collections.abc import Callable
from functools import wraps
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from server.cli.one_line_errors import WRONG_USE, failure, flag_problems
from server.interface.decoding_options import DecodingOptions
from server.interface.option_table import bounds, section

Command = TypeVar("Command", bound=Callable[..., None])


def with_options(options: type[DecodingOptions]) -> Callable[[Command], Command]:
    """Give a command a flag for each field of `options`; it receives them as one value, `decoding`.

    The flags have the types, ranges, defaults and descriptions of the fields, and the sections of the reference page.
    """
    flags = [_flag(name, field) for name, field in options.model_fields.items()]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(**values: object) -> None:
            given = {flag.name: values.pop(flag.name) for flag in flags}
            try:
                decoding = options.given({name: value for name, value in given.items() if value is not None})
            except ValidationError as error:
                raise failure(flag_problems(error.errors(), "kvasir translate"), WRONG_USE) from error
            command(**values, decoding=decoding)

        own = [
            parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "decoding"
        ]
        called.__signature__ = inspect.Signature([*own, *flags])  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *flags)}
        return called  # type: ignore[return-value]  # it takes the flags in place of `decoding`

    return decorate


def _flag(name: str, field: FieldInfo) -> inspect.Parameter:
    lower, upper = bounds(field)
    description = field.description or ""
    option = typer.Option(
        min=lower, max=upper, help=f"{description[:1].upper()}{description[1:]}.", rich_help_panel=section(name, field)
    )
    type_, default = _flag_type(field.annotation), None if field.default == () else field.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[type_, option])


def _flag_type(annotation: Any) -> Any:  # noqa: ANN401 - any type that a field may have
    """Return the type of a flag: a tuple is a flag that may be repeated, a choice of types has the first one."""
    if get_origin(annotation) is Annotated:
        return _flag_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        first = next(each for each in get_args(annotation) if each is not NoneType)
        return _flag_type(first) | None
    if get_origin(annotation) is tuple:
        return list[_flag_type(get_args(annotation)[0])] | None  # type: ignore[misc]
    return annotation
