"""Translations that a person keeps: corrected or as they are, they are the answer from then on."""

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from tests.browser.visit import Visit
from tests.end_to_end.servers import Served
from tests.end_to_end.servers import started as server_started


@pytest.fixture(scope="module")
def remembering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with translation memories."""
    file = tmp_path_factory.mktemp("memories") / "memories"
    yield from server_started("--model", "models", "--threads", "1", "--memory-file", str(file))


@pytest.fixture
def desk(fresh: Chrome, remembering: Served) -> Iterator[Visit]:
    """A first visit to it."""
    visit = Visit(fresh, f"{remembering.url}/")
    fresh.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": visit.url, "storageTypes": "all"})
    visit.open()
    visit.choose("English", "German")
    yield visit
    assert not visit.complaints()


def _areas(visit: Visit) -> list[WebElement]:
    visit.find("keep").click()
    return visit.all("#keeping textarea")


def _keep(visit: Visit) -> None:
    visit.all("#keeping [type=submit]")[0].click()
    visit.until(lambda: not visit.find("keeping").is_displayed())
    visit.until(lambda: visit.is_settled)


def _write(area: WebElement, text: str) -> None:
    area.send_keys(Keys.CONTROL, "a")
    area.send_keys(text)


def test_without_memories_nothing_can_be_kept(visit: Visit) -> None:
    visit.translated("Good morning.")
    assert not visit.find("keep").is_displayed()


def test_a_corrected_translation_is_kept_and_is_the_answer_from_then_on(desk: Visit, remembering: Served) -> None:
    assert desk.translated("Good morning. Thank you.") == "Guten Morgen. Vielen Dank."
    first, second = _areas(desk)
    assert [each.get_property("value") for each in (first, second)] == ["Guten Morgen.", "Vielen Dank."]
    _write(first, "Moin.")
    desk.all("#keeping [type=checkbox]")[1].click()
    assert not second.is_enabled()
    _keep(desk)
    desk.until(lambda: desk.translation == "Moin. Vielen Dank.")
    assert desk.note == "1 sentence is from the translation memory"
    with remembering.client() as client:
        [memory] = client.get("/v3/translation_memories").json()["translation_memories"]
        assert (memory["name"], memory["source_language"], memory["segment_count"]) == ("English → German", "en", 1)
    desk.open()
    desk.translated("Good morning.")
    assert desk.translation == "Moin."
    [area] = _areas(desk)
    assert area.get_property("value") == "Moin."
    _write(area, "Moin, moin.")
    assert Select(desk.all("#keeping select")[0]).first_selected_option.text == "English → German"
    _keep(desk)
    desk.until(lambda: desk.translation == "Moin, moin.")
    with remembering.client() as client:
        [memory] = client.get("/v3/translation_memories").json()["translation_memories"]
        assert memory["segment_count"] == 1
        assert client.delete(f"/v3/translation_memories/{memory['translation_memory_id']}").status_code == 204
    desk.open()
    assert desk.translated("Good morning.") == "Guten Morgen."


def test_the_panel_closes_without_keeping_anything(desk: Visit, remembering: Served) -> None:
    desk.translated("Good morning.")
    [area] = _areas(desk)
    _write(area, "Nein.")
    area.send_keys(Keys.ESCAPE)
    assert not desk.find("keeping").is_displayed()
    assert desk.focused == "output"
    with remembering.client() as client:
        assert client.get("/v3/translation_memories").json()["total_count"] == 0
