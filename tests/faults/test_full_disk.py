"""Files that cannot grow: uploads, translated documents and glossaries get 507, and everything else goes on."""

import resource
from collections.abc import Iterator

import httpx2
import psutil
import pytest

from tests.end_to_end.servers import Served, started, until

MAX_FILE_BYTES = 400_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server none of whose files may grow beyond a limit, as on a full disk."""
    folder = tmp_path_factory.mktemp("full")
    flags = ("--documents-folder", str(folder / "documents"), "--glossary-file", str(folder / "glossaries.sqlite"))
    (folder / "documents").mkdir()
    for served in started(*flags, "--threads", "1", "--log-format", "json"):
        server = psutil.Process(served.process.pid)
        for process in (server, *server.children(recursive=True)):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[httpx2.Client]:
    with served.client() as client:
        yield client
        assert client.post("/v1/translate", json={"text": "Tea."}).status_code == 200
        assert client.get("/health/ready").status_code == 200


def _upload(client: httpx2.Client, path: str, content: bytes, fields: dict[str, str]) -> httpx2.Response:
    return client.post(path, files={"file": ("a.txt", content)}, data=fields)


@pytest.mark.parametrize("path", ["/v1/documents", "/v2/document", "/translate_file"])
def test_an_upload_that_finds_no_space_is_507(client: httpx2.Client, path: str) -> None:
    fields = {"source": "en", "target": "de", "target_lang": "DE"}
    answer = _upload(client, path, b"x" * 2 * MAX_FILE_BYTES, fields)
    assert answer.status_code == 507, answer.text
    assert "no space left" in answer.text
    assert _upload(client, "/v1/documents", b"Good morning.", {}).status_code == 202


def test_glossaries_that_find_no_space_are_507(client: httpx2.Client, served: Served) -> None:
    entries = "\n".join(f"term {number:07}\ttranslation {number}" for number in range(3000))
    body = {"name": "g", "source_lang": "en", "target_lang": "de", "entries_format": "tsv", "entries": entries}
    statuses = [client.post("/v2/glossaries", json=body).status_code for _ in range(8)]
    assert statuses[0] == 201
    assert set(statuses) == {201, 507}
    stored = client.get("/v2/glossaries").json()["glossaries"]
    assert len(stored) == statuses.count(201)


def test_a_translation_that_finds_no_space_fails_with_the_reason(client: httpx2.Client) -> None:
    """The document fits, and its translation has more letters."""
    content = b"I am old.\n" * (MAX_FILE_BYTES // 10 - 1000)
    path = _upload(client, "/v1/documents", content, {}).headers["Location"]
    until(lambda: client.get(path).json()["status"] not in ("queued", "translating"))
    assert client.get(path).json()["error"]["code"] == "storage_full"
