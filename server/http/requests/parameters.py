"""Request parameters, read alike from a JSON object, a form or the query, single headers, and the path."""

import asyncio
import codecs
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, NoReturn, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter
from python_multipart.exceptions import FormParserError
from starlette.datastructures import UploadFile
from starlette.types import Scope

from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.text.unicode_text import replace_lone_surrogates
from server.translation.execution import PLAIN_TEXTS


def header(scope: Scope, name: bytes) -> str:
    """Return the first header with this lower-case name; the empty string without one.

    Starlette's `Headers` decodes every name of the request for each value that is read.
    """
    for own, value in scope["headers"]:
        if own == name:
            return str(value, "latin-1")
    return ""


def path_of(scope: Scope) -> str:
    """Return the path of a request, without the prefix that a proxy has removed."""
    return str(scope["path"]).removeprefix(str(scope.get("root_path", "")))


Choice = TypeVar("Choice")


def _no_flag(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a flag is not a number")
    return value


_INTEGER = TypeAdapter(Annotated[int, BeforeValidator(_no_flag)])
_NUMBER = TypeAdapter(Annotated[float, BeforeValidator(_no_flag), Field(allow_inf_nan=False)])
_FLAGS = {"1": True, "true": True, "0": False, "false": False}

_OTHER_FIELDS = 50
_INLINE_BYTES = 20_000  # 1 MB of escapes takes 0.2 s
MAX_BLANK_BYTES = 256  # before JSON
BEFORE_JSON = b" \t\r\n" + codecs.BOM_UTF8  # .NET writes a byte order mark
_PARSED, _FORMS = "kvasir.json_object", "kvasir.forms"  # keys of the scope
_MAX_FIELD_BYTES = 1024 * 1024  # of a URL-encoded form; Starlette has the same limit for multipart forms


class Parameters:
    """Parameters by name. A null value counts as missing; so does an empty string for a number or flag in a form."""

    def __init__(self, values: Mapping[str, Sequence[object]], *, is_json: bool) -> None:
        self._values = {name: [value for value in given if value is not None] for name, given in values.items()}
        self.is_json = is_json

    def _first(self, name: str) -> object:
        return next(iter(self._values.get(name, ())), None)

    def names(self) -> list[str]:
        """Return the names of all parameters, without the brackets of lists."""
        return list(dict.fromkeys(name.removesuffix("[]") for name in self._values))

    def as_json(self) -> dict[str, object]:
        """Return the first value of each parameter: the object that was sent as JSON."""
        return {name: values[0] for name, values in self._values.items() if values}

    def has(self, name: str) -> bool:
        """Return whether the parameter has a value other than null, the empty string or an empty list."""
        return any(value not in ("", []) for value in self._values.get(name, ()))

    def text(self, name: str) -> str | None:
        """Return the string, or the first of several in a form, or None. Raises `InvalidRequest` for another type."""
        return next(iter(self.texts(name)), None)

    def required_text(self, name: str, message: str | None = None) -> str:
        """Return the string. Raises `InvalidRequest`, with the protocol's own `message` if it has one, without it."""
        if (text := self.text(name)) is None:
            raise InvalidRequest(message or f"`{name}` is missing")
        return text

    def choice(self, name: str, choices: Mapping[str, Choice]) -> Choice:
        """Return what a word stands for; "" is the choice of a missing one. Raises `InvalidRequest` for other words."""
        if (found := choices.get((self.text(name) or "").casefold())) is None:
            raise InvalidRequest(f"`{name}` must be {' or '.join(filter(None, choices))}")
        return found

    def texts(self, name: str) -> list[str]:
        """Return all strings: repeated `name` or `name[]` in a form, a string or a list in JSON."""
        values: list[object] = []
        for value in (*self._values.get(name, ()), *self._values.get(f"{name}[]", ())):
            values += value if isinstance(value, list) else [value]
        wrong = next((index for index, value in enumerate(values) if not isinstance(value, str)), None)
        if wrong is not None:
            item = f" item {wrong}" if self.is_list(name) else ""
            raise InvalidRequest(f"Invalid request: `{name}`{item} must be a string")
        return [replace_lone_surrogates(str(value)) for value in values]

    def word(self, name: str) -> str | None:
        """Return a string, number or flag as text, for fields that clients send in all three forms."""
        value = self._first(name)
        if isinstance(value, bool):
            return "1" if value else "0"
        return str(value) if isinstance(value, int) else self.text(name)

    def is_list(self, name: str) -> bool:
        """Return whether the parameter was given as a list in JSON, or as a repeated field in a form."""
        values = self._values.get(name, ())
        return len(values) > 1 or f"{name}[]" in self._values or any(isinstance(value, list) for value in values)

    def integer(self, name: str) -> int | None:
        """Return an integer, also given as text, or None. Raises ValueError for other values."""
        value = self._first(name)
        return None if value in (None, "") else _INTEGER.validate_python(value)

    def number(self, name: str) -> float | None:
        """Return a finite number, also given as text, or None. Raises ValueError for other values."""
        value = self._first(name)
        return None if value in (None, "") else _NUMBER.validate_python(value)

    def flag(self, name: str) -> bool | None:
        """Return a boolean, also given as 0, 1, true or false in text, or None. Raises ValueError for other values."""
        value = self._first(name)
        if value is not None and (value := _FLAGS.get(str(value).casefold())) is None:
            raise ValueError(name)
        return value

    def file(self, name: str) -> UploadFile | None:
        """Return a file of a multipart form, or None."""
        return next((value for value in self._values.get(name, ()) if isinstance(value, UploadFile)), None)


async def close_forms(scope: Scope) -> None:
    """Close the uploaded files of the forms that `read_parameters` has read for a request, after its response."""
    for form in scope.get(_FORMS, ()):
        await form.close()


async def read_parameters(request: Request, max_fields: int | None = None) -> Parameters:
    """Read parameters from the body, and from the query unless the body is JSON. Raises `InvalidRequest`.

    A form has at most `max_fields`; by default one for each text that a request may have, and some more.

    A body that begins like JSON is JSON whatever its media type: browsers avoid a preflight with `text/plain`, and
    `curl -d` declares a form.
    """
    media_type = _media_type(request)
    if media_type == "application/json" or (
        media_type != "multipart/form-data" and looks_like_json(await request.body())
    ):
        return Parameters(_json_object(request.scope, await request.body()), is_json=True)
    max_fields = max_fields or server_state(request).settings.max_texts + _OTHER_FIELDS
    values: dict[str, list[object]] = {}
    for name, query_value in await _form_fields(request.scope["query_string"], max_fields):
        values.setdefault(name, []).append(query_value)
    if media_type == "application/x-www-form-urlencoded":
        for name, text in await _form_fields(await request.body(), max_fields):
            values.setdefault(name, []).append(text)
        return Parameters(values, is_json=False)
    try:
        form = await request.form(max_fields=max_fields, max_files=1)
    except FormParserError as error:  # Starlette does not handle it
        raise InvalidRequest("the boundary of a form must have at most 256 bytes") from error
    request.scope.setdefault(_FORMS, []).append(form)
    for name, form_value in form.multi_items():
        values.setdefault(name, []).append(form_value)
    return Parameters(values, is_json=False)


async def read_json(request: Request) -> object:
    """Return the JSON body, whatever its media type. Raises `InvalidRequest`, also for a multipart form.

    Values of a multipart form are not counted while it is read, so it must not reach the parser.
    """
    if _media_type(request) == "multipart/form-data":
        raise InvalidRequest("the body must be JSON. Given: Content-Type: multipart/form-data")
    return _parsed(await request.body())


def looks_like_json(body: bytes) -> bool:
    """Return whether a body begins like a JSON object or list."""
    return body[:MAX_BLANK_BYTES].lstrip(BEFORE_JSON)[:1] in (b"{", b"[")


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().casefold()


async def _form_fields(body: bytes, max_fields: int) -> list[tuple[str, str]]:
    """Return the fields of a URL-encoded form or query, in order. Long ones are decoded in a thread."""
    if len(body) <= _INLINE_BYTES:
        return _decoded_fields(body, max_fields)
    return await asyncio.get_running_loop().run_in_executor(PLAIN_TEXTS, _decoded_fields, body, max_fields)


def _decoded_fields(body: bytes, max_fields: int) -> list[tuple[str, str]]:
    """Return the fields of a URL-encoded form or query, in order.

    Starlette would read unescaped bytes as Latin-1, although curl and others send UTF-8, and would replace escaped
    bytes that are not UTF-8.
    """
    if body.count(b"&") >= max_fields:
        raise InvalidRequest(f"Too many fields. Maximum number of fields is {max_fields}.")
    if any(len(field) > _MAX_FIELD_BYTES for field in body.split(b"&")):
        raise InvalidRequest(f"Field exceeded maximum size of {_MAX_FIELD_BYTES // 1024}KB.")
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the form or query is not UTF-8: {error}") from error


def json_names(scope: Scope, body: bytes) -> Collection[str]:
    """Return the names of a JSON object, which `read_parameters` of the same request takes; none if it is invalid."""
    try:
        return _json_object(scope, body).keys()
    except InvalidRequest:  # the protocol that reads it describes the error
        return ()


def _json_object(scope: Scope, body: bytes) -> dict[str, list[object]]:
    """Return the values of a JSON object by name. It is parsed once for a request."""
    if _PARSED not in scope:
        content = _parsed(body)
        if not isinstance(content, dict):
            raise InvalidRequest("Invalid JSON format")
        scope[_PARSED] = {name: [value] for name, value in content.items()}
    values: dict[str, list[object]] = scope[_PARSED]
    return values


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body, parse_constant=_reject_constant)
    except RecursionError as error:
        raise InvalidRequest("the body is not JSON: nested too deeply") from error
    except ValueError as error:  # also raised for invalid UTF-8 and for numbers with too many digits
        raise InvalidRequest(f"the body is not JSON: {error}") from error


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def body_of(fields: type[BaseModel], *media_types: str) -> dict[str, object]:
    """Return the part of an operation that describes its body; default media types: JSON and form."""
    schema = fields.model_json_schema()
    accepted = media_types or ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"content": {media_type: {"schema": schema} for media_type in accepted}, "required": True}}
