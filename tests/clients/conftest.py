"""A running server for other people's clients."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import Served, relabelled, started


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server of four bundles listens; all are the default model, whatever languages they say they have."""
    folder = tmp_path_factory.mktemp("bundles")
    for source, target in (("en", "de"), ("de", "en"), ("en", "fr"), ("en", "es")):
        relabelled(folder, source, target)
    for served in started("--model", str(folder), "--threads", "1"):
        yield _address(served)


def _address(served: Served) -> str:
    return served.url
