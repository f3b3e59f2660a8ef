"""Error formats of the protocols, and their choice by request path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import BaseModel
from starlette.types import Scope

from server.interface.errors import KvasirError

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


class ErrorBody(BaseModel):
    """Stable code for programs, message for people."""

    code: str
    message: str


class ErrorResponse(BaseModel):
    """Body of every unsuccessful response."""

    error: ErrorBody


@dataclass(frozen=True, slots=True)
class ErrorFormat:
    """One protocol's error responses.

    `body` builds the JSON body from the status, a code and a message; `model` describes it. `statuses` are those of
    error classes with another status than in the native protocol.
    """

    body: Callable[[int, str, str], dict[str, object]]
    model: type[BaseModel]
    statuses: Mapping[type[KvasirError], int] = field(default_factory=dict)

    def responses(self, *statuses: int) -> dict[int | str, dict[str, object]]:
        """Return the part of an operation's OpenAPI description for these statuses."""
        return {status: {"model": self.model, "description": _DESCRIPTIONS[status]} for status in statuses}


NATIVE = ErrorFormat(lambda _, code, message: {"error": {"code": code, "message": message}}, ErrorResponse)


@dataclass(frozen=True, slots=True)
class ErrorFormats:
    """Error formats by request path. A path that ends with a slash is a prefix; others are exact."""

    by_path: Mapping[str, ErrorFormat]

    def of(self, scope: Scope) -> ErrorFormat:
        """Return the error format of the protocol that owns the request path; default: native."""
        return self.of_path(str(scope["path"]).removeprefix(str(scope.get("root_path", ""))))

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
