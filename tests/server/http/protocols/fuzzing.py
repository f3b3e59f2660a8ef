"""Random requests, mostly invalid: fields that are missing, repeated, of other types, or not Unicode."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx2

from server.http.responses.errors import ErrorFormat

_TEXTS = ("Tea.", "", " ", "a" * 300, "en", "de", "auto", "xx", "zh-TW", "\x00", "ﷺ{0}<b0>x</b0>", "a\r\nb\n", "1e999")
_RAW = (
    "{",
    "[",
    "null",
    "[[]]",
    '{"a":',
    "\ufeff{}",
    "[" * 3000,
    '{"text": NaN}',
    "a=%ff",
    "&" * 50,
    "=",
    '{"a":1}{',
    "\x00",
)
_MEDIA_TYPES = ("application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "x/y")


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """Addresses of a protocol, and bodies that it accepts."""

    paths: Sequence[str]
    bodies: Sequence[Mapping[str, object] | Sequence[object]]
    query: Mapping[str, str]


def random_request(client: httpx2.Client, fuzzed: Fuzzed, chance: random.Random) -> httpx2.Request:
    """Return a request to one of the addresses, with a valid body that was damaged, or with random bytes."""
    method = chance.choice(("POST", "POST", "POST", "GET", "DELETE"))
    address = chance.choice(fuzzed.paths)
    query = {
        name: chance.choice((value, _text(chance))) for name, value in fuzzed.query.items() if chance.random() < 0.8
    }
    body = _damaged(chance.choice(fuzzed.bodies), chance)
    kind = chance.randrange(4)
    if kind == 0:
        headers = {"Content-Type": chance.choice(_MEDIA_TYPES)}
        return client.build_request(
            method, address, params=query, content=chance.choice(_RAW).encode(), headers=headers
        )
    if kind == 1 and isinstance(body, dict):
        form = {str(name): _encodable(value) for name, value in body.items()}
        return client.build_request(method, address, params=query, data=form)
    if kind == 2 and isinstance(body, dict):
        form = {str(name): _encodable(value)[:200] for name, value in body.items()}
        return client.build_request("GET", address, params=query | form)
    headers = {"Content-Type": chance.choice(_MEDIA_TYPES[:3])}
    return client.build_request(method, address, params=query, content=json.dumps(body).encode(), headers=headers)


def check_error(answer: httpx2.Response, error_format: ErrorFormat) -> None:
    """Check that a response has the fields of a protocol's errors, with values of their types, and no others."""
    assert _shape(answer.json()) == _shape(error_format.body(answer.status_code, "code", "message"))


def _shape(value: object) -> object:
    return {name: _shape(each) for name, each in value.items()} if isinstance(value, Mapping) else type(value)


def _damaged(value: object, chance: random.Random) -> object:
    if chance.random() < 0.12:
        return _value(chance, 2)
    if isinstance(value, Mapping):
        return {name: _damaged(each, chance) for name, each in value.items() if chance.random() < 0.93}
    if isinstance(value, list):
        return [_damaged(each, chance) for each in value] * chance.choice((1, 1, 1, 0, 3))
    return value


def _value(chance: random.Random, depth: int) -> object:
    simple: tuple[object, ...] = (None, True, False, 0, -1, 1.5, 10**30, "\ud800", _text(chance), _text(chance), [], {})
    if depth and chance.random() < 0.3:
        nested = _value(chance, depth - 1)
        return chance.choice(([nested, nested], {"text": nested}))
    return chance.choice(simple)


def _encodable(value: object) -> str:
    return str(value).encode(errors="replace").decode()


def _text(chance: random.Random) -> str:
    return chance.choice(_TEXTS)
