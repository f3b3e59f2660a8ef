"""Choice among protocols that share a path: `POST /translate` belongs to several, told apart by their field names.

Each protocol serves its routes below a prefix of its own. A request to a shared path gets that prefix, so that error
formats, API keys and metrics are those of its protocol.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_plus

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.middleware.engine_admission import EngineAdmission
from server.http.raw_headers import header
from server.http.requests.parameters import json_names, looks_like_json
from server.http.responses.error_formats import ErrorFormats
from server.http.responses.errors import http_error_response, unread_error_response
from server.interface.errors import KvasirError

_MAX_NAMES = 1000
_LONG_BYTES = 100_000
_MAX_NAME_BYTES = 100  # longer names are no sign of a protocol


class Signs:
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
class DispatchRule:
    """Paths at which a protocol answers requests with a sign; its own routes for them have the prefix."""

    protocol: str
    prefix: str
    paths: tuple[str, ...]
    sign: Callable[[Signs], bool]


# The first rule that matches wins; a request that matches none belongs to LibreTranslate or to the native protocol.
RULES: tuple[DispatchRule, ...] = (
    DispatchRule(
        "microsoft",
        "/microsoft",
        ("/translate", "/detect", "/languages", "/breaksentence"),
        lambda signs: "api-version" in signs.query,
    ),
    DispatchRule("apertium", "/apertium", ("/translate",), lambda signs: signs.has("langpair")),
    DispatchRule(
        "games", "/xunity", ("/translate",), lambda signs: signs.method == "GET" and signs.has("from", "to", "text")
    ),
    DispatchRule("games", "/sugoi", ("/",), lambda signs: signs.method == "POST" and signs.has("message")),
    DispatchRule("deeplx", "/deeplx", ("/translate", "/v1/translate"), lambda signs: signs.has("text", "target_lang")),
    DispatchRule(
        "mtranserver",
        "/mtranserver",
        ("/translate",),
        lambda signs: signs.method == "POST" and signs.has("text", "from", "to"),
    ),
    DispatchRule("mtranserver", "/mtranserver", ("/translate/batch",), lambda _: True),
    DispatchRule("mtranserver", "/mtranserver", ("/detect",), lambda signs: signs.has("text") and not signs.has("q")),
)
# Addresses of MTranServer for other protocols: its users change the host only.
_ALIASES: Mapping[str, str] = {
    "/deepl": "/v2/translate",
    "/google/language/translate/v2": "/language/translate/v2",
    "/google/translate_a/single": "/translate_a/single",
}
_DEFAULTS: Mapping[str, str] = {"/v1/translate": "native", "/": "native"}
_DEFAULT = "libretranslate"


class ProtocolDispatch:
    """ASGI middleware that gives a request to a shared path the prefix of the protocol that its fields belong to.

    It reads the body of such a request, up to `max_body_bytes`, and replays it. Without a sign, the default protocol
    of the path answers; if that is not selected, the first selected one. While no model accepts requests, the body is
    not read, and the error has the fields of all protocols that it may belong to.
    """

    def __init__(
        self,
        app: ASGIApp,
        protocols: Collection[str],
        max_body_bytes: int,
        admission: EngineAdmission,
        formats: ErrorFormats,
    ) -> None:
        self._app = app
        self._admission = admission
        self._formats = formats
        self._formats_of_paths = lru_cache(formats.of_paths)
        self._max_body_bytes = max_body_bytes
        self._rules: dict[str, list[DispatchRule]] = {}
        for rule in RULES:
            for path in rule.paths if rule.protocol in protocols else ():
                self._rules.setdefault(path, []).append(rule)
        self._prefixes = {
            path: "" if _DEFAULTS.get(path, _DEFAULT) in protocols else rules[0].prefix
            for path, rules in self._rules.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes and paths."""
        root = str(scope.get("root_path", ""))
        path = str(scope.get("path", "")).removeprefix(root)
        if scope["type"] == "http" and path in _ALIASES:
            scope["path"] = root + _ALIASES[path]
        rules = self._rules.get(path)
        if scope["type"] != "http" or rules is None or scope["method"] == "OPTIONS":
            await self._app(scope, receive, send)
            return
        scope["path"] = root + self._prefixed(path, Signs(scope))
        if self._has_readable_body(scope):
            candidates = (scope["path"].removeprefix(root), *(rule.prefix + path for rule in reversed(rules)))
            try:
                self._admission.check(scope, *candidates)
                body, receive = await _read(receive, self._max_body_bytes)
            except KvasirError as error:
                response = unread_error_response(error, self._formats_of_paths(candidates), scope)
                await response(scope, receive, send)
                return
            except HTTPException as error:  # a limit of the body
                response = http_error_response(error, scope["method"], self._formats.of(scope))
                await response(scope, receive, send)
                return
            scope["path"] = root + self._prefixed(path, Signs(scope, body))
            if len(body) > _LONG_BYTES:
                await asyncio.sleep(0)  # the next one to parse it takes a turn of its own
        await self._app(scope, receive, send)

    def _prefixed(self, path: str, signs: Signs) -> str:
        matching = (rule.prefix for rule in self._rules[path] if rule.sign(signs))
        return next(matching, self._prefixes[path]) + path

    def _has_readable_body(self, scope: Scope) -> bool:
        announced = header(scope, b"content-length")
        is_too_large = announced.isdecimal() and int(announced) > self._max_body_bytes
        is_multipart = header(scope, b"content-type").lower().startswith("multipart/")
        return scope["method"] == "POST" and not is_too_large and not is_multipart


async def _read(receive: Receive, max_bytes: int) -> tuple[bytes, Receive]:
    """Return the body, and a function that receives it again. Of a larger body, the beginning is returned."""
    messages: list[Message] = []
    num_bytes = 0
    while num_bytes <= max_bytes:
        messages.append(await receive())
        num_bytes += len(messages[-1].get("body", b""))
        if not messages[-1].get("more_body", False):
            break
    body = b"".join(message.get("body", b"") for message in messages)
    remaining = iter(messages)

    async def replay() -> Message:
        return next(remaining, None) or await receive()

    return body, replay


def _form_names(fields: bytes) -> frozenset[str]:
    if not fields:
        return frozenset()
    if fields.count(b"&") >= _MAX_NAMES:
        return frozenset()
    names = (field.partition(b"=")[0] for field in fields.split(b"&"))
    return frozenset(unquote_plus(name.decode("latin-1")) for name in names if len(name) <= _MAX_NAME_BYTES)
