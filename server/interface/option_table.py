"""Reference page of the decoding options, docs/options.md, printed from their fields by `make docs`."""

import sys
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from server.interface.decoding_options import BEAM, SAMPLING, Applies, DecodingOptions, DetailOptions

_INTRODUCTION = """\
# Decoding options

<!-- Generated from server/interface/decoding_options.py by `make docs`. -->

Each option is a field of `POST /v1/translate`, and a flag of `kvasir translate`: `--top-k` for `top_k`.
A flag whose option is a list may be repeated. `POST /v1/score` has the options under
\"Scores and details of tokens\".

An option applies to one request, while other requests of the same batch use others. A value out of range, and options
that exclude each other, get 422 with the range or both names. An option of sampling starts sampling, with
`num_hypotheses` samples.
"""
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def options_page(options: type[DecodingOptions]) -> str:
    """Return the reference page of these options, in Markdown."""
    sections: dict[str, list[str]] = {"All searches": []}
    for name, field in options.model_fields.items():
        sections.setdefault(section(name, field), []).append(_row(name, field))
    heading = ["| option | type | default | range | meaning |", "|---|---|---|---|---|"]
    parts = ["\n".join([f"## {title}", "", *heading, *rows]) for title, rows in sections.items()]
    return "\n\n".join([_INTRODUCTION.rstrip(), *parts]) + "\n"


def section(name: str, field: FieldInfo) -> str:
    """Return the heading that an option belongs under."""
    applicable = _applies(field)
    if applicable is not None and applicable.modes & BEAM:
        return "Beam search"
    if applicable is not None and applicable.modes & SAMPLING:
        return "Sampling"
    return "Scores and details of tokens" if name in DetailOptions.model_fields else "All searches"


def bounds(field: FieldInfo) -> tuple[float | None, float | None]:
    """Return the smallest and the largest value of a field; None where there is none."""
    lower = next((each.ge for each in field.metadata if hasattr(each, "ge")), None)
    upper = next((each.le for each in field.metadata if hasattr(each, "le")), None)
    return lower, upper


def _row(name: str, field: FieldInfo) -> str:
    applicable = _applies(field)
    excluded = "".join(f"; excludes `{other}`" for other in (applicable.excludes if applicable else ()))
    kinds = " or ".join(_types(field.annotation))
    return f"| `{name}` | {kinds} | {_default(field)} | {_range(field)} | {field.description}{excluded} |"


def _applies(field: FieldInfo) -> Applies | None:
    return next((each for each in field.metadata if isinstance(each, Applies)), None)


def _types(annotation: object) -> Iterator[str]:
    """Yield the JSON types of an annotation, without null."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _types(arguments[0])
    elif origin in (Union, UnionType):
        for each in arguments:
            yield from _types(each)
    elif origin is tuple:
        yield f"list of {next(_types(arguments[0]))}s"
    elif origin is Literal:
        yield _TYPES[type(arguments[0])]
    elif annotation is not NoneType:
        yield _TYPES[annotation]  # type: ignore[index]  # the types of all options


def _default(field: FieldInfo) -> str:
    if field.default is None:
        return "unset"
    return "empty" if field.default == () else f"`{field.default}`".lower()


def _range(field: FieldInfo) -> str:
    if choices := next((get_args(each) for each in get_args(field.annotation) if get_origin(each) is Literal), ()):
        return " or ".join(f"`{each}`" for each in choices)
    lower, upper = bounds(field)
    if lower is None:
        most = next((each.max_length for each in field.metadata if hasattr(each, "max_length")), None)
        return "" if most is None else f"at most {most} entries"
    return f"{lower:.16g} or more" if upper is None else f"{lower:.16g} to {upper:.16g}"


if __name__ == "__main__":
    sys.stdout.write(options_page(DecodingOptions))
