"""HTTP responses to errors: the status of each error class, in the error format of the protocol that owns the path."""

import logging
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from server.http.requests.parameters import path_of
from server.http.responses.examples import Described, described
from server.http.state import RequestRecord, request_record
from server.interface.errors import (
    ClientGone,
    DeadlineExceeded,
    DocumentNotReady,
    DocumentTooLarge,
    Draining,
    EngineFailed,
    InvalidApiKey,
    InvalidRequest,
    KvasirError,
    MissingApiKey,
    NoEngine,
    NotFound,
    StorageFull,
    StoreBusy,
    TryLater,
    UnknownDocument,
    UnsupportedFormat,
    means_storage_full,
)
from server.text.unicode_text import replace_lone_surrogates

_DESCRIPTIONS: Mapping[int, str] = {
    401: "The server requires an API key, and the request has none that is valid.",
    400: "The body cannot be read, or the request is invalid; the message gives the reason.",
    403: "The server does not offer this operation.",
    406: "No model translates between these languages.",
    404: "The resource does not exist, or no longer exists.",
    409: "The document is not translated yet, or could not be; the message has its status.",
    413: "The body exceeds the size limit.",
    415: "The document's format is not supported.",
    422: "The request is invalid; the message has the field and its limit.",
    429: "The queue is full; `Retry-After` has the seconds to wait.",
    500: "An internal error.",
    503: "The server is starting or shutting down.",
    504: "The request's time limit expired.",
}


@dataclass(frozen=True, slots=True)
class ErrorFormat:
    """One protocol's error responses.

    `body` builds the JSON body from the status, a code and a message; `name` is that of its schema. `statuses` are
    those of error classes with another status than in the native protocol.
    """

    name: str
    body: Callable[[int, str, str], dict[str, object]]
    statuses: Mapping[type[KvasirError], int] = field(default_factory=dict)

    def responses(self, *statuses: int) -> Described:
        """Return the part of an operation's OpenAPI description for these statuses."""
        example = self.body(400, InvalidRequest.code, "what is wrong, and how to mend it")
        return {status: described(self.name, _DESCRIPTIONS[status], example) for status in statuses}


NATIVE = ErrorFormat("ErrorResponse", lambda _, code, message: {"error": {"code": code, "message": message}})


@dataclass(frozen=True, slots=True)
class ErrorFormats:
    """Error formats by request path. A path that ends with a slash is a prefix; others are exact."""

    by_path: Mapping[str, ErrorFormat]

    def of(self, scope: Scope) -> ErrorFormat:
        """Return the error format of the protocol that owns the request path; default: native."""
        return self.of_path(path_of(scope))

    def of_paths(self, paths: Sequence[str]) -> ErrorFormat:
        """Return a format with the fields of all protocols that own one of `paths`; the first has precedence.

        For a request whose protocol is unknown, so that each client finds the fields that it reads.
        """
        formats = [self.of_path(path) for path in paths]

        def body(status: int, code: str, message: str) -> dict[str, object]:
            return {
                name: value for each in reversed(formats) for name, value in each.body(status, code, message).items()
            }

        return replace(formats[0], body=body)

    def of_path(self, path: str) -> ErrorFormat:
        """Return the error format of the protocol that owns a path."""
        if path in self.by_path:
            return self.by_path[path]
        prefixes = (own for own in self.by_path if own.endswith("/") and path.startswith(own))
        return next((self.by_path[prefix] for prefix in prefixes), NATIVE)


_log = logging.getLogger("kvasir")

CLIENT_GONE_STATUS = 499  # appears in logs and metrics only; nginx uses the same number

_STATUS: Mapping[type, int] = {
    InvalidRequest: 422,
    UnsupportedFormat: 415,
    DocumentTooLarge: 413,
    UnknownDocument: 404,
    NotFound: 404,
    DocumentNotReady: 409,
    MissingApiKey: 401,
    InvalidApiKey: 401,
    TryLater: 429,
    NoEngine: 503,
    ClientGone: CLIENT_GONE_STATUS,
    EngineFailed: 500,
    Draining: 503,
    StorageFull: 507,
    StoreBusy: 503,
    DeadlineExceeded: 504,
}
# For errors that FastAPI and Starlette raise; they have no codes.
_HTTP_CODES = {
    400: "invalid_request",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "body_too_large",
    415: "unsupported_encoding",
    422: "invalid_request",
    426: "unsupported_http_version",
    429: "queue_full",
    431: "headers_too_large",
    503: "too_many_connections",
}
_HTTP_MESSAGES = {
    "There was an error parsing the body": "the body cannot be read as JSON: it is not UTF-8, nested too deeply, "
    "or holds a number with too many digits",
    "Not Found": "no such path; /docs lists the operations of this server",
}
_RULES = {
    "Input should": "must",
    "String should": "must",
    "List should": "must",
    "Dictionary should": "must",
    "Value error, ": "",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "above",
    "less than": "below",
    " after validation": "",
}
_NO_FILE = "Expected UploadFile"  # in FastAPI's message
_MAX_SHOWN_CHARACTERS = 60
_MAX_DROPPED_BYTES = 64 * 1024  # of a body that is not read
_MAX_PROBLEMS = 20  # described in one message

error_responses = NATIVE.responses


def error_response(error: KvasirError, error_format: ErrorFormat = NATIVE) -> JSONResponse:
    """Return the response to a request that failed with `error`."""
    status = next(_status(base, error_format) for base in type(error).__mro__ if _status(base, error_format))
    headers = {}
    if isinstance(error, TryLater):
        headers["Retry-After"] = retry_after(error)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return _response(error_format, status, error.code, str(error), headers)


def unread_error_response(error: KvasirError, error_format: ErrorFormat, scope: Scope) -> JSONResponse:
    """Return the response to a request whose body is not read. A body that is not short ends the connection.

    The server drops a short body when it arrives, which costs less than another connection.
    """
    response = error_response(error, error_format)
    headers = Headers(scope=scope)
    announced = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not announced.isdecimal() or int(announced) > _MAX_DROPPED_BYTES:
        response.headers["Connection"] = "close"
    return response


def http_error_response(error: HTTPException, method: str, error_format: ErrorFormat) -> JSONResponse:
    """Return the response to an error of FastAPI or Starlette."""
    status = error.status_code
    message = _HTTP_MESSAGES.get(str(error.detail), str(error.detail))
    if status == 405:
        message = f"method {method} is not allowed; use {(error.headers or {}).get('Allow', 'none')}"
    code = _HTTP_CODES.get(status, "error")
    if status == 422:
        status = _status(InvalidRequest, error_format)
    return _response(error_format, status, code, message, error.headers or {})


def retry_after(error: TryLater) -> str:
    """Return the value of `Retry-After`: whole seconds, at least one."""
    return str(max(1, math.ceil(error.retry_after_seconds)))


def _status(error: type, error_format: ErrorFormat) -> int:
    """Return the HTTP status registered for exactly this error class, or 0."""
    return error_format.statuses.get(error) or _STATUS.get(error, 0)


def install_error_handlers(app: FastAPI, formats: ErrorFormats) -> None:
    """Answer every error of `app` in the format that `formats` has for its path."""

    async def answer(request: Request, error: Exception) -> JSONResponse:
        error_format, cause = formats.of(request.scope), error.__cause__
        has_other_cause = isinstance(cause, ClientDisconnect) or means_storage_full(cause)
        if isinstance(error, HTTPException) and isinstance(cause, Exception) and has_other_cause:
            error = cause  # FastAPI takes every exception of a body for an error of the client
        if isinstance(error, ClientDisconnect):  # the response is for the log and the metrics
            error = ClientGone("the client closed the connection before the end of the body")
        elif means_storage_full(error):
            _log.error("storage full", extra={"cause": str(error)})
            error = StorageFull("the server has no space left for uploads; retry later, or ask its operator")
        if isinstance(error, RequestValidationError):
            status = _status(InvalidRequest, error_format)
            return _response(error_format, status, InvalidRequest.code, describe_problems(error.errors()), {})
        if isinstance(error, HTTPException):
            return http_error_response(error, request.method, error_format)
        if not isinstance(error, KvasirError):
            raise error
        if isinstance(error, DeadlineExceeded):
            note_expiry(error, request_record(request))
        return error_response(error, error_format)

    for kind in (KvasirError, RequestValidationError, HTTPException, OSError, ClientDisconnect):
        app.add_exception_handler(kind, answer)


def describe_problems(found: Sequence[Mapping[str, object]]) -> str:
    """Describe problems that pydantic found."""
    problems = [_describe(problem) for problem in found[:_MAX_PROBLEMS]]
    if len(found) > len(problems):
        problems.append(f"and {len(found) - len(problems)} more")
    return "; ".join(problems)


def _describe(problem: Mapping[str, object]) -> str:
    """Describe one problem of a body: the field, the rule, and the value given."""
    kind, location = problem["type"], problem["loc"]
    assert isinstance(location, tuple)
    if kind == "json_invalid":
        context = problem.get("ctx")
        reason = context.get("error") if isinstance(context, dict) else "not valid"
        return f"the body is not JSON: {reason} at character {location[-1]}"
    # Options are tuples, so that they can be hashed; JSON has lists.
    path = ".".join(str(part).replace("tuple[str, ...]", "list[str]") for part in location if part != "body")
    if kind == "too_many_fields":
        return str(problem["msg"])
    if kind == "string_unicode" and not path:
        return "the body has a field name that is not valid Unicode"
    if not path:
        return "the body must be a JSON object, sent with Content-Type: application/json"
    if kind == "missing":
        return f"`{_shown(path)}` is required"
    if kind == "extra_forbidden":
        return f"`{_shown(path)}` is not a field of this request"
    if _NO_FILE in str(problem["msg"]):
        return f"`{_shown(path)}` must be a file; send it as a part with a `filename`"
    message = str(problem["msg"]).replace("Tuple should", "List should").replace("valid tuple", "valid list")
    given = "" if kind == "text_item_type" else f". Given: {_shown(problem.get('input'))}"
    return f"`{_shown(path)}` {_rule(message)}{given}"


def _rule(message: str) -> str:
    """Reword a message of pydantic: "Input should be less than or equal to 8" becomes "must be at most 8"."""
    for pydantic_words, words in _RULES.items():
        message = message.replace(pydantic_words, words)
    return message[:1].lower() + message[1:]


def _shown(value: object) -> str:
    """Return a value given by a client, cut to fit a message. Containers, which can be megabytes, are only named."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else text[:_MAX_SHOWN_CHARACTERS] + "…"


def _response(
    error_format: ErrorFormat, status: int, code: str, message: str, headers: Mapping[str, str]
) -> JSONResponse:
    return JSONResponse(error_format.body(status, code, replace_lone_surrogates(message)), status, dict(headers))


def note_expiry(error: KvasirError, record: RequestRecord) -> None:
    """Record the phases of a call that expired, and clear the variables of the functions that it ended.

    Cycles through them would keep all sentences of the call until the next full garbage collection. Other errors may
    be shared by calls, whose functions go on; they are ignored.
    """
    if not isinstance(error, DeadlineExceeded):
        return
    record.late_phases = error.phase_seconds
    ended: BaseException | None = error
    while ended is not None:
        traceback.clear_frames(ended.__traceback__)
        ended = ended.__context__
