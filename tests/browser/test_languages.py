"""Choice of languages: two directions, detection, and a list of many languages."""

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import MAX_TEXT_CHARACTERS
from tests.browser.visit import Visit

QUESTION = "Where is the station, please?"
ANSWER = "Guten Morgen, wo ist bitte der Bahnhof?"
_TAGS = (
    "af am ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fil fr ga gl gu ha hi hr ht hu hy id ig is it ja "
    "jv ka kk km kn ko ku ky lo lt lv mg mi mk ml mn mr ms mt my nb ne nl pa pl ps pt ro ru rw sd si sk sl so sq sr st "
    "su sv sw ta te tg th ti tk tr tt uk ur uz vi xh yo zh zu"
)
# 188 languages: those above, and each again with the region of a country.
_MANY_LANGUAGES = f"""
const original = fetch;
const base = "{_TAGS}".split(" ");
const tags = [...base, ...base.map((tag) => tag + "-IN")];
window.fetch = async (path, options) => {{
  const response = await original(path, options);
  if (path !== "v1/models") return response;
  const models = await response.json();
  const others = tags.filter((tag) => tag !== "en");
  models.pairs.push(...others.map((target) => ({{ source: "en", target, models: [], pivot: null }})));
  return new Response(JSON.stringify(models));
}};
"""


@pytest.fixture
def many_languages(first_visit: Visit) -> Iterator[Visit]:
    """A visit to a page with a long list of target languages."""
    script = first_visit.before_each_page(_MANY_LANGUAGES)
    first_visit.open()
    yield first_visit
    first_visit.forget_script(script)


def _names(visit: Visit) -> list[str]:
    return [option.text.split("\n")[0] for option in visit.options]


def _active(visit: Visit) -> str:
    search = visit.chromium.switch_to.active_element
    assert search.get_attribute("role") == "combobox"
    return visit.find(str(search.get_attribute("aria-activedescendant"))).text.split("\n")[0]


@pytest.mark.parametrize(
    ("text", "source", "target", "other"), [(QUESTION, "English", "de", "German"), (ANSWER, "German", "en", "English")]
)
def test_the_target_leaves_the_language_of_the_text_visibly(
    first_visit: Visit, text: str, source: str, target: str, other: str
) -> None:
    visit = first_visit
    visit.choose("Detect language", source)
    visit.evaluate(
        "window.flashed = false, new MutationObserver(() => { window.flashed = true; })"
        ".observe(document.getElementById('target-language'), {attributeFilter: ['class']})"
    )
    visit.paste(text)
    visit.until(lambda: visit.is_settled)
    assert visit.chosen("target-language") == target
    assert visit.translation
    assert visit.translation != text
    assert visit.note == f"The text is in {source}; the target is now {other}."
    assert visit.announced.startswith(visit.note)
    assert visit.evaluate("window.flashed")


def test_a_target_that_the_user_insists_on_stays(first_visit: Visit) -> None:
    first_visit.paste(QUESTION)
    first_visit.until(lambda: first_visit.is_settled)
    first_visit.choose("Detect language", "English")
    first_visit.until(lambda: first_visit.translation == QUESTION)
    first_visit.until(lambda: first_visit.note == "The text is in English already.")
    assert first_visit.chosen("target-language") == "en"


def test_swap_and_alternatives_work_after_a_detection(first_visit: Visit) -> None:
    first_visit.paste(QUESTION)
    first_visit.until(lambda: first_visit.is_settled)
    first_visit.find("show-alternatives").click()
    first_visit.until(lambda: len(first_visit.all("#alternatives .option")) > 1)
    german = first_visit.translation
    first_visit.find("swap").click()
    first_visit.until(lambda: first_visit.is_settled)
    assert (first_visit.chosen("source-language"), first_visit.chosen("target-language")) == ("de", "en")
    assert first_visit.find("source").get_property("value") == german
    assert first_visit.translation != german


def test_swap_works_before_there_is_a_text(first_visit: Visit) -> None:
    target = first_visit.chosen("target-language")
    first_visit.find("swap").click()
    assert first_visit.chosen("source-language") == target
    assert first_visit.chosen("target-language") not in ("", target)


def test_a_source_that_is_the_target_takes_another_target(visit: Visit) -> None:
    visit.find("source-language").click()
    next(option for option in visit.options if option.text.startswith("German")).click()
    assert (visit.chosen("source-language"), visit.chosen("target-language")) == ("de", "en")


def test_a_long_text_is_translated_as_a_file_into_another_language_than_its_own(first_visit: Visit) -> None:
    first_visit.choose("Detect language", "English")
    first_visit.paste(f"{QUESTION} " * (MAX_TEXT_CHARACTERS // len(QUESTION) + 1))
    first_visit.until(lambda: first_visit.find("error-notice").is_displayed())
    first_visit.all("#error-notice button")[0].click()
    first_visit.until(lambda: first_visit.all("#files a"))
    assert first_visit.all("#files a")[0].get_attribute("download") == "text.de.txt"


@pytest.mark.parametrize(("query", "first"), [("deut", "German"), ("sv", "Swedish")])
def test_a_language_is_found_by_its_names_and_its_tag(many_languages: Visit, query: str, first: str) -> None:
    many_languages.find("target-language").click()
    assert len(many_languages.options) > 180
    many_languages.press(query)
    assert _names(many_languages)[0] == first == _active(many_languages)
    many_languages.press(Keys.ENTER)
    assert not many_languages.options
    assert many_languages.focused == "target-language"
    assert many_languages.find("target-language").text == first


def test_names_that_the_browser_does_not_have_come_from_the_server(first_visit: Visit) -> None:
    names = """
    const original = fetch;
    window.fetch = async (path, options) => {
      const response = await original(path, options);
      if (String(path) === "v1/models") {
        const models = await response.json();
        models.pairs.push({ source: "en", target: "cv", models: [], pivot: null });
        return new Response(JSON.stringify(models));
      }
      if (String(path) !== "v1/languages?in=de") return response;
      return new Response('{"languages": [{"language": "cv", "name": "Tschuwaschisch", "own_name": "чӑваш"}]}');
    };
    """
    script = first_visit.before_each_page(names)
    try:
        first_visit.switch_interface("de")
        first_visit.open()
        first_visit.find("target-language").click()
        first_visit.press("tschu")
        assert first_visit.options[0].text == "Tschuwaschisch\nЧӑваш"
    finally:
        first_visit.forget_script(script)


def test_accents_and_case_need_not_be_typed(many_languages: Visit) -> None:
    many_languages.find("target-language").click()
    many_languages.press("FRANCAIS")
    assert _names(many_languages)[0] == "French"
    many_languages.press("xyz")
    assert not many_languages.options
    assert many_languages.all(".picker .none")[0].text == "No language matches"


def test_recent_languages_are_first(many_languages: Visit) -> None:
    for name in ("Zulu", "Maori", "Greek"):
        many_languages.find("target-language").click()
        many_languages.press(name, Keys.ENTER)
    many_languages.open()
    many_languages.find("target-language").click()
    assert _names(many_languages)[:3] == ["Greek", "Māori", "Zulu"]
    assert _names(many_languages).count("Zulu") == 1
    headings = [heading.get_property("textContent") for heading in many_languages.all("[role=group] > p")]
    assert headings == ["Recent", "All languages"]


def test_the_list_is_used_with_keys_alone_and_its_active_language_is_visible(many_languages: Visit) -> None:
    many_languages.find("target-language").send_keys(Keys.ARROW_DOWN)
    names = _names(many_languages)
    start = names.index(_active(many_languages))
    many_languages.press(Keys.ARROW_DOWN, Keys.PAGE_DOWN, Keys.PAGE_DOWN)
    assert _active(many_languages) == names[start + 17]
    inside = """(() => {
      const [list, option] = [document.querySelector(".options"), document.querySelector(".language-option.active")];
      const [outer, inner] = [list.getBoundingClientRect(), option.getBoundingClientRect()];
      return inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    })()"""
    assert many_languages.evaluate(inside)
    many_languages.press(Keys.ESCAPE)
    assert not many_languages.options
    assert many_languages.focused == "target-language"
    many_languages.press(Keys.ENTER, Keys.TAB)
    assert not many_languages.options
    assert many_languages.focused == "source"


def test_the_list_closes_after_a_click_elsewhere(visit: Visit) -> None:
    visit.find("target-language").click()
    assert visit.find("target-language").get_attribute("aria-expanded") == "true"
    visit.find("output").click()
    assert not visit.options
    assert visit.find("target-language").get_attribute("aria-expanded") == "false"
