import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.visit import Visit

PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
LIGHT, DARK = "rgba(246, 242, 234, 1)", "rgba(20, 18, 15, 1)"


def _background(visit: Visit) -> str:
    return visit.chromium.find_element("css selector", "html").value_of_css_property("background-color")


def _system(visit: Visit, name: str, value: str) -> None:
    features = {"features": [{"name": name, "value": value}]}
    visit.chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", features)


def test_dark_and_light_follow_the_system(visit: Visit) -> None:
    for theme, colour in (("dark", DARK), ("light", LIGHT)):
        _system(visit, "prefers-color-scheme", theme)
        assert _background(visit) == colour
        assert visit.find("theme").get_attribute("aria-pressed") == str(theme == "dark").lower()


def test_the_button_wins_over_the_system_and_is_remembered(visit: Visit) -> None:
    _system(visit, "prefers-color-scheme", "light")
    visit.find("theme").click()
    assert _background(visit) == DARK
    visit.open()
    assert _background(visit) == DARK
    assert visit.find("theme").get_attribute("aria-pressed") == "true"
    visit.find("theme").click()
    assert _background(visit) == LIGHT


def test_on_a_phone_nothing_lies_beyond_the_edge(visit: Visit) -> None:
    visit.chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    visit.open()
    visit.translated("Donaudampfschifffahrtsgesellschaft" * 5 + " My sister has bought a new red car.")
    visit.press(Keys.ESCAPE)
    visit.all("#output .word")[-1].click()
    visit.until(lambda: visit.all("#alternatives .option"))
    visit.drop(["a-very-long-name-of-a-file-that-does-not-fit-on-a-phone.docx", "x", ""])
    visit.until(lambda: visit.all("#files li"))
    assert visit.evaluate("document.documentElement.scrollWidth") == 360
    beyond = visit.evaluate(
        "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.unseen') && "
        "e.getBoundingClientRect().right > 361).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert beyond == []


def test_fingers_find_every_control(visit: Visit) -> None:
    visit.chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    visit.open()
    small = visit.evaluate(
        "[...document.querySelectorAll('button, select, .file')].map((e) => e.getBoundingClientRect())"
        ".filter((r) => r.width && (r.width < 40 || r.height < 40)).length"
    )
    assert small == 0


@pytest.mark.parametrize(("wish", "animation"), [("reduce", "none"), ("no-preference", "breathe")])
def test_what_moves_is_still_where_that_is_wished(visit: Visit, wish: str, animation: str) -> None:
    _system(visit, "prefers-reduced-motion", wish)
    visit.evaluate("document.getElementById('busy').classList.add('on')")
    assert visit.find("busy").value_of_css_property("animation-name") == animation


def test_nothing_comes_from_another_host(visit: Visit) -> None:
    visit.translated("Good morning.")
    names = visit.evaluate("performance.getEntries().map((entry) => entry.name).filter((name) => name.includes(':'))")
    assert isinstance(names, list)
    assert len(names) > 10
    assert all(str(name).startswith(visit.url) for name in names)
