"""Listening, saving, the model's note, long texts, shortcuts, and the documentation of the API."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import MAX_TEXT_CHARACTERS
from tests.browser.visit import Visit
from tests.end_to_end.servers import Served

# Headless Chromium has no voices: German is spoken by the device, and English only by a host of the network.
_VOICES = """
const voices = [
  { name: "Far", lang: "en-US", localService: false }, { name: "Near", lang: "de_DE", localService: true },
];
window.spoken = [];
window.SpeechSynthesisUtterance = class extends EventTarget {
  constructor(text) { super(); this.text = text; }
};
Object.defineProperty(window, "speechSynthesis", { value: Object.assign(new EventTarget(), {
  getVoices: () => voices,
  speak: (utterance) => { window.spoken.push(utterance); },
  cancel: () => { window.spoken.at(-1).dispatchEvent(new Event("error")); },
}) });
"""


@pytest.fixture
def with_voices(visit: Visit) -> Iterator[Visit]:
    """A visit on a device with a German voice."""
    script = visit.before_each_page(_VOICES)
    visit.open()
    yield visit
    visit.forget_script(script)


def test_the_translation_is_read_aloud_by_a_voice_of_the_device(with_voices: Visit) -> None:
    german = with_voices.translated("Good morning. Thank you.")
    listen = with_voices.find("listen-output")
    listen.click()
    assert with_voices.evaluate("window.spoken.map((each) => each.text).join('')") == german
    assert with_voices.evaluate("window.spoken.every((each) => each.voice.name === 'Near')")
    assert listen.get_attribute("aria-label") == "Stop listening"
    assert listen.get_attribute("aria-pressed") == "true"
    listen.click()
    assert listen.get_attribute("aria-label") == "Listen to the translation"
    listen.click()
    with_voices.evaluate("window.spoken.at(-1).dispatchEvent(new Event('end'))")
    assert listen.get_attribute("aria-pressed") == "false"


def test_no_text_is_given_to_a_voice_of_another_host(with_voices: Visit) -> None:
    with_voices.translated("Good morning.")
    assert not with_voices.find("listen-source").is_enabled()
    assert with_voices.find("listen-source").get_attribute("title") == "This device has no voice for English"


def test_the_translation_is_saved_as_a_file(visit: Visit, tmp_path: Path) -> None:
    visit.chromium.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path), "eventsEnabled": False}
    )
    german = visit.translated("Where is the station?")
    visit.find("download").click()
    saved = tmp_path / "translation.de.txt"
    visit.until(saved.exists)
    visit.until(lambda: saved.read_text(encoding="utf-8") == german)


def test_control_and_enter_translate_at_once(visit: Visit) -> None:
    visit.evaluate(
        "window.fetched = 0, window.original = fetch, window.fetch = (...all) => (fetched += 1, original(...all))"
    )
    visit.find("source").send_keys("Tea.")
    ActionChains(visit.chromium).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    assert visit.number("window.fetched") >= 1
    assert visit.find("source").get_property("value") == "Tea."
    visit.until(lambda: visit.is_settled)


def test_the_model_that_answered_is_named_with_its_purpose_and_quality(visit: Visit, served: Served) -> None:
    assert not visit.find("model").is_displayed()
    visit.translated("Good morning.")
    with served.client() as client:
        [model] = [each for each in client.get("/v1/models").json()["models"] if each["name"] == "en-de"]
    assert visit.find("model").text == "Model: en-de · demonstration model"
    visit.find("model").click()
    shown = visit.find("model").text
    assert model["purpose"] in shown
    assert model["quality"]
    for each in model["quality"]:
        assert f"BLEU {each['bleu']:.1f}: {each['data']}" in shown
    visit.find("clear").click()
    assert not visit.find("model").is_displayed()


def test_a_text_that_is_too_long_is_reported_in_place_of_its_translation(visit: Visit) -> None:
    visit.translated("Good morning.")
    visit.paste("Thank you. " * (MAX_TEXT_CHARACTERS // 11 + 1))
    notice = visit.find("error-notice")
    visit.until(notice.is_displayed)
    assert notice.text.startswith("The text is ")
    assert "too long to be translated at once: at most 6,000 are possible." in notice.text
    assert visit.translation == ""
    top = visit.number("document.getElementById('error-notice').getBoundingClientRect().top")
    assert 0 < top < visit.number("innerHeight / 2")
    visit.all("#error-notice button")[0].click()
    visit.until(lambda: visit.all("#files a"))
    visit.paste("Thank you.")
    visit.until(lambda: visit.is_settled)
    assert not notice.is_displayed()


@pytest.mark.parametrize("width", [1280, 390])
def test_long_texts_scroll_in_their_boxes(visit: Visit, width: int) -> None:
    if width < 1000:
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        visit.chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    visit.paste("Good morning. Thank you.\n" * 200)
    visit.until(lambda: visit.is_settled)
    height = visit.number("innerHeight")
    for selector in (".writing", ".output"):
        box = visit.all(selector)[0]
        assert box.rect["height"] < 0.7 * height
        assert visit.number(f"document.querySelector('{selector}').scrollHeight") > 2 * height

    def is_scrolled() -> bool:
        visit.find("source").send_keys(Keys.CONTROL, Keys.END)
        return bool(visit.evaluate("document.querySelector('.writing').scrollTop > 100"))

    visit.until(is_scrolled)


def test_the_highlighted_source_is_scrolled_into_view(visit: Visit) -> None:
    visit.paste("Good morning.\n" * 100 + "My sister has a red car.")
    visit.until(lambda: visit.is_settled)
    visit.evaluate("document.querySelector('.writing').scrollTop = 0")
    last = visit.all("#output .word")[-1]
    visit.evaluate("document.querySelector('.output').scrollTop = 1e6")
    visit.point_at(last)
    visit.until(lambda: visit.evaluate("document.querySelector('.writing').scrollTop > 100"))


def test_the_documentation_of_the_api_opens_under_its_policy(first_visit: Visit) -> None:
    first_visit.chromium.get(f"{first_visit.url}docs")
    first_visit.until(lambda: first_visit.all(".opblock-summary-path"))
    paths = {path.text.replace("\u200b", "") for path in first_visit.all(".opblock-summary-path")}
    assert {"/v1/translate", "/v1/models"} <= paths
    assert not first_visit.complaints()


def test_names_of_controls_are_complete_with_the_history_and_a_list_open(visit: Visit) -> None:
    visit.translated("Good morning.")
    visit.find("copy").click()
    for opener in ("history", "source-language"):
        visit.find(opener).click()
        tree = visit.chromium.execute_cdp_cmd("Accessibility.getFullAXTree", {})
        roles = {"button", "combobox", "textbox", "link", "checkbox", "listbox", "option", "dialog"}
        nodes = [node for node in tree["nodes"] if not node.get("ignored") and node["role"]["value"] in roles]
        assert len(nodes) > 5
        assert not [node["role"]["value"] for node in nodes if not node.get("name", {}).get("value")]
        visit.press(Keys.ESCAPE)
