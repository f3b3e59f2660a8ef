"""`kvasir serve` as an operator runs it: a process, a port, a signal."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import httpx2
import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, ROOT, Served, gauge, num_cancelled, until


def test_a_newcomer_gets_german_for_english(served: Served) -> None:
    with served.client() as client:
        assert client.get("/health/ready").json() == {"status": "ok"}
        body = {"text": "Good morning. How are you today?", "source": "en", "target": "de"}
        answer = client.post("/v1/translate", json=body)
        assert answer.status_code == 200
        [translation] = answer.json()["translations"]
        assert translation["text"].startswith("Guten")
        assert translation["text"].endswith("?")
        assert translation["finish_reason"] == "stop"
        assert answer.json()["model"] == "en-de"
        assert client.get("/health/live").json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("content", "statuses"),
    [
        (json.dumps({"text": "x" * 5_000_000}), {413}),
        ('{"text": "\\ud800 and \\u0000"}', {200}),
        ("[" * 100_000, {422}),
    ],
)
def test_bad_input_gets_an_answer_and_the_server_goes_on(served: Served, content: str, statuses: set[int]) -> None:
    with served.client() as client:
        answer = client.post("/v1/translate", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code in statuses
        assert ("error" in answer.json()) == (answer.status_code != 200)
        again = client.post("/v1/translate", json={"text": "Thank you."})
        assert "Dank" in again.json()["translations"][0]["text"]


def test_a_client_that_gives_up_frees_its_rows(served: Served) -> None:
    text = "I would like to go home now. " * 1000
    with served.client() as watcher, served.client() as client:
        num_before = num_cancelled(watcher)
        with pytest.raises(httpx2.ReadTimeout):
            client.post("/v1/translate", json={"text": text, "beam_size": 8}, timeout=0.3)
        until(lambda: gauge(watcher, "kvasir_requests_running") + gauge(watcher, "kvasir_requests_waiting") == 0)
        until(lambda: num_cancelled(watcher) == num_before + 1)


def test_a_server_that_is_told_to_end_while_it_loads_ends_with_0_and_leaves_nothing() -> None:
    command = [sys.executable, "-m", "kvasir", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        try:
            assert json.loads(process.stderr.readline())["message"] == "loading models"
            os.killpg(process.pid, signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 0
            assert process.stderr.read() == ""
        finally:
            if process.poll() is None:
                process.kill()


def test_a_signal_refuses_what_is_new_finishes_what_runs_and_ends_with_0(draining: Served) -> None:
    answers: list[httpx2.Response] = []
    text = "I would like to go home now. " * 200

    def ask() -> None:
        with draining.client() as client:
            answers.append(client.post("/v1/translate", json={"text": text, "beam_size": 8}))

    asking = threading.Thread(target=ask)
    asking.start()
    with draining.client() as client:
        until(lambda: gauge(client, "kvasir_requests_running") > 0)
        os.killpg(draining.process.pid, signal.SIGTERM)  # a terminal, and some supervisors, tell the engines too
        until(lambda: client.get("/health/ready").status_code == 503)
        assert client.get("/health/ready").json() == {"status": "draining"}
        assert client.get("/health/live").status_code == 200
        refused = client.post("/v1/translate", json={"text": "Yes."})
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "draining"
        assert refused.headers["Connection"] == "close"
    asking.join()
    assert answers[0].status_code == 200
    assert answers[0].json()["translations"][0]["text"].count(".") >= 200
    assert draining.process.wait(PATIENCE_SECONDS) == 0


def test_what_a_second_signal_cuts_off_is_told_so_and_the_exit_code_says_it(draining: Served) -> None:
    answers: list[httpx2.Response] = []
    body = {"text": ["I would like to go home now."] * 100, "min_new_tokens": 200}

    def ask() -> None:
        with draining.client() as client:
            answers.append(client.post("/v1/translate", json=body))

    asking = threading.Thread(target=ask)
    asking.start()
    with draining.client() as client:
        until(lambda: gauge(client, "kvasir_requests_running") > 0)
        os.killpg(draining.process.pid, signal.SIGINT)
        until(lambda: client.get("/health/ready").status_code == 503)
        draining.process.send_signal(signal.SIGTERM)
    asking.join()
    assert answers[0].status_code == 503
    assert answers[0].json()["error"]["code"] == "draining"
    assert draining.process.wait(PATIENCE_SECONDS) == 1
    assert [line["lost"] for line in draining.lines if "lost" in line] == [1]
    assert not any("exc_info" in line for line in draining.lines)


def test_three_words_overtake_a_hundred_and_fifty_that_are_being_decoded(served: Served) -> None:
    answered: list[float] = []

    def ask_long() -> None:
        with served.client() as client:
            text = " ".join(["the little dog saw the big cat and"] * 19)
            answer = client.post("/v1/translate", json={"text": text, "beam_size": 8})
            answered.append(time.monotonic())
            assert answer.status_code == 200

    with served.client() as client:
        asking = threading.Thread(target=ask_long)
        asking.start()
        until(lambda: gauge(client, "kvasir_requests_running") > 0)
        short = client.post("/v1/translate", json={"text": "I am here.", "beam_size": 1})
        short_answered = time.monotonic()
        assert short.status_code == 200
        asking.join()
    assert short_answered < answered[0]
