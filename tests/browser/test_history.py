from selenium.webdriver.common.keys import Keys

from tests.browser.visit import Visit

MORNING, THANKS = "Good morning.", "Thank you very much."


def _translated(visit: Visit, *texts: str) -> None:
    for text in texts:
        visit.paste(text)
        visit.until(lambda: visit.is_settled)
        visit.find("copy").click()  # keeps it without a wait


def _open(visit: Visit) -> list[str]:
    """Return the source texts of the entries."""
    if not visit.find("history-panel").is_displayed():
        visit.find("history").click()
    return [entry.text for entry in visit.all("#history-list .extract:nth-of-type(2)")]


def test_translations_are_kept_and_shown_again(visit: Visit) -> None:
    _translated(visit, MORNING, THANKS)
    visit.open()
    assert _open(visit) == [THANKS, MORNING]
    visit.all("#history-list .entry")[1].click()
    visit.until(lambda: visit.is_settled)
    assert not visit.find("history-panel").is_displayed()
    assert visit.find("source").get_property("value") == MORNING
    assert (visit.chosen("source-language"), visit.chosen("target-language")) == ("en", "de")


def test_a_translation_is_kept_once_the_text_rests(visit: Visit) -> None:
    visit.translated(MORNING)
    visit.until(lambda: visit.evaluate("localStorage.getItem('kvasir-history')"))
    assert _open(visit) == [MORNING]


def test_versions_of_a_text_that_is_being_written_are_one_entry(visit: Visit) -> None:
    for part in ("Good morning.", " Thank you", " very much."):
        visit.translated(part)
        visit.until(lambda: visit.is_settled)
        visit.find("copy").click()
        visit.find("source").send_keys(Keys.END)
    assert _open(visit) == ["Good morning. Thank you very much."]


def test_a_cleared_text_and_the_next_one_are_two_entries(visit: Visit) -> None:
    _translated(visit, MORNING)
    visit.find("clear").click()
    _translated(visit, f"{MORNING} {THANKS}")
    assert len(_open(visit)) == 2


def test_one_entry_and_all_entries_can_be_deleted(visit: Visit) -> None:
    _translated(visit, MORNING, THANKS)
    _open(visit)
    visit.all("#history-list .icon")[0].click()
    assert _open(visit) == [MORNING]
    visit.find("history-clear").click()
    assert _open(visit) == []
    assert visit.find("history-state").text == "The history is empty."
    assert MORNING not in str(visit.evaluate("JSON.stringify(localStorage)"))


def test_without_a_history_no_text_stays_in_the_browser(visit: Visit) -> None:
    _translated(visit, MORNING)
    _open(visit)
    visit.find("history-keep").click()
    assert visit.find("history-state").text == "The history is off: no translation is kept."
    visit.press(Keys.ESCAPE)
    _translated(visit, THANKS)
    assert "Thank" not in str(visit.evaluate("location.hash"))
    kept = str(visit.evaluate("JSON.stringify(localStorage)"))
    assert "Good" not in kept
    assert "Thank" not in kept
    visit.open()
    assert _open(visit) == []
    assert not visit.find("history-keep").is_selected()


def test_the_panel_takes_the_focus_and_gives_it_back(visit: Visit) -> None:
    _open(visit)
    assert visit.evaluate("document.activeElement.closest('dialog') !== null")
    visit.press(Keys.ESCAPE)
    assert visit.focused == "history"


def test_a_history_that_another_program_wrote_does_no_harm(visit: Visit) -> None:
    visit.evaluate('localStorage.setItem(\'kvasir-history\', \'[1, null, {"text": "x"}, "y"]\')')
    assert _open(visit) == []
    visit.press(Keys.ESCAPE)
    _translated(visit, MORNING)
    assert _open(visit) == [MORNING]
