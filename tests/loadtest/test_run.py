"""Locust against a real HTTP server that speaks the native protocol and counts what it is asked."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from loadtest.records import Outcome
from loadtest.run import LoadTestFailed, run
from loadtest.workload import load_corpus

ROOT = Path(__file__).resolve().parents[2]


class Translations(ThreadingHTTPServer):
    """Answers every text with itself in upper case, except that request number n gets `scripted[n]` if there is one."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, scripted: dict[int, tuple[int, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scripted = scripted
        self.bodies: list[dict[str, object]] = []
        self.lock = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """Locust's process ends with its connections open; the reset that follows is none of this test's business."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Translations
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes, and the second must not wait for an ACK

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            number = len(self.server.bodies)
            self.server.bodies.append({"path": self.path, **body})
        texts = [body["text"]] if isinstance(body["text"], str) else body["text"]
        answer = {"translations": [{"text": text.upper(), "target_tokens": 2} for text in texts], "model": "en-de"}
        status, content = self.server.scripted.get(number, (200, json.dumps(answer).encode()))
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if status == 429:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class'
        pass


@pytest.fixture
def serve(request: pytest.FixtureRequest) -> Iterator[Translations]:
    server = Translations(getattr(request, "param", {}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_answer_the_server_gave_is_counted_once(serve: Translations, capfd: pytest.CaptureFixture[str]) -> None:
    summary = run(serve.url, users=3, seconds=0.8, beam_share=0.5, seed=7)
    printed = capfd.readouterr().out
    counted = sum(summary.outcomes.values())
    # Before the window opens each user may have sent a request or two; those alone may be missing.
    assert 0 < counted <= len(serve.bodies)
    assert summary.outcomes == {outcome: counted if outcome is Outcome.ANSWERED else 0 for outcome in Outcome}
    assert summary.exit_code == 0
    assert summary.users == 3
    assert summary.sentences_per_second > summary.requests_per_second > 0
    assert summary.target_tokens_per_second > 0
    latency = summary.latency["all"]
    assert 0 < latency.p50 <= latency.p95 <= latency.p99 <= latency.max
    assert {"p50", "p95", "p99"} <= set(printed.split())
    assert f"{summary.sentences_per_second:.1f} sentences/s" in printed


def test_the_server_is_asked_varied_sentences_of_the_corpus(serve: Translations) -> None:
    run(serve.url, users=2, seconds=0.8, beam_share=0.5, seed=7)
    corpus = load_corpus()
    known = {*corpus.sentences, *(" ".join(paragraph) for paragraph in corpus.paragraphs)}
    asked = [body["text"] for body in serve.bodies]
    texts = [text for value in asked for text in (value if isinstance(value, list) else [value])]
    assert set(texts) <= known
    assert len(set(texts)) > len(known) / 2
    assert {body["beam_size"] for body in serve.bodies} == {1, 4}
    assert {(body["path"], body["source"], body["target"]) for body in serve.bodies} == {("/v1/translate", "en", "de")}


WRONG = [(500, b"{}")] * 3 + [(200, b'{"translations": []}')] * 2 + [(200, b"no")] + [(429, b"{}")] * 4
SCRIPTED = dict(enumerate(WRONG, start=20))


@pytest.mark.parametrize("serve", [SCRIPTED], indirect=True)
def test_failures_are_counted_as_failures_and_rejections_as_rejections(serve: Translations) -> None:
    summary = run(serve.url, users=2, seconds=0.8, beam_share=0.0, seed=1)
    assert summary.outcomes[Outcome.FAILED] == 6
    assert summary.outcomes[Outcome.REJECTED] == 4
    assert summary.reasons == {
        "HTTP 500": 3,
        "answer has another number of translations than texts were sent": 2,
        "answer is not JSON": 1,
    }
    assert summary.latency["all"].num_requests == summary.outcomes[Outcome.ANSWERED] > 0
    assert summary.exit_code == 1


def test_a_server_that_is_not_there_makes_a_failed_test() -> None:
    # A port that was free a moment ago, and that nobody listens on now.
    server = Translations({})
    url = server.url
    server.server_close()
    summary = run(url, users=1, seconds=0.8, beam_share=0.0, seed=1)
    assert summary.outcomes[Outcome.ANSWERED] == 0
    assert summary.outcomes[Outcome.FAILED] > 0
    assert all(reason.startswith("no answer") for reason in summary.reasons)
    assert summary.exit_code == 1


def test_plain_locust_runs_the_same_file_and_ends_with_the_same_status(serve: Translations) -> None:
    command = [sys.executable, "-m", "locust", "-f", "loadtest/locustfile.py", "--headless", "-H", serve.url]
    ran = subprocess.run(
        [*command, "-u", "2", "-r", "2", "-t", "1s", "--only-summary"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "sentences/s" in ran.stdout
    assert "Aggregated" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(("users", "seconds", "share"), [(0, 1.0, 0.0), (1, 0.0, 0.0), (1, 1.0, 1.5)])
def test_numbers_that_make_no_test_are_refused(users: int, seconds: float, share: float) -> None:
    with pytest.raises(ValueError, match=r"not 0|not 1 and 0|between 0 and 1"):
        run("http://127.0.0.1:9", users=users, seconds=seconds, beam_share=share, seed=1)


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://localhost", "http://"])
def test_a_url_that_is_none_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:8000"):
        run(url, users=1, seconds=0.8, beam_share=0.0, seed=1)


def test_a_locust_that_breaks_is_reported_with_its_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locust.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(LoadTestFailed, match="status 3"):
        run("http://127.0.0.1:9", users=1, seconds=0.8, beam_share=0.0, seed=1)
