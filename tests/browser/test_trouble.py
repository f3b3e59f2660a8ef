from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from server.operations.api_keys.key_file import KeyFile, KeyLimits
from tests.browser.conftest import MAX_WAITING
from tests.browser.visit import Visit
from tests.end_to_end.servers import Served, gauge, until
from tests.end_to_end.servers import started as server_started

_CROWD = MAX_WAITING // 5 + 20  # calls: more than have room


@pytest.fixture
def mortal() -> Iterator[Served]:
    """A server that a test takes down."""
    yield from server_started("--threads", "1")


@contextmanager
def standing_still(served: Served) -> Iterator[None]:
    """Stop the processes of the engines for a moment."""
    engines = psutil.Process(served.process.pid).children(recursive=True)
    for each in engines:
        each.suspend()
    try:
        yield
    finally:
        for each in engines:
            each.resume()


def test_a_busy_server_is_reported_beside_the_pane_and_retried(visit: Visit, served: Served) -> None:
    with served.client() as client, ThreadPoolExecutor(_CROWD) as pool:
        # Engines that stand still keep the queue full, however fast they are. Rests of long calls would make room.
        short = {"text": ["Good morning."] * 5, "source": "en", "target": "de"}
        with standing_still(served):
            answers = [pool.submit(client.post, "/v1/translate", json=short) for _ in range(_CROWD)]
            until(lambda: gauge(client, "kvasir_requests_waiting") >= MAX_WAITING)
            visit.paste("Thank you.")
            problem = visit.find("error-notice")
            visit.until(problem.is_displayed)
        assert problem.text.startswith("Kvasir is busy. The queue is full:")
        assert "Trying again in" in problem.text
        assert "Try now" in problem.text
        assert problem.get_attribute("role") == "alert"
        assert {answer.result().status_code for answer in answers} == {200, 429}
    visit.until(lambda: visit.is_settled)
    assert visit.translation == "Vielen Dank."
    assert not problem.is_displayed()


def test_an_error_that_a_retry_cannot_mend_has_the_message_of_the_server(visit: Visit) -> None:
    # A language that was there when the page was loaded, and is no more.
    visit.evaluate("document.getElementById('target-language').value = 'xx'")
    visit.type("Thank you.")
    problem = visit.find("error-notice")
    visit.until(problem.is_displayed)
    assert problem.text == "No model translates from en to xx; available: de to en, en to de."


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[tuple[Served, str]]:
    """Return a server that requires an API key, and a key."""
    keys = tmp_path / "keys.sqlite"
    _, key = KeyFile(keys).add("browser", KeyLimits())
    for served in server_started("--threads", "1", "--api-keys", str(keys)):
        yield served, key


def test_a_server_with_keys_asks_for_one_and_accepts_it(fresh: Chrome, keyed: tuple[Served, str]) -> None:
    served, key = keyed
    visit = Visit(fresh, f"{served.url}/")
    fresh.get(visit.url)
    visit.until(visit.find("error-notice").is_displayed)
    assert visit.find("error-notice").text.startswith("This server requires an API key.")
    for given in ("wrong", key):
        [field] = visit.all("#error-notice input")
        field.send_keys(given, Keys.ENTER)
        if given != key:
            visit.until(lambda: "unknown or has expired" in visit.find("error-notice").text)
    visit.until(visit.find("source-language").is_enabled)
    assert not visit.find("error-notice").is_displayed()
    assert visit.translated("Good morning.")
    visit.drop(["page.html", "<p>Good morning.</p>", "text/html"])
    visit.until(lambda: visit.all("#files a"))
    visit.open()
    assert visit.translated(" Thank you.")


def test_an_unreachable_server_is_reported_and_the_text_stays(fresh: Chrome, mortal: Served) -> None:
    visit = Visit(fresh, f"{mortal.url}/")
    visit.open()
    visit.translated("Good morning.")
    mortal.process.kill()
    mortal.process.wait()
    visit.type(" Thank you.")
    visit.until(visit.find("error-notice").is_displayed)
    assert "Kvasir does not answer" in visit.find("error-notice").text
    assert "Trying again" in visit.find("error-notice").text
    assert visit.find("source").get_property("value") == "Good morning. Thank you."


def test_what_was_typed_offline_is_translated_as_soon_as_there_is_a_line(visit: Visit) -> None:
    conditions = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    visit.chromium.execute_cdp_cmd("Network.enable", {})
    visit.chromium.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **conditions})
    try:
        visit.type("Thank you.")
        visit.until(visit.find("error-notice").is_displayed)
        assert visit.find("error-notice").text.startswith("This device is offline.")
    finally:
        visit.chromium.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **conditions})
    visit.until(lambda: visit.is_settled)
    assert visit.translation == "Vielen Dank."
    assert not visit.find("error-notice").is_displayed()
