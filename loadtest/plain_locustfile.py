"""Ordinary Locust users of a Kvasir server, to read, change and run. See docs/load-tests.md.

locust -f loadtest/plain_locustfile.py -H http://127.0.0.1:8000                         # web page on port 8089
locust -f loadtest/plain_locustfile.py -H http://127.0.0.1:8000 --headless -u 32 -t 3m
"""

import random
import time
from pathlib import Path
from typing import Any

from locust import FastHttpUser, LoadTestShape, between, task

PAIR = {"source": "en", "target": "de"}
SENTENCES = Path(__file__).parent.joinpath("workload", "sentences.txt").read_text(encoding="utf-8").splitlines()
NO_CACHE = {"Cache-Control": "no-cache"}  # otherwise the server answers repeated sentences from its cache


class NativeUser(FastHttpUser):
    """Client of the native protocol. `weight` makes most users one of these."""

    weight = 8
    wait_time = between(0.1, 0.5)

    @task(9)
    def sentence(self) -> None:
        """Translate one sentence."""
        body = {"text": random.choice(SENTENCES), **PAIR}
        self.client.post("/v1/translate", json=body, headers=NO_CACHE, name="sentence")

    @task(1)
    def sentences(self) -> None:
        """Translate a list of ten sentences."""
        body = {"text": random.sample(SENTENCES, 10), **PAIR}
        self.client.post("/v1/translate", json=body, headers=NO_CACHE, name="list")


class LibreTranslateUser(FastHttpUser):
    """Client of the LibreTranslate-compatible protocol."""

    weight = 2
    wait_time = between(0.1, 0.5)

    @task
    def translate(self) -> None:
        """Translate one sentence."""
        self.client.post("/translate", json={"q": random.choice(SENTENCES), **PAIR}, headers=NO_CACHE)


class DocumentUser(FastHttpUser):
    """Client that uploads documents."""

    weight = 1
    wait_time = between(0.5, 1)

    @task
    def document(self) -> None:
        """Upload a document, wait for its translation, download and delete it."""
        file = ("letter.txt", "\n".join(random.sample(SENTENCES, 10)).encode())
        upload = self.client.post("/v1/documents", data=PAIR, files={"file": file}, name="upload")
        if upload.status_code != 202:  # counted as a failure
            return
        path = f"/v1/documents/{upload.json()['id']}"
        while self.client.get(path, name="progress").json()["status"] in ("queued", "translating"):
            time.sleep(0.2)
        self.client.get(f"{path}/content", name="download")
        self.client.delete(path, name="deletion")


class Steps(LoadTestShape):
    """A quarter, half and all of the users, each for a third of the run time (default: one minute)."""

    use_common_options = True  # -u, -r and -t, or the fields of the web page

    def tick(self) -> tuple[int, float] | None:
        """Return the number of users and how many of them start per second; None ends the test."""
        options: Any = self.runner and self.runner.environment.parsed_options
        step = int(3 * self.get_run_time() / (options.run_time or 60))  # type: ignore[no-untyped-call]
        return (max(options.num_users // (4, 2, 1)[step], 1), options.spawn_rate) if step < 3 else None
