"""A running server and a real browser; `make page-test` runs what is here."""

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from tests.browser.chromium import programs, started
from tests.browser.visit import Visit
from tests.end_to_end.servers import Served
from tests.end_to_end.servers import started as server_started
from tests.loopback_only import block_the_network

MAX_TEXT_CHARACTERS = 6000
MAX_WAITING = 150  # sentences


def pytest_configure() -> None:
    """Ends here where there is no browser to test in."""
    block_the_network()
    if programs() is None:
        pytest.exit(
            "no Chromium here: these tests drive a real one. On Debian: apt-get install chromium chromium-driver", 1
        )


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """A server of English to German and back, without a cache."""
    flags = ("--max-text-characters", str(MAX_TEXT_CHARACTERS), "--max-waiting-requests", str(MAX_WAITING))
    yield from server_started("--model", "models", "--cache-sentences", "0", "--threads", "1", *flags)


@pytest.fixture(scope="session")
def one_way() -> Iterator[Served]:
    """A server of English to German alone."""
    yield from server_started("--threads", "1")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    """The browser, started once."""
    found = programs()
    assert found is not None
    with started(*found) as chromium:
        yield chromium


@pytest.fixture
def fresh(chromium: Chrome) -> Chrome:
    """The browser as on the first day, of the size of a desk."""
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.set_window_size(1280, 860)
    chromium.get("about:blank")
    chromium.get_log("browser")
    return chromium


@pytest.fixture
def first_visit(fresh: Chrome, served: Served) -> Iterator[Visit]:
    """A first visit, which leaves no error in the console."""
    visit = Visit(fresh, f"{served.url}/")
    _forget(visit)
    visit.open()
    yield visit
    assert not visit.complaints()
    _forget(visit)


@pytest.fixture
def visit(first_visit: Visit) -> Visit:
    """A visit with a source and a target language."""
    first_visit.choose("English", "German")
    return first_visit


@pytest.fixture
def one_way_visit(fresh: Chrome, one_way: Served) -> Iterator[Visit]:
    """A first visit where only one pair of languages is translated."""
    visit = Visit(fresh, f"{one_way.url}/")
    _forget(visit)
    visit.open()
    yield visit
    assert not visit.complaints()


def _forget(visit: Visit) -> None:
    visit.chromium.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": visit.url, "storageTypes": "all"})
