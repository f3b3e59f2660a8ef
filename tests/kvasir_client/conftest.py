"""A server for the tests of the client."""

from collections.abc import Iterator

import pytest

from kvasir_client import Client
from tests.end_to_end.servers import Served, started


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """A server with the default model, shared by all tests."""
    yield from started("--max-queue-seconds", "3600")


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    """A blocking client of it."""
    with Client(served.url) as client:
        yield client
