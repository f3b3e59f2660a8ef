from tests.browser.conftest import MAX_TEXT_CHARACTERS
from tests.browser.visit import Visit
from tests.end_to_end.servers import Served

LINE = "My sister has bought a new red car.\n"


def test_a_small_text_file_is_opened_in_the_pane(visit: Visit) -> None:
    visit.drop(["letter.txt", "Good morning.\n\nThank you.", "text/plain"])
    visit.until(lambda: visit.is_settled)
    assert visit.find("source").get_property("value") == "Good morning.\n\nThank you."
    assert visit.translation == "Guten Morgen.\n\nVielen Dank."


def test_a_large_text_file_is_translated_in_parts_and_given_back(visit: Visit, served: Served) -> None:
    num_lines = 2 * MAX_TEXT_CHARACTERS // len(LINE)
    visit.evaluate("make = URL.createObjectURL, URL.createObjectURL = (blob) => make(made = blob)")
    visit.drop(["letters.txt", LINE * num_lines, "text/plain"])
    visit.until(lambda: visit.all("#files progress"))
    visit.until(lambda: visit.all("#files a"))
    [link] = visit.all("#files a")
    assert link.get_attribute("download") == "letters.de.txt"
    content = visit.chromium.execute_async_script("made.text().then(arguments[0])")
    with served.client() as client:
        answer = client.post("/v1/translate", json={"text": LINE, "source": "en", "target": "de"}).json()
    assert content == answer["translations"][0]["text"] * num_lines
    [remove] = visit.all("#files button")
    remove.click()
    assert not visit.all("#files li")


def test_a_document_is_translated_by_the_server(visit: Visit) -> None:
    visit.drop(["page.html", "<p>Good morning. <b>Thank you.</b></p>", "text/html"])
    visit.until(lambda: visit.all("#files a, #files .failed"))
    [link] = visit.all("#files a")
    assert link.get_attribute("download") == "page.de.html"


def test_a_document_that_cannot_be_translated_is_reported_with_its_name(visit: Visit) -> None:
    visit.drop(["broken.docx", "no document at all", ""])
    visit.until(lambda: visit.all("#files .failed"))
    [failed] = visit.all("#files .failed")
    assert failed.text
    assert visit.all("#files .name")[0].text == "broken.docx"
