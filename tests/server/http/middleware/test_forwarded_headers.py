import asyncio
import logging

import pytest
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from server.http.middleware.forwarded_headers import ForwardedHeaders
from server.operations.settings import Settings

_FORWARDED = [(b"x-forwarded-for", b"192.0.2.9, 198.51.100.7"), (b"x-forwarded-proto", b"https")]


def _seen(trusted: list[str], client: tuple[str, int] | None, times: int = 1) -> tuple[object, object]:
    """Return client and scheme that the application sees."""
    seen: list[tuple[object, object]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope["client"] and scope["client"][0], scope["scheme"]))

    async def receive() -> dict[str, object]:
        raise AssertionError

    async def send(_: object) -> None:
        raise AssertionError

    forwarded = ForwardedHeaders(app, trusted)
    for _ in range(times):
        scope = {"type": "http", "client": client, "scheme": "http", "headers": _FORWARDED}
        asyncio.run(forwarded(scope, receive, send))
    return seen[-1]


@pytest.mark.parametrize("client", [("127.0.0.1", 5), ("::1", 5), ("198.51.100.8", 5), None])
def test_by_default_no_client_names_its_address(client: tuple[str, int] | None) -> None:
    assert _seen([], client) == (client and client[0], "http")


@pytest.mark.parametrize(
    ("trusted", "client"),
    [("127.0.0.1", ("127.0.0.1", 5)), ("198.51.96.0/20", ("198.51.100.8", 5)), ("::1", ("::1", 5)), ("unix", None)],
)
def test_a_trusted_proxy_names_its_client(trusted: str, client: tuple[str, int] | None) -> None:
    # The last address is the one that the proxy itself has seen.
    last = "192.0.2.9" if "/" in trusted else "198.51.100.7"
    assert _seen([trusted], client) == (last, "https")


def test_a_proxy_that_is_not_trusted_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kvasir"):
        _seen(["unix"], ("127.0.0.1", 5), times=3)
    assert [record.getMessage() for record in caplog.records] == ["X-Forwarded-For ignored; see --trusted-proxies"]


def test_trusted_proxies_are_addresses() -> None:
    assert Settings(trusted_proxies="127.0.0.1, 10.0.0.0/8,unix").trusted_proxies == ["127.0.0.1", "10.0.0.0/8", "unix"]  # type: ignore[arg-type]
    for wrong in ("localhost", "10.0.0.1/8", "*"):
        with pytest.raises(ValidationError, match="must be IP addresses, networks such as"):
            Settings(trusted_proxies=[wrong])
