from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from tests.browser.conftest import MAX_TEXT_CHARACTERS
from tests.browser.visit import Visit
from tests.end_to_end.servers import Served, num_cancelled, until

LONG = "My sister has bought a new red car. Can you help me find my keys? Where is the station? "


@contextmanager
def throttled(visit: Visit) -> Iterator[None]:
    """Let 4 KB of an answer arrive in a second."""
    conditions = {"offline": False, "latency": 0, "uploadThroughput": -1}
    visit.chromium.execute_cdp_cmd("Network.enable", {})
    visit.chromium.execute_cdp_cmd("Network.emulateNetworkConditions", {"downloadThroughput": 4000, **conditions})
    try:
        yield
    finally:
        visit.chromium.execute_cdp_cmd("Network.emulateNetworkConditions", {"downloadThroughput": -1, **conditions})


def test_german_appears_while_english_is_typed(visit: Visit) -> None:
    assert visit.translated("Good morning. Where is the station?") == "Guten Morgen. Wo ist der Bahnhof?"
    assert visit.find("output").get_attribute("lang") == "de"
    assert visit.find("announcement").get_property("textContent") == "German: Guten Morgen. Wo ist der Bahnhof?"


def test_the_text_grows_while_it_streams(visit: Visit) -> None:
    visit.evaluate(
        "window.seen = [], new MutationObserver(() => seen.push(output.textContent)).observe(output, {childList: true})"
    )
    with throttled(visit):  # so that its events come one after the other, however fast the server is
        visit.paste(LONG * 20)
        visit.until(lambda: visit.is_settled)
    seen = visit.evaluate("window.seen")
    assert isinstance(seen, list)
    growing = list(dict.fromkeys(str(text) for text in seen if text))
    assert len(growing) > 2
    assert all(later.startswith(earlier) for earlier, later in pairwise(growing))


def test_line_breaks_stay(visit: Visit) -> None:
    assert visit.translated("Good morning.\n\nThank you.") == "Guten Morgen.\n\nVielen Dank."


def test_new_typing_cancels_what_runs_and_only_the_last_answer_is_shown(visit: Visit, served: Served) -> None:
    with served.client() as client:
        before = num_cancelled(client)
        visit.paste(LONG * 40)
        visit.until(lambda: "on" in str(visit.find("busy").get_attribute("class")))
        visit.paste("Thank you.")
        visit.until(lambda: visit.is_settled)
        assert visit.translation == "Vielen Dank."
        until(lambda: num_cancelled(client) > before)
    assert visit.translation == "Vielen Dank."


def test_an_emptied_text_has_no_translation(visit: Visit) -> None:
    visit.translated("Good morning.")
    visit.find("clear").click()
    visit.until(lambda: visit.translation == "")
    assert visit.focused == "source"
    assert not visit.find("copy").is_enabled()


def test_swap_exchanges_languages_and_texts(visit: Visit) -> None:
    visit.translated("Thank you.")
    assert visit.find("swap").is_enabled()
    visit.find("swap").click()
    assert (visit.chosen("source-language"), visit.chosen("target-language")) == ("de", "en")
    assert visit.find("source").get_property("value") == "Vielen Dank."
    visit.until(lambda: visit.is_settled)
    assert visit.find("output").get_attribute("lang") == "en"


def test_swap_is_off_where_nothing_translates_back(one_way_visit: Visit) -> None:
    swap = one_way_visit.find("swap")
    assert not swap.is_enabled()
    assert swap.get_attribute("title") == "No model here translates German into English"


def test_a_detected_language_is_shown_and_can_be_swapped(visit: Visit) -> None:
    visit.choose("Detect language", "German")
    visit.translated("Where is the station? It is a beautiful day.")
    assert visit.find("source-language").text == "English (detected)"
    visit.find("swap").click()
    assert (visit.chosen("source-language"), visit.chosen("target-language")) == ("de", "en")
    visit.until(lambda: visit.is_settled)


def test_languages_are_remembered(visit: Visit) -> None:
    visit.translated("Thank you.")
    visit.find("swap").click()
    visit.open()
    assert (visit.chosen("source-language"), visit.chosen("target-language")) == ("de", "en")


def test_characters_are_counted_as_the_server_counts(visit: Visit) -> None:
    visit.paste("😀é")
    assert visit.find("count").text == "2"
    visit.paste("x" * (MAX_TEXT_CHARACTERS + 5))
    assert visit.find("count").text == "5 characters too many: 6,000 at most"
    assert visit.find("source").get_attribute("aria-invalid") == "true"


def test_arabic_stands_on_the_right(visit: Visit) -> None:
    visit.paste("صباح الخير")
    assert visit.evaluate("document.getElementById('source').matches(':dir(rtl)')")
    visit.until(lambda: visit.is_settled)


def test_copy_says_that_it_copied(visit: Visit) -> None:
    visit.translated("Good morning.")
    visit.find("copy").click()
    visit.until(lambda: visit.find("copy-label").text == "Copied")
    visit.find("source").clear()
    visit.find("source").click()
    visit.chromium.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite"], "origin": visit.url}
    )
    assert visit.chromium.execute_async_script("navigator.clipboard.readText().then(arguments[0])") == "Guten Morgen."
