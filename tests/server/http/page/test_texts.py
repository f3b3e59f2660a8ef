"""Texts of the page: each language has the texts of all others, and the page uses them all."""

import re
from collections.abc import Iterator

import html5lib
import pytest

from server.http.page.routes import FOLDER, INDEX
from tests.server.http.page.page_texts import texts_of

LANGUAGES = ("en", "de", "es", "fr")
ATTRIBUTES = {"data-label": "aria-label", "data-title": "title", "data-placeholder": "placeholder"}


def _forms(text: str | dict[str, str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text.values())


ENGLISH = texts_of("en")


def test_there_are_texts_for_every_language_that_the_page_offers() -> None:
    page = (FOLDER / INDEX).read_text(encoding="utf-8")
    assert set(re.findall(r'<option value="(\w+)"', page)) == set(LANGUAGES)
    assert {path.stem.removeprefix("texts_") for path in FOLDER.glob("texts_*.js")} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_its_values(language: str) -> None:
    texts = texts_of(language)
    assert list(texts) == list(ENGLISH)
    for key, text in texts.items():
        expected = {name for form in _forms(ENGLISH[key]) for name in re.findall(r"\{(\w+)\}", form)}
        for form in _forms(text):
            assert form.strip() == form != "", key
            assert set(re.findall(r"\{(\w+)\}", form)) == expected, key


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_with_a_count_have_the_plural_forms_of_the_language(language: str) -> None:
    for key, text in texts_of(language).items():
        assert isinstance(text, dict) == isinstance(ENGLISH[key], dict), key
        if isinstance(text, dict):
            assert set(text) == {"one", "other"}, key


@pytest.mark.parametrize("language", [each for each in LANGUAGES if each != "en"])
def test_few_texts_are_the_same_in_two_languages(language: str) -> None:
    texts = texts_of(language)
    worded = [key for key, text in ENGLISH.items() if re.search(r"[A-Za-z]{4}", re.sub(r"\{\w+\}", "", str(text)))]
    same = {key for key in worded if texts[key] == ENGLISH[key]}
    assert same <= {"source.fileName", "model.bleu", "nav.live"}, same


def test_every_text_is_used_and_every_used_text_exists() -> None:
    used = set()
    for path in FOLDER.iterdir():
        if not path.name.startswith("texts_") and path.suffix in (".js", ".html"):
            used |= set(re.findall(r'"([a-z]+\.[a-zA-Z]+)"', path.read_text(encoding="utf-8")))
    used |= {"output.length", "output.repetition"}  # built from the finish reason
    named = {key for key in used if key.split(".")[0] in {each.split(".")[0] for each in ENGLISH}}
    assert named == set(ENGLISH)


def test_the_html_has_the_english_texts() -> None:
    for key, shown in _shown_texts():
        assert shown == ENGLISH[key], key


def _shown_texts() -> Iterator[tuple[str, str | None]]:
    pages = [(FOLDER / name).read_text(encoding="utf-8") for name in (INDEX, "live.html")]
    documents = [html5lib.parse(page, namespaceHTMLElements=False) for page in pages]
    for element in (element for document in documents for element in document.iter()):
        if key := element.get("data-text"):
            yield key, element.text
        for attribute, shown in ATTRIBUTES.items():
            if key := element.get(attribute):
                yield key, element.get(shown)
