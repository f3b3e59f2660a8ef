"""Description of one HTTP protocol: what the application needs to serve it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_plus

from fastapi import APIRouter
from starlette.types import Scope

from server.http.requests.parameters import json_names, looks_like_json
from server.http.responses.errors import ErrorFormat

_MAX_NAMES = 1000
_MAX_NAME_BYTES = 100  # longer names are no sign of a protocol


class RequestFields:
    """Names of the fields that a request has in its query, and in its JSON object or form.

    The body is parsed only if it may have a field in question, and then once: `read_parameters` takes the JSON object.
    """

    def __init__(self, scope: Scope, body: bytes = b"") -> None:
        self.method: str = scope["method"]
        self.query = _form_names(scope["query_string"])
        self._scope = scope
        self._body = body
        self._body_names: frozenset[str] | None = None

    def has(self, *names: str) -> bool:
        """Return whether the query or the body has all these fields."""
        return self.query.issuperset(names) or (self._may_have(names) and self._names_in_body().issuperset(names))

    def _may_have(self, names: Collection[str]) -> bool:
        is_escaped = b"\\u" in self._body or b"%" in self._body  # a name may be escaped, too
        return is_escaped or all(name.encode() in self._body for name in names)

    def _names_in_body(self) -> frozenset[str]:
        if self._body_names is None:
            if looks_like_json(self._body):
                self._body_names = frozenset(json_names(self._scope, self._body))
            else:
                self._body_names = _form_names(self._body)
        return self._body_names


@dataclass(frozen=True, slots=True)
class SharedPaths:
    """Paths of other protocols too, at which this one owns the requests with its fields; its routes have the prefix."""

    prefix: str
    paths: tuple[str, ...]
    owns: Callable[[RequestFields], bool]


@dataclass(frozen=True, slots=True)
class Protocol:
    """Routers, error format and upload paths of a protocol.

    `paths` belong to the protocol even where no route exists, so that their errors have its format; a path that ends
    with a slash is a prefix. `aliases` are further paths, with the path of each route. `upload_paths` accept files,
    `raw_upload_paths` a file as the body, and POST requests to `engine_free_paths` translate nothing: a full server
    handles them. With API keys, `open_paths` need none, and clients of the protocol may send theirs as the parameter
    `key_parameter`, in the query as one of `key_queries`, or in one of the headers `key_headers`, without a scheme.
    """

    name: str
    routers: tuple[APIRouter, ...]
    error_format: ErrorFormat
    paths: tuple[str, ...]
    shared: tuple[SharedPaths, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    upload_paths: tuple[str, ...] = ()
    raw_upload_paths: tuple[str, ...] = ()
    engine_free_paths: tuple[str, ...] = ()
    open_paths: tuple[str, ...] = ()
    key_parameter: str | None = None
    key_queries: tuple[str, ...] = ()
    key_headers: tuple[str, ...] = ()

    def owns(self, path: str) -> bool:
        """Return whether a path of an address, without its query, belongs to the protocol."""
        return bool(self.owned_length(path))

    def owned_length(self, path: str) -> int:
        """Return how many characters of a path the protocol names; 0 if it is another one's."""
        return max((len(own) for own in self.paths if _is_one_of(path, (own,))), default=0)

    def needs_engine(self, path: str) -> bool:
        """Return whether a POST request to a path of the protocol may need an engine at once."""
        return path not in self.upload_paths and not _is_one_of(path, self.engine_free_paths)

    def is_open(self, path: str) -> bool:
        """Return whether a path needs no API key."""
        return _is_one_of(path, self.open_paths)


def _is_one_of(path: str, own: tuple[str, ...]) -> bool:
    return any(path.startswith(each) if each.endswith("/") else path == each for each in own)


def _form_names(fields: bytes) -> frozenset[str]:
    if not fields or fields.count(b"&") >= _MAX_NAMES:
        return frozenset()
    names = (each.partition(b"=")[0] for each in fields.split(b"&"))
    return frozenset(unquote_plus(name.decode("latin-1")) for name in names if len(name) <= _MAX_NAME_BYTES)
