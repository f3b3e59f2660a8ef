"""Sentences that the model doubts: underlined, with a figure for pointer, keyboard and screen reader."""

import re

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.browser.visit import Visit

SURE = "Good morning."
DOUBTFUL = "Her jurisdiction over the amortised turbines was relinquished by proxy."


def test_a_doubtful_sentence_is_underlined_and_has_its_figure(visit: Visit) -> None:
    visit.point_at(visit.find("theme"))  # not at a word, which is announced
    text = visit.translated(f"{SURE} {DOUBTFUL}")
    [sentence] = visit.all("#output .doubtful")
    assert sentence.text == text.removeprefix("Guten Morgen. ")
    assert "dotted" in sentence.value_of_css_property("text-decoration")
    assert re.fullmatch(r"Perhaps wrong: \d+ % likely to be good", str(sentence.get_attribute("title")))
    assert "wavy" in visit.all("#output .doubtful .doubted")[0].value_of_css_property("text-decoration")
    assert visit.find("note").text == "1 underlined sentence is perhaps wrong"
    assert str(visit.find("announcement").get_property("textContent")).startswith("1 underlined sentence")
    Select(visit.find("interface")).select_by_value("de")
    assert str(sentence.get_attribute("title")).startswith("Vielleicht falsch: ")


def test_a_sure_sentence_has_no_mark(visit: Visit) -> None:
    assert visit.translated(SURE) == "Guten Morgen."
    assert not visit.all("#output .doubtful")
    assert visit.find("note").text == ""


def test_a_word_reached_by_keyboard_announces_the_figure(visit: Visit) -> None:
    visit.translated(DOUBTFUL)
    visit.find("output").send_keys(Keys.ARROW_RIGHT)
    visit.until(lambda: "Perhaps wrong" in str(visit.find("announcement").get_property("textContent")))


def test_a_chosen_alternative_has_no_figure(visit: Visit) -> None:
    visit.translated(DOUBTFUL)
    visit.find("show-alternatives").click()
    visit.until(lambda: len(visit.all("#alternatives .option")) > 1)
    visit.all("#alternatives .option")[1].click()
    assert not visit.all("#output .doubtful")
