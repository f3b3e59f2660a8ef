from urllib.parse import quote

from tests.browser.visit import Visit


def test_the_address_opens_a_text_in_its_languages(first_visit: Visit) -> None:
    text = "Where is Baker/Smith? 100 %: tea & cake #1."
    first_visit.open_at(f"#en/de/{quote(text, safe='')}")
    first_visit.until(lambda: first_visit.is_settled)
    assert first_visit.find("source").get_property("value") == text
    assert (first_visit.chosen("source-language"), first_visit.chosen("target-language")) == ("en", "de")
    assert first_visit.translation


def test_slashes_and_percent_signs_may_stand_unescaped(first_visit: Visit) -> None:
    first_visit.open_at("#de/en/50%/60%")
    first_visit.until(lambda: first_visit.is_settled)
    assert first_visit.find("source").get_property("value") == "50%/60%"
    assert first_visit.chosen("target-language") == "en"


def test_the_address_follows_the_text(visit: Visit) -> None:
    visit.translated("Tea/coffee?")
    assert visit.evaluate("location.hash") == "#en/de/Tea%2Fcoffee%3F"
    length = visit.evaluate("history.length")
    visit.type(" Thank you.")
    visit.until(lambda: str(visit.evaluate("location.hash")).endswith("Thank%20you."))
    assert visit.evaluate("history.length") == length
    visit.find("clear").click()
    assert visit.evaluate("location.hash") == "#en/de/"


def test_a_changed_address_shows_its_text(visit: Visit) -> None:
    visit.translated("Tea.")
    visit.evaluate("location.hash = '#de/en/Guten%20Morgen.'")
    visit.until(lambda: visit.find("source").get_property("value") == "Guten Morgen.")
    visit.until(lambda: visit.is_settled)
    assert visit.find("output").get_attribute("lang") == "en"


def test_unknown_languages_and_odd_addresses_do_no_harm(first_visit: Visit) -> None:
    for address in ("#xx/yy/Good%20morning.", "#//", "#en", "#auto/de/Good%20morning.", "#en/de/%ff"):
        first_visit.open_at(address)
        assert first_visit.chosen("source-language") in ("auto", "en")
    first_visit.open_at("#EN/DE/Good%20morning.")
    first_visit.until(lambda: first_visit.is_settled)
    assert (first_visit.chosen("source-language"), first_visit.chosen("target-language")) == ("en", "de")


def test_a_long_text_stays_out_of_the_address(visit: Visit) -> None:
    visit.paste("Good morning. " * 160)
    visit.until(lambda: visit.is_settled)
    assert visit.evaluate("location.hash") == "#en/de/"
