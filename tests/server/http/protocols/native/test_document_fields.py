from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor
from tests.server.http.protocols.native.test_quality import EVEN


@pytest.fixture(scope="module")
def client(echo_for: EchoFor) -> Iterator[TestClient]:
    engine = echo_for("en", "de")
    config = engine.bundle.config.model_copy(update={"quality": {"en-de": EVEN}})
    calibrated = type(engine)(type(engine.bundle)(engine.bundle.path, config))
    with TestClient(create_app(Settings(max_client_documents=100), [calibrated])) as client:
        yield client


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("source", "en" + "-x" * 31, 202),
        ("source", "en" + "-x" * 32, 422),
        ("target", "de" + "-x" * 32, 422),
        ("beam_size", "1", 202),
        ("beam_size", "0", 422),
        ("length_penalty", "10", 202),
        ("length_penalty", "-10", 202),
        ("length_penalty", "10.1", 422),
        ("length_penalty", "-10.1", 422),
        ("length_penalty", "nan", 422),
        ("min_quality", "0", 202),
        ("min_quality", "1", 202),
        ("min_quality", "1.01", 422),
        ("min_quality", "-0.01", 422),
        ("min_quality", "nan", 422),
        ("repair", "false", 202),
        ("repair", "x", 422),
        ("format", "txt", 202),
        ("format", "x" * 17, 422),
        ("delimiter", ",,,,", 422),
        ("columns", "x" * 4001, 422),
        ("encoding", "x" * 65, 422),
    ],
)
def test_fields_of_a_document_have_limits(client: TestClient, name: str, value: str, status: int) -> None:
    form = {"source": "en", "target": "de"} | {name: value}
    answer = client.post("/v1/documents", files={"file": ("a.txt", b"Tea.")}, data=form)
    assert answer.status_code == status, answer.text
    if status == 202:
        assert client.delete(answer.headers["location"]).status_code == 204


@pytest.mark.parametrize(("name", "result"), [("a.b.txt", "a.b.de.txt"), ("a.txt", "a.de.txt"), ("a", "a")])
def test_the_name_of_the_translation_has_the_language(client: TestClient, name: str, result: str) -> None:
    form = {"source": "en", "target": "de", "format": "txt"}
    answer = client.post("/v1/documents", files={"file": (name, b"Tea.")}, data=form)
    assert answer.json()["name"] == result
    client.delete(answer.headers["location"])
