"""Which machines the server reaches, and which may reach it."""

import json
from contextlib import contextmanager

from tests.end_to_end.servers import Served, started, until

_running = contextmanager(started)
_OPEN = "API open to every machine that reaches it; see --api-keys"


def _messages(served: Served) -> list[object]:
    return [line["message"] for line in served.lines]


def test_a_server_requests_nothing_from_other_machines() -> None:
    with _running("--threads", "1", module="tests.end_to_end.offline_server") as served:
        with served.client() as client:
            for path in ("/", "/docs", "/openapi.json", "/v1/models", "/v1/languages", "/metrics", "/health/ready"):
                assert client.get(path).status_code == 200, path
            body = {"text": "Good morning. See https://example.org/a now.", "source": "auto", "target": "de"}
            assert "Guten Morgen" in client.post("/v1/translate", json=body).text
            assert "data:" in client.post("/v1/translate", json=body | {"stream": True}).text
            assert client.post("/v1/detect", json={"text": "Guten Morgen."}).json()["detections"]
            page = b'<html><img src="https://example.org/x.png"><p>Good morning.</p></html>'
            files, fields = {"file": ("page.html", page)}, {"source": "en", "target": "de"}
            document = client.post("/v1/documents", files=files, data=fields).json()["id"]
            until(lambda: client.get(f"/v1/documents/{document}").json()["status"] in ("done", "error"))
            assert "Guten Morgen" in client.get(f"/v1/documents/{document}/content").text
        served.process.terminate()
        assert served.process.wait() == 0
        assert "tests reach this machine only" not in json.dumps(served.lines)


def test_a_server_that_other_machines_reach_without_keys_warns(served: Served) -> None:
    assert _OPEN not in _messages(served)
    with _running("--threads", "1", "--host", "0.0.0.0") as reachable:
        assert _OPEN in _messages(reachable)
