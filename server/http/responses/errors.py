"""The one table from what went wrong to an HTTP status, and every error in the shape of the protocol it belongs to."""

import math
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from server.http.responses.error_shapes import NATIVE, ErrorFormat, error_shape
from server.interface.errors import (
    ClientGone,
    DeadlineExceeded,
    DocumentNotReady,
    DocumentTooLarge,
    Draining,
    EngineFailed,
    InvalidRequest,
    KvasirError,
    NotFound,
    QueueFull,
    TextTooLong,
    UnknownDocument,
    UnsupportedFormat,
)
from server.text.unicode_text import replace_lone_surrogates

CLIENT_GONE_STATUS = 499  # nobody sees it but logs and metrics; the number is nginx's

_STATUS: Mapping[type, int] = {
    UnsupportedFormat: 415,
    DocumentTooLarge: 413,
    UnknownDocument: 404,
    NotFound: 404,
    QueueFull: 429,
    ClientGone: CLIENT_GONE_STATUS,
    EngineFailed: 500,
    Draining: 503,
    DeadlineExceeded: 504,
}
_DESCRIPTIONS = {
    400: "The body cannot be read, or the request is not valid; the message says why.",
    403: "This server does not do that.",
    404: "There is no such thing here, or not any more.",
    409: "Not yet, or never: the message has the status.",
    413: "The body has more bytes than this server takes.",
    415: "No such kind of document is translated here.",
    422: "The request is not valid; the message has the numbers.",
    429: "As many sentences wait as may; `Retry-After` says when to try again.",
    500: "A bug, or a broken device.",
    503: "The server is going down.",
    504: "The request's time was up.",
}
# What FastAPI and Starlette raise themselves, which know nothing of our codes.
_HTTP_CODES = {400: "invalid_request", 404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
_HTTP_MESSAGES = {
    "There was an error parsing the body": "the body cannot be read as JSON: it is not UTF-8, nested too deeply, "
    "or holds a number with too many digits",
    "Not Found": "there is nothing at this address; /docs describes what there is",
}
_MAX_SHOWN_CHARACTERS = 60


class ErrorBody(BaseModel):
    """What went wrong: a stable code for programs, a sentence for people."""

    code: str
    message: str


class ErrorResponse(BaseModel):
    """The body of every answer that is not a success."""

    error: ErrorBody


def error_responses(*statuses: int) -> dict[int | str, dict[str, object]]:
    """These statuses for an operation's OpenAPI description."""
    return {status: {"model": ErrorResponse, "description": _DESCRIPTIONS[status]} for status in statuses}


class LibreTranslateError(BaseModel):
    """The body of an error in the LibreTranslate-compatible protocol."""

    error: str


class DeepLError(BaseModel):
    """The body of an error in the DeepL-compatible protocol."""

    message: str


def libretranslate_responses(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The same as `error_responses` for the LibreTranslate-compatible protocol."""
    return {status: {"model": LibreTranslateError, "description": _DESCRIPTIONS[status]} for status in statuses}


def deepl_responses(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The same for the DeepL-compatible protocol."""
    return {status: {"model": DeepLError, "description": _DESCRIPTIONS[status]} for status in statuses}


def error_response(error: KvasirError, shape: ErrorFormat = NATIVE) -> JSONResponse:
    """The answer to a request that failed with `error`."""
    status = next(_status(base, shape) for base in type(error).__mro__ if _status(base, shape))
    headers = {}
    if isinstance(error, QueueFull):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_seconds)))
    return _answer(shape, status, error.code, str(error), headers)


def _status(error: type, shape: ErrorFormat) -> int:
    """Of this very class; 0 where the table has only a class above it."""
    if error is TextTooLong:
        return shape.too_long_status
    if error is DocumentNotReady:
        return shape.not_ready_status
    return shape.invalid_status if error is InvalidRequest else _STATUS.get(error, 0)


def install_error_handlers(app: FastAPI) -> None:
    """Let every error of this application leave it in the shape of its protocol."""
    app.add_exception_handler(KvasirError, _on_kvasir_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_body)
    app.add_exception_handler(HTTPException, _on_http_error)


async def _on_kvasir_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, KvasirError)
    return error_response(error, error_shape(request.scope))


async def _on_invalid_body(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = [_describe(problem) for problem in error.errors()]
    shape = error_shape(request.scope)
    return _answer(shape, shape.invalid_status, InvalidRequest.code, "; ".join(problems), {})


async def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    status = error.status_code
    message = _HTTP_MESSAGES.get(str(error.detail), str(error.detail))
    if status == 405:
        message = f"{request.method} is not possible here; allowed: {(error.headers or {}).get('Allow', 'none')}"
    return _answer(error_shape(request.scope), status, _HTTP_CODES.get(status, "error"), message, error.headers or {})


def _describe(problem: Mapping[str, object]) -> str:
    """One problem of a body in words: the field, what is wrong with it, and what was sent."""
    kind, location = problem["type"], problem["loc"]
    assert isinstance(location, tuple)
    if kind == "json_invalid":
        context = problem.get("ctx")
        reason = context.get("error") if isinstance(context, dict) else "not valid"
        return f"the body is not JSON: {reason} at character {location[-1]}"
    # Options are tuples, so that they can be hashed; JSON has lists.
    path = ".".join(str(part).replace("tuple[str, ...]", "list[str]") for part in location if part != "body")
    if kind == "string_unicode" and not path:
        return "the body has a field whose name is not valid Unicode"
    if not path:
        return "the body must be a JSON object, sent with Content-Type: application/json"
    if kind == "missing":
        return f"{_shown(path)} is missing"
    if kind == "extra_forbidden":
        return f"{_shown(path)} is not a field of this request"
    message = str(problem["msg"]).replace("Tuple should", "List should").replace("valid tuple", "valid list")
    given = "" if kind == "text_item_type" else f", not {_shown(problem.get('input'))}"
    return f"{_shown(path)}: {message[:1].lower()}{message[1:]}{given}"


def _shown(value: object) -> str:
    """What a client sent, short enough for a message. Containers are named, not shown: they can be megabytes."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else text[:_MAX_SHOWN_CHARACTERS] + "…"


def _answer(shape: ErrorFormat, status: int, code: str, message: str, headers: Mapping[str, str]) -> JSONResponse:
    return JSONResponse(shape.body(code, replace_lone_surrogates(message)), status, dict(headers))
