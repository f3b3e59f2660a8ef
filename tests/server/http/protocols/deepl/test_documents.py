"""Documents in the DeepL-compatible protocol."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

TEXT = b"Good morning.\n\nWhere is the railway station?\n"


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), [echo])) as client:
        yield client


def _submit(client: TestClient, **fields: str) -> dict[str, str]:
    answer = client.post("/v2/document", files={"file": ("a.txt", TEXT)}, data={"target_lang": "DE"} | fields)
    assert answer.status_code == 200, answer.text
    handle: dict[str, str] = answer.json()
    return handle


def _status(client: TestClient, handle: dict[str, str]) -> dict[str, object]:
    answer: dict[str, object] = client.post(
        f"/v2/document/{handle['document_id']}", json={"document_key": handle["document_key"]}
    ).json()
    return answer


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Guten Morgen. Wo ist der Bahnhof?", "error"),
        ("Guten Morgen. Wo ist der Bahnhof?\n\n42", "error"),
        ("42", "done"),
        ("Good morning. Where is the railway station?", "done"),
    ],
)
def test_a_document_in_the_target_language_is_an_error(echo: EchoGenerator, text: str, status: str) -> None:
    with TestClient(create_app(Settings(detect_languages=["en", "de"]), [echo])) as client:
        answer = client.post("/v2/document", files={"file": ("a.txt", text.encode())}, data={"target_lang": "DE"})
        while (state := _status(client, answer.json()))["status"] in ("queued", "translating"):
            time.sleep(0.005)
    assert state["status"] == status
    assert state.get("error_message") == ("Source and target language are equal." if status == "error" else None)


def test_requests_without_the_key_get_404(client: TestClient) -> None:
    handle = _submit(client)
    for key in ("", "0" * 64, None, "ä"):
        for address in (f"/v2/document/{handle['document_id']}", f"/v2/document/{handle['document_id']}/result"):
            answer = client.post(address, json={"document_key": key})
            assert (answer.status_code, answer.json()) == (404, {"message": "Document not found"})
    assert client.get(f"/v1/documents/{handle['document_id']}").status_code == 404
    assert client.get(f"/v1/documents/{handle['document_id']}/content").status_code == 404
    assert client.get(f"/download_file/{handle['document_id']}.a.txt").status_code == 404
    unknown = client.post("/v2/document/nothing", json={"document_key": "0"})
    assert (unknown.status_code, list(unknown.json())) == (404, ["message"])


def test_what_is_not_done_cannot_be_fetched(client: TestClient, echo: EchoGenerator) -> None:
    echo.gate = asyncio.Event()
    handle = _submit(client)
    answer = client.post(f"/v2/document/{handle['document_id']}/result", json={"document_key": handle["document_key"]})
    assert (answer.status_code, answer.json()) == (503, {"message": "Document translation is not done"})


@pytest.mark.parametrize(
    ("name", "output_format", "is_supported"),
    [
        ("a.txt", "txt", True),
        ("a.txt", ".TXT", True),
        ("a.txt", "docx", False),
        ("a.txt", "t", False),
        ("a.pdf", "docx", True),
        ("a.pdf", "pdf", False),
    ],
)
def test_the_format_of_the_translation_may_be_named(
    client: TestClient, name: str, output_format: str, is_supported: bool
) -> None:
    data = {"target_lang": "DE", "output_format": output_format}
    answer = client.post("/v2/document", files={"file": (name, TEXT)}, data=data)
    assert answer.status_code == (200 if is_supported else 400), answer.text
    assert is_supported or answer.json() == {"message": "output_format not supported."}


@pytest.mark.parametrize(
    ("name", "content", "fields", "message"),
    [
        ("a.exe", TEXT, {}, "Invalid file data."),
        ("a.txt", TEXT, {"target_lang": "xx"}, "Value for 'target_lang' not supported."),
        ("a.txt", TEXT, {"source_lang": "EN", "target_lang": "EN"}, "Source and target language are equal."),
    ],
)
def test_errors_have_the_wording_of_the_protocol(
    client: TestClient, name: str, content: bytes, fields: dict[str, str], message: str
) -> None:
    answer = client.post("/v2/document", files={"file": (name, content)}, data={"target_lang": "DE"} | fields)
    assert answer.status_code == 400, answer.text
    assert answer.json()["message"].startswith(message)
