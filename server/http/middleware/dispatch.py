"""Choice among protocols that share a path: `POST /translate` belongs to several, told apart by their field names.

Each protocol serves its routes below a prefix of its own. A request to a shared path gets that prefix, so that error
formats, API keys and metrics are those of its protocol.
"""

import asyncio
from collections.abc import Awaitable, Sequence

from starlette.types import Message, Receive, Scope

from server.http.middleware.gate import Admission, Arrival, path_of
from server.http.protocols.protocol import Protocol, RequestFields, SharedPaths
from server.http.raw_headers import header

_LONG_BYTES = 100_000
_NATIVE_PATHS = ("/v1/translate", "/")  # a request without a sign belongs to the native protocol there


class ProtocolDispatch:
    """Check at the gate that gives a request to a shared path the prefix of the protocol that its fields belong to.

    It reads the body of such a request, up to `max_body_bytes`, and replays it. The first protocol whose rule matches
    has the request; without a match, LibreTranslate or the native protocol, and if that is not selected, the first one
    with a rule. While no model accepts requests, the body is not read, and the error has the fields of all protocols
    that the request may belong to.
    """

    def __init__(self, protocols: Sequence[Protocol], max_body_bytes: int, admission: Admission) -> None:
        self._admission = admission
        self._max_body_bytes = max_body_bytes
        self._aliases = {alias: path for protocol in protocols for alias, path in protocol.aliases.items()}
        self._rules: dict[str, list[SharedPaths]] = {}
        for rule in [rule for protocol in protocols for rule in protocol.shared]:
            for path in rule.paths:
                self._rules.setdefault(path, []).append(rule)
        names = {protocol.name for protocol in protocols}
        self._prefixes = {
            path: "" if ("native" if path in _NATIVE_PATHS else "libretranslate") in names else rules[0].prefix
            for path, rules in self._rules.items()
        }

    def __call__(self, arrival: Arrival) -> Awaitable[None] | None:
        """Choose the protocol of one request."""
        scope, path = arrival.scope, arrival.paths[0]
        if path in self._aliases:
            self._move(arrival, self._aliases[path])
        elif path in self._rules and scope["method"] != "OPTIONS":
            self._move(arrival, self._prefixed(path, RequestFields(scope)))
            if self._has_readable_body(scope):
                return self._read(arrival, path)
        return None

    async def _read(self, arrival: Arrival, path: str) -> None:
        chosen = arrival.paths
        arrival.paths = (*chosen, *(rule.prefix + path for rule in reversed(self._rules[path])))
        self._admission(arrival)
        arrival.paths = chosen
        body, arrival.receive = await _read(arrival.receive, self._max_body_bytes)
        self._move(arrival, self._prefixed(path, RequestFields(arrival.scope, body)))
        if len(body) > _LONG_BYTES:
            await asyncio.sleep(0)  # the next one to parse it takes a turn of its own

    def _move(self, arrival: Arrival, path: str) -> None:
        arrival.scope["path"] = str(arrival.scope.get("root_path", "")) + path
        arrival.paths = (path_of(arrival.scope),)

    def _prefixed(self, path: str, fields: RequestFields) -> str:
        matching = (rule.prefix for rule in self._rules[path] if rule.owns(fields))
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
