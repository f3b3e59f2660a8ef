"""The servers of the end-to-end tests; starting one costs a second, so there are few."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import Served, relabelled, started


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """A server that decodes every sentence, however often it was asked; shared by all tests that leave it running."""
    yield from started("--cache-sentences", "0")


@pytest.fixture(scope="session")
def polyglot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of four bundles in one folder: English to German, French and Spanish, and German to English.

    All four are the model that comes along: only what it is given in English to make German of makes sense.
    """
    folder = tmp_path_factory.mktemp("bundles")
    for source, target in (("en", "de"), ("de", "en"), ("en", "fr"), ("en", "es")):
        relabelled(folder, source, target)
    yield from started("--model", str(folder), "--threads", "1")


@pytest.fixture
def draining() -> Iterator[Served]:
    """A server of its own, to be taken down."""
    yield from started("--drain-timeout-seconds", "60", "--cache-sentences", "0")
