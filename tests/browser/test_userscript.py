"""The userscript `clients/kvasir.user.js` on a page of another origin."""

import functools
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.browser.visit import Visit
from tests.end_to_end.servers import ROOT, Served
from tests.end_to_end.servers import started as server_started

SCRIPT = (ROOT / "clients" / "kvasir.user.js").read_text(encoding="utf-8")
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Trip</title>
<meta http-equiv="Content-Security-Policy" content="style-src 'none'; require-trusted-types-for 'script'"></head><body>
<h1 id="heading">Good morning</h1>
<p id="linked">Where is <a id="link" class="c" href="station.html">the station</a>? It is <b>very</b> old.</p>
<p id="code">Write <code>npm install</code> and thank you.</p>
<ul><li id="mixed">Thank you. <ul><li id="inner">I am happy.</li></ul></li></ul>
<p id="kept" translate="no">Good morning</p>
<pre id="pre">Good morning</pre>
<p id="escaped">Is 1 &lt; 2 &amp; 3 a question?</p>
<p id="german">Wo ist bitte der Bahnhof? Ich bin heute in der Stadt.</p>
<p id="number">12:30</p>
<script>document.getElementById("heading").dataset.ran = "1"</script>
</body></html>"""
# What a script manager provides, on top of the page's own requests.
_MANAGER = """
window.GM_getValue = (name, value) => ({ server: "%s", target: "%s" })[name] ?? value;
if (%s) window.GM_xmlhttpRequest = ({ method, url, headers, data, onprogress, onload, onerror }) => {
  const request = new XMLHttpRequest();
  const details = () => ({ status: request.status, responseText: request.responseText,
    responseHeaders: request.getAllResponseHeaders() });
  request.open(method, url);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.addEventListener("progress", () => onprogress(details()));
  request.addEventListener("load", () => onload(details()));
  request.addEventListener("error", onerror);
  request.send(data);
  return { abort: () => request.abort() };
};
"""


@dataclass
class Site:
    """A page of another origin, and the server that translates it."""

    visit: Visit
    kvasir: Served

    def open(self, target: str = "de", has_manager: bool = True) -> None:
        """Load the page and the script in a browser with or without a script manager."""
        self.visit.chromium.get(self.visit.url)
        manager = _MANAGER % (self.kvasir.url, target, str(has_manager).lower())
        self.visit.chromium.execute_script(manager + SCRIPT)

    def toggle(self) -> None:
        """Press the keys of the script."""
        keys = ActionChains(self.visit.chromium).key_down(Keys.ALT).key_down(Keys.SHIFT).send_keys("k")
        keys.key_up(Keys.SHIFT).key_up(Keys.ALT).perform()

    def text(self, element_id: str) -> str:
        """Return the text of an element of the page."""
        return str(self.visit.find(element_id).get_property("textContent")).strip()

    def markup(self) -> object:
        """Return the page without the parts that the script adds to it."""
        return self.visit.evaluate("document.body.innerHTML")

    def until_done(self) -> None:
        """Wait until everything is translated."""
        self.visit.until(lambda: self.visit.all("kvasir-text") and not self.visit.all("kvasir-tool[role=status]"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a web server with the page."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Log nothing."""


@pytest.fixture(scope="module")
def kvasir(pages: str) -> Iterator[Served]:
    """A server that accepts requests of the page."""
    yield from server_started("--model", "models", "--threads", "1", "--cors-origins", pages.rstrip("/"))


@pytest.fixture
def site(fresh: Chrome, pages: str, kvasir: Served) -> Iterator[Site]:
    """The page, without errors in the console at the end."""
    visit = Visit(fresh, pages)
    yield Site(visit, kvasir)
    assert not visit.complaints()


@pytest.mark.parametrize("has_manager", [True, False])
def test_a_page_is_translated_with_its_links_and_formatting(site: Site, has_manager: bool) -> None:
    site.open(has_manager=has_manager)
    site.toggle()
    site.until_done()
    assert site.text("heading").rstrip(".") == "Guten Morgen"
    assert "Bahnhof" in site.text("linked")
    link = site.visit.find("link")
    assert str(link.get_attribute("href")).endswith("/station.html")
    assert link.get_attribute("class") == "c"
    assert link.text
    assert len(site.visit.all("#linked b")) == 1
    assert site.visit.all("#code code")[0].text == "npm install"
    assert site.text("inner") != "I am happy."
    assert site.text("mixed").startswith("Vielen Dank.")


def test_code_numbers_and_marked_parts_stay(site: Site) -> None:
    site.open()
    site.toggle()
    site.until_done()
    assert (site.text("kept"), site.text("pre"), site.text("number")) == ("Good morning", "Good morning", "12:30")
    assert site.text("german") == "Wo ist bitte der Bahnhof? Ich bin heute in der Stadt."
    assert not site.visit.all("#german kvasir-text")


def test_the_original_is_shown_on_hover_and_comes_back(site: Site) -> None:
    site.open()
    before = site.markup()
    site.toggle()
    site.until_done()
    site.visit.point_at(site.visit.all("#linked b")[0])
    [tooltip] = site.visit.all("kvasir-tool[role=tooltip]")
    assert tooltip.text == "Where is the station? It is very old."
    site.visit.point_at(site.visit.all("#escaped kvasir-text")[0])
    assert site.visit.all("kvasir-tool[role=tooltip]")[0].text == "Is 1 < 2 & 3 a question?"
    site.visit.point_at(site.visit.find("pre"))
    assert not site.visit.all("kvasir-tool")
    site.toggle()
    assert site.markup() == before


def test_texts_appear_while_the_response_streams(site: Site) -> None:
    site.open()
    site.visit.chromium.execute_script("window.GM_xmlhttpRequest = (details) => (window.pending = details, {})")
    site.toggle()
    event = 'event: text\ndata: {"index":0,"text":"Guten"}\n\n'
    later = event + 'event: text\ndata: {"index":0,"text":" Tag"}\n\n'
    for body, shown in ((event[:20], "Good morning"), (event, "Guten"), (later[:-1], "Guten"), (later, "Guten Tag")):
        site.visit.chromium.execute_script("pending.onprogress({status: 200, responseText: arguments[0]})", body)
        assert site.text("heading") == shown
    site.visit.chromium.execute_script("pending.onload({status: 200, responseText: arguments[0]})", later)
    site.visit.until(lambda: "interrupted" in site.visit.all("kvasir-tool")[0].text)
    assert site.text("heading") == "Good morning"


def test_a_busy_server_is_asked_again_after_the_time_it_names(site: Site) -> None:
    site.open()
    site.visit.chromium.execute_script(
        "const send = GM_xmlhttpRequest; window.busy = 2; window.GM_xmlhttpRequest = (details) => busy-- > 0 "
        "? (setTimeout(() => details.onload({status: 429, responseText: '', responseHeaders: 'Retry-After: 1'})), {}) "
        ": send(details)"
    )
    site.toggle()
    site.until_done()
    assert site.text("inner") != "I am happy."


def test_texts_that_the_page_adds_are_translated(site: Site) -> None:
    site.open()
    site.toggle()
    site.until_done()
    site.visit.chromium.execute_script(
        "const p = document.createElement('p'); p.id = 'late'; p.textContent = 'Thank you.'; document.body.append(p)"
    )
    site.visit.until(lambda: site.text("late") == "Vielen Dank.")
    assert site.text("heading").rstrip(".") == "Guten Morgen"


def test_an_error_is_shown_and_the_page_stays(site: Site) -> None:
    site.open(target="xx")
    before = site.markup()
    site.toggle()
    site.visit.until(lambda: "no model translates to xx" in site.visit.all("kvasir-tool")[0].text)
    site.toggle()
    assert site.markup() == before
