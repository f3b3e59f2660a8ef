import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.support.select import Select

from tests.browser.visit import Visit
from tests.end_to_end.servers import Served

# What a browser without a network hears: nothing. So it is told.
_RECOGNITION = """
window.SpeechRecognition = class extends EventTarget {
  start() { window.recognition = this; }
  stop() {}
  hear(...results) {
    const made = results.map(([transcript, isFinal]) => Object.assign([{ transcript }], { isFinal }));
    this.dispatchEvent(Object.assign(new Event("result"), { results: made, resultIndex: 0 }));
  }
};
"""


@pytest.fixture
def live(fresh: Chrome, served: Served) -> Iterator[Visit]:
    """The page for text that is still being spoken, from English to German."""
    visit = Visit(fresh, f"{served.url}/live")
    visit.chromium.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": served.url, "storageTypes": "all"})
    visit.open()
    _choose(visit, "en")
    yield visit
    assert not visit.complaints()


def _choose(visit: Visit, source: str) -> None:
    """Choose a source language, and wait for the session."""
    Select(visit.find("source-language")).select_by_value(source)
    visit.until(lambda: visit.find("screen").is_displayed())


def _committed(visit: Visit) -> str:
    return str(visit.find("committed").get_property("textContent"))


def test_what_is_typed_is_translated_and_never_taken_back(live: Visit) -> None:
    live.evaluate(
        "window.seen = [], new MutationObserver(() => seen.push(committed.textContent))"
        ".observe(committed, {childList: true})"
    )
    live.type("Good morning. Where is the station? My sister has bought a new red car.\n")
    live.until(lambda: _committed(live).endswith("."))
    live.until(lambda: live.find("draft").text == "")
    seen = live.evaluate("window.seen")
    assert isinstance(seen, list)
    assert all(str(later).startswith(str(earlier)) for earlier, later in pairwise(seen))
    assert _committed(live).startswith("Guten Morgen. Wo ist der Bahnhof?")
    assert live.find("output").get_attribute("lang") == "de"


def test_a_draft_is_grey_and_not_read_aloud(live: Visit) -> None:
    live.type("My sister has bought a")
    live.until(lambda: live.find("draft").text)
    assert live.colour("draft", "color") != live.colour("output", "color")
    assert live.find("draft").get_attribute("aria-hidden") == "true"
    assert live.find("committed").get_attribute("aria-live") == "polite"


def test_revised_text_changes_only_what_is_not_committed(live: Visit) -> None:
    live.type("Good morning. Where is the airport")
    live.until(lambda: _committed(live).startswith("Guten Morgen."))
    live.paste("Good morning. Where is the station?\n")
    live.until(lambda: "Bahnhof" in _committed(live))
    assert "Flughafen" not in _committed(live)


def test_a_second_screen_shows_the_translation_alone(live: Visit) -> None:
    first = live.chromium.current_window_handle
    live.find("screen").click()
    live.until(lambda: len(live.chromium.window_handles) == 2)
    [second] = set(live.chromium.window_handles) - {first}
    live.type("Good morning.\n")
    live.chromium.switch_to.window(second)
    try:
        live.until(lambda: _committed(live) == "Guten Morgen.")
        assert not live.find("source").is_displayed()
    finally:
        live.chromium.close()
        live.chromium.switch_to.window(first)


def test_another_language_begins_again(live: Visit) -> None:
    live.type("Good morning.\n")
    live.until(lambda: _committed(live) == "Guten Morgen.")
    _choose(live, "de")
    live.until(lambda: _committed(live) == "")
    live.type("Guten Morgen.\n")
    live.until(lambda: _committed(live) == "Good morning.")


def test_a_lost_connection_is_opened_again_and_nothing_is_shown_twice(live: Visit) -> None:
    live.type("Good morning.\n")
    live.until(lambda: _committed(live) == "Guten Morgen.")
    live.chromium.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    live.chromium.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    live.type("Thank you.\n")
    live.chromium.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {**offline, "offline": False, "downloadThroughput": -1, "uploadThroughput": -1},
    )
    live.until(lambda: "Dank" in _committed(live))
    assert _committed(live).count("Guten Morgen.") == 1


def test_speech_is_translated_and_the_page_says_that_it_leaves_the_device(fresh: Chrome, live: Visit) -> None:
    script = live.before_each_page(_RECOGNITION)
    try:
        live.open()
        _choose(live, "en")
        assert "sends what you say to its maker" in live.find("privacy").text
        live.find("listen").click()
        for heard in (["Good", False], ["Good mourning", False], ["Good morning", True]):
            live.evaluate(f"recognition.hear({json.dumps(heard)})")
        live.until(lambda: _committed(live) == "Guten Morgen")
        assert live.find("source").get_property("value") == "Good morning\n"
        assert live.find("listen").text == "Stop listening"
    finally:
        live.forget_script(script)
