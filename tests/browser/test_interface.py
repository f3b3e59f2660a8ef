"""The page in its four languages."""

import re
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from tests.browser.visit import Visit
from tests.end_to_end.servers import Served
from tests.server.http.page.page_texts import texts_of

HEADINGS = {"en": "Alternatives", "de": "Alternativen", "fr": "Variantes", "es": "Alternativas"}
# Every text and every name that a user or a screen reader meets, without languages' own names.
_SHOWN = """(() => {
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    if (node.closest("noscript, option, .output, .writing .mirror, [lang]:not(html)")) continue;
    for (const child of node.childNodes) if (child.nodeType === Node.TEXT_NODE) found.push(child.data);
    for (const name of ["aria-label", "title", "placeholder"]) found.push(node.getAttribute(name) ?? "");
  }
  return found.map((text) => text.trim()).filter(Boolean);
})()"""


@pytest.fixture
def speaks(fresh: Chrome, served: Served) -> Iterator[Visit]:
    """A visit whose test chooses the languages of the browser."""
    visit = Visit(fresh, f"{served.url}/")
    yield visit
    assert not visit.complaints()
    _accept(visit, "en-US,en")
    fresh.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": visit.url, "storageTypes": "all"})


def _accept(visit: Visit, languages: str) -> None:
    agent = visit.chromium.execute_script("return navigator.userAgent")
    visit.chromium.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": agent, "acceptLanguage": languages})
    visit.chromium.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": visit.url, "storageTypes": "all"})


@pytest.mark.parametrize(
    ("languages", "tag"), [("de-AT,en", "de"), ("it,fr-CA,en", "fr"), ("es-419,es", "es"), ("ja,ko", "en")]
)
def test_the_page_follows_the_languages_of_the_browser(speaks: Visit, languages: str, tag: str) -> None:
    _accept(speaks, languages)
    speaks.open()
    assert speaks.evaluate("document.documentElement.lang") == tag
    assert speaks.find("show-alternatives").text == HEADINGS[tag]
    assert speaks.chosen("interface") == tag


def test_a_switch_is_remembered_and_keeps_text_and_translation(visit: Visit) -> None:
    translation = visit.translated("Good morning.")
    visit.switch_interface("de")
    assert visit.find("source-language").text == "Englisch"
    assert visit.translation == translation
    assert visit.find("source").get_property("value") == "Good morning."
    visit.open()
    assert visit.evaluate("document.documentElement.lang") == "de"
    assert visit.find("show-alternatives").text == "Alternativen"


@pytest.mark.parametrize("tag", ["de", "fr", "es"])
def test_no_english_remains_after_a_switch(first_visit: Visit, tag: str) -> None:
    first_visit.paste("Where is the station, please?")
    first_visit.until(lambda: first_visit.is_settled)
    first_visit.find("show-alternatives").click()
    first_visit.until(lambda: len(first_visit.all("#alternatives .option")) > 1)
    first_visit.drop(["broken.docx", "no document at all", ""])
    first_visit.until(lambda: first_visit.all("#files .failed"))
    first_visit.switch_interface(tag)
    first_visit.find("target-language").click()
    first_visit.press("zzz")
    theirs = {text for text in texts_of(tag).values() if isinstance(text, str)}
    english = (
        {text for text in texts_of("en").values() if isinstance(text, str)} - theirs - {texts_of("en")["model.bleu"]}
    )
    shown = first_visit.evaluate(_SHOWN)
    assert isinstance(shown, list)
    patterns = [_pattern(text) for text in english if re.search(r"[A-Za-z]{3}", re.sub(r"\{\w+\}", "", text))]
    remaining = {text for text in shown for pattern in patterns if pattern.fullmatch(str(text))}
    assert remaining == set()
    assert len(theirs & set(map(str, shown))) > 25


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".+".join(re.escape(part) for part in re.split(r"\{\w+\}", text)))


def test_errors_of_the_server_are_explained_in_the_language_of_the_page(visit: Visit) -> None:
    visit.switch_interface("de")
    visit.evaluate("document.getElementById('target-language').value = 'xx'")
    visit.type("Thank you.")
    visit.until(visit.find("error-notice").is_displayed)
    assert visit.find("error-notice").text.startswith("Der Server hat dies nicht angenommen.")
    [detail] = visit.all("#error-notice [lang=en]")
    assert detail.text.startswith("No model translates")
    visit.switch_interface("fr")
    assert visit.find("error-notice").text.startswith("Le serveur n’a pas accepté la demande.")


def test_numbers_and_plural_forms_are_those_of_the_language(visit: Visit) -> None:
    limit = visit.evaluate(
        "fetch('v1/limits').then((response) => response.json()).then((limits) => limits.max_text_characters)"
    )
    assert isinstance(limit, int)
    visit.switch_interface("es")
    visit.paste("x" * (limit + 1))
    assert visit.find("count").text.startswith("Sobra 1 carácter:")
    visit.paste("x" * (limit + 2))
    assert visit.find("count").text.startswith("Sobran 2 caracteres:")
    visit.switch_interface("de")
    assert visit.find("count").text == "2 Zeichen zu viel: höchstens 6.000"
