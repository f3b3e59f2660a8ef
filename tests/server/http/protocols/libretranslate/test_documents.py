"""Documents in the LibreTranslate-compatible protocol."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit
from urllib.request import Request

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.interface.errors import EngineFailed
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

TEXT = b"Good morning.\n\nWhere is the railway station?\n"
LANGUAGES = {"source": "en", "target": "de"}


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(max_file_megabytes=1, max_body_bytes=2000), [echo])) as client:
        yield client


def test_a_document_is_translated_and_can_be_fetched_from_where_the_answer_says(client: TestClient) -> None:
    answer = client.post("/translate_file", files={"file": ("a letter.txt", TEXT)}, data=LANGUAGES)
    assert answer.status_code == 200, answer.text
    url = urlsplit(answer.json()["translatedFileUrl"])
    assert url.scheme == "http"
    assert url.path.startswith("/download_file/")
    assert url.path.endswith("letter.txt")
    fetched = client.get(url.path)
    assert fetched.content == TEXT
    assert (
        fetched.headers["Content-Disposition"]
        == "attachment; filename=\"a letter.txt\"; filename*=utf-8''a%20letter.txt"
    )


@pytest.mark.parametrize("name", ["a letter.txt", "50% #1?.txt", "a%20b&c.txt", "Größe 手紙.txt", "a\u2028b'\"<.txt"])
def test_the_address_is_valid_whatever_the_name_is(client: TestClient, name: str) -> None:
    answer = client.post("/translate_file", files={"file": (name, TEXT)}, data=LANGUAGES)
    url = answer.json()["translatedFileUrl"]
    assert re.fullmatch(r"http://testserver/download_file/[0-9a-f]{32}(\.|[\w~-]|%[0-9A-F]{2})+", url, re.ASCII)
    assert client.get(url).content == TEXT
    # What a client sends that does not touch an address.
    assert Request(url).selector == url.removeprefix("http://testserver")


@pytest.mark.parametrize(
    ("name", "content", "fields", "message"),
    [
        ("", b"", LANGUAGES, "Invalid request: missing file parameter"),
        ("a.txt", TEXT, {"target": "de"}, "Invalid request: missing source parameter"),
        ("a.txt", TEXT, {"source": "zz", "target": "de"}, "zz is not supported"),
        ("a.exe", TEXT, LANGUAGES, "Invalid request: file format not supported"),
    ],
)
def test_errors_have_the_wording_of_the_protocol(
    client: TestClient, name: str, content: bytes, fields: dict[str, str], message: str
) -> None:
    files = {"file": (name, content)} if name else {"other": ("a", b"b")}
    answer = client.post("/translate_file", files=files, data=fields)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith(message)


def test_a_failure_leaves_nothing_behind(client: TestClient, echo: EchoGenerator) -> None:
    echo.error = EngineFailed("a step failed")
    answer = client.post("/translate_file", files={"file": ("a.txt", TEXT)}, data=LANGUAGES)
    assert (answer.status_code, list(answer.json())) == (500, ["error"])
    assert "kvasir_documents_held 0.0" in client.get("/metrics").text


def test_a_document_may_be_larger_than_other_bodies_but_not_than_its_own_limit(client: TestClient) -> None:
    fitting = client.post("/translate_file", files={"file": ("a.txt", b"Tea.\n" * 1000)}, data=LANGUAGES)
    assert fitting.status_code == 200
    large = client.post("/translate_file", files={"file": ("a.txt", b"Tea.\n" * 300_000)}, data=LANGUAGES)
    assert (large.status_code, list(large.json())) == (413, ["error"])
