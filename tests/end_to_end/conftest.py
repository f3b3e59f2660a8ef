"""The servers of the end-to-end tests; starting one costs a second, so there are few."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import Served, started


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """A server that decodes every sentence, however often it was asked; shared by all tests that leave it running."""
    yield from started("--cache-sentences", "0")


@pytest.fixture
def draining() -> Iterator[Served]:
    """A server of its own, to be taken down."""
    yield from started("--drain-timeout-seconds", "60", "--cache-sentences", "0")


@pytest.fixture
def remembering() -> Iterator[Served]:
    """A server with its cache, to be taken down."""
    yield from started("--drain-timeout-seconds", "60")
