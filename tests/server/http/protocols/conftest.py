"""A server that the tests of compatible protocols share."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator


@pytest.fixture(scope="module")
def engines(echo_for: EchoFor) -> list[EchoGenerator]:
    """Engines that answer with their source; their `batches` have the requests of each call."""
    return [echo_for("en", "de"), echo_for("de", "en"), echo_for("en", "zh-Hant")]


@pytest.fixture(scope="module")
def compatible(engines: list[EchoGenerator]) -> Iterator[TestClient]:
    """A client of a server with all protocols."""
    settings = Settings(max_texts=20, max_text_characters=2000, max_body_bytes=20_000)
    with TestClient(create_app(settings, engines)) as client:
        yield client
