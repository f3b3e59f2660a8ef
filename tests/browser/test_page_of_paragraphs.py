"""A page of 300 paragraphs on another origin, translated with the requests of a browser extension.

Prints the time from the first request to the last paragraph, in batches of 50 as Immersive Translate sends them, and
with one request a paragraph: `.venv/bin/pytest tests/browser/test_page_of_paragraphs.py -s`.
"""

import http.server
import itertools
import statistics
import sys
import threading
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from tests.end_to_end.servers import Served
from tests.end_to_end.servers import started as server_started

NUM_PARAGRAPHS, BATCH = 300, 50
REPETITIONS = 3
_SUBJECTS = ("The old man", "My sister", "The teacher", "A young woman", "Our neighbour", "The doctor")
_VERBS = ("buys", "sees", "has", "wants", "likes")
_OBJECTS = ("a new car", "a small house", "two dogs", "a cup of tea", "the red book")
_ENDS = ("today", "every morning")
_SENTENCES = [f"{' '.join(words)}." for words in itertools.product(_SUBJECTS, _VERBS, _OBJECTS, _ENDS)]
PARAGRAPHS = [f"{sentence} {_SENTENCES[-index]}" for index, sentence in enumerate(_SENTENCES)]

# Sends all batches at once, as an extension does; the browser limits the connections. Because of the media type it asks
# for permission with a preflight first.
_TRANSLATE = """
const [url, size, done] = arguments;
const paragraphs = [...document.querySelectorAll("p")];
const begun = performance.now();
const translate = async (batch) => {
  const response = await fetch(url + "/imme", {
    method: "POST", headers: {"Content-Type": "application/json"},
    body: JSON.stringify({source_lang: "en", target_lang: "de", text_list: batch.map((each) => each.textContent)}),
  });
  const { translations } = await response.json();
  translations.forEach(({ text }, index) => { batch[index].dataset.translation = text; });
};
const batches = [];
for (let start = 0; start < paragraphs.length; start += size) batches.push(paragraphs.slice(start, start + size));
Promise.all(batches.map(translate)).then(
  () => done({ seconds: (performance.now() - begun) / 1000,
               texts: paragraphs.map((each) => each.dataset.translation) }),
  (error) => done({ error: String(error) }),
);
"""


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = "".join(f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(f'<!doctype html><html lang="en"><title>Page</title><body>{body}</body></html>'.encode())

    def log_message(self, *_: object) -> None:
        """Write nothing to the test's output."""


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """The address of the page."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def kvasir(page: str) -> Iterator[Served]:
    """A server without a cache that allows the origin of the page."""
    yield from server_started("--cors-origins", page, "--cache-sentences", "0")


def _translated(chromium: Chrome, page: str, kvasir: Served, size: int) -> tuple[float, list[str]]:
    chromium.get(page)
    chromium.set_script_timeout(300)
    answer = chromium.execute_async_script(_TRANSLATE, kvasir.url, size)
    assert "error" not in answer, answer
    return float(answer["seconds"]), list(answer["texts"])


def test_batches_and_single_requests_translate_a_page_alike(fresh: Chrome, page: str, kvasir: Served) -> None:
    assert len(PARAGRAPHS) == NUM_PARAGRAPHS == len(set(PARAGRAPHS))
    seconds: dict[int, list[float]] = {BATCH: [], 1: []}
    texts: list[list[str]] = []
    _translated(fresh, page, kvasir, BATCH)  # the first run loads what later ones have
    for _ in range(REPETITIONS):
        for size, measured in seconds.items():
            duration, translations = _translated(fresh, page, kvasir, size)
            measured.append(duration)
            texts.append(translations)
    assert all(each == texts[0] for each in texts)
    assert len(set(texts[0])) > NUM_PARAGRAPHS * 0.9  # every paragraph has its own translation
    for size, measured in seconds.items():
        sys.stdout.write(f"\n{NUM_PARAGRAPHS} paragraphs, {size} in a request: {statistics.median(measured):.1f} s")
