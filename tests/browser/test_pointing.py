from functools import partial

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.browser.visit import Visit

_SHOWS_FOCUS = """(() => {
  const shows = (element) => element && (getComputedStyle(element).outlineStyle !== "none"
    || getComputedStyle(element).boxShadow.includes("inset"));
  const focused = document.activeElement;
  return Boolean(shows(focused) || shows(focused.closest("label")) || shows(focused.closest(".pane")));
})()"""
CAR = "My sister has bought a new red car."
VEHICLE = ("Auto", "Wagen")  # either is right


def test_pointing_at_a_word_lights_up_where_it_comes_from(visit: Visit) -> None:
    visit.translated(f"Good morning. {CAR}")
    for german, english in ((("gekauft",), ["bought"]), (("Schwester",), ["sister"]), (VEHICLE, ["car"])):
        visit.point_at(visit.word(*german))
        visit.until(partial(_is_lit, visit, english))
        assert "glow" in str(visit.word(*german).get_attribute("class"))
        assert [mark.get_property("textContent") for mark in visit.all("#mirror .haze")] == [CAR]


def test_the_light_goes_with_the_pointer(visit: Visit) -> None:
    visit.translated(CAR)
    visit.point_at(visit.word(*VEHICLE))
    visit.until(lambda: visit.lit == ["car"])
    visit.point_at(visit.find("theme"))
    visit.until(lambda: not visit.all("#desk .glow, #desk .haze"))


def test_the_light_lies_exactly_behind_the_word(visit: Visit) -> None:
    visit.translated(CAR)
    visit.point_at(visit.word(*VEHICLE))
    visit.until(lambda: visit.lit)
    for name in ("font", "line-height", "padding", "letter-spacing", "white-space", "overflow-wrap"):
        assert visit.find("mirror").value_of_css_property(name) == visit.find("source").value_of_css_property(name)
    assert visit.find("mirror").rect == visit.find("source").rect


def test_a_click_on_a_word_offers_other_translations(visit: Visit) -> None:
    first = visit.translated(f"{CAR} Thank you.").removesuffix(" Vielen Dank.")
    visit.word(*VEHICLE).click()
    visit.until(lambda: len(visit.all("#alternatives .option")) > 2)
    texts = [option.text for option in visit.all("#alternatives .option")]
    assert texts[0] == first
    assert len(set(texts)) == len(texts)
    visit.all("#alternatives .option")[1].click()
    assert visit.translation == f"{texts[1]} Vielen Dank."
    pressed = [option.get_attribute("aria-pressed") for option in visit.all("#alternatives .option")]
    assert pressed.index("true") == 1
    assert pressed.count("true") == 1
    visit.all("#alternatives .option")[0].click()
    assert visit.translation == f"{texts[0]} Vielen Dank."


def test_another_translation_is_pointed_at_like_the_first(visit: Visit) -> None:
    visit.translated(f"{CAR} Thank you.")
    visit.word(*VEHICLE).click()
    visit.until(lambda: len(visit.all("#alternatives .option")) > 2)
    visit.all("#alternatives .option")[1].click()
    visit.point_at(visit.word("Vielen"))
    visit.until(lambda: visit.lit == ["Thank"])


def test_everything_can_be_done_with_keys_alone(visit: Visit) -> None:
    visit.open()
    assert visit.focused == "source"
    visit.press(CAR)
    visit.until(lambda: visit.is_settled)
    visit.press(Keys.TAB, Keys.TAB, Keys.TAB)
    assert visit.focused == "output"
    visit.press(Keys.END)
    visit.until(lambda: visit.lit == ["bought"])
    visit.until(lambda: visit.find("announcement").get_property("textContent") == "gekauft: bought")
    visit.press(Keys.ARROW_LEFT)
    visit.until(lambda: visit.lit == ["car"])
    visit.press(Keys.ENTER)
    visit.until(lambda: len(visit.all("#alternatives .option")) > 2)
    second = visit.all("#alternatives .option")[1].text
    visit.until(lambda: visit.focused == second)
    visit.press(Keys.ENTER)
    assert visit.translation == second
    visit.press(Keys.ESCAPE)
    assert visit.focused == "output"
    assert not visit.find("alternatives").is_displayed()


def test_every_control_is_reached_by_tab_and_shows_that_it_is(visit: Visit) -> None:
    visit.translated(CAR)
    after = _walk(visit, backwards=False, num_steps=5)
    assert after == ["clear", "file", "output", "show-alternatives", "download"]
    visit.find("source").click()
    before = _walk(visit, backwards=True, num_steps=5)
    assert before == ["target-language", "swap", "source-language", "theme", "interface"]


def _is_lit(visit: Visit, words: list[str]) -> bool:
    return visit.lit == words


def _walk(visit: Visit, backwards: bool, num_steps: int) -> list[str]:
    """Return the element with the focus after each step, and check that its focus is visible."""
    reached = []
    for _ in range(num_steps):
        step = ActionChains(visit.chromium)
        if backwards:
            step.key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
        else:
            step.send_keys(Keys.TAB).perform()
        reached.append(visit.focused)
        assert visit.evaluate(_SHOWS_FOCUS), f"{reached[-1]} has the focus and does not show it"
    return reached
