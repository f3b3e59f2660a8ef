"""The protocols of game translators, with engines that answer with their source."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator

TEXT = "Tea.\n\nGood water & tea.\n"


@pytest.fixture
def sugoi(echo_for: EchoFor) -> Iterator[tuple[TestClient, EchoGenerator]]:
    japanese = echo_for("ja", "en")
    with TestClient(create_app(Settings(), [echo_for("en", "de"), japanese])) as client:
        yield client, japanese


@pytest.mark.parametrize("path", ["/translate", "/xunity/translate"])
def test_xunity_gets_plain_text_with_its_line_breaks(compatible: TestClient, path: str) -> None:
    answer = compatible.get(path, params={"from": "en", "to": "de", "text": TEXT})
    assert (answer.status_code, answer.text) == (200, TEXT)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    rejected = compatible.get(path, params={"from": "ja", "to": "de", "text": TEXT})
    assert (rejected.status_code, list(rejected.json())) == (400, ["error"])


@pytest.mark.parametrize("path", ["/", "/sugoi/"])
def test_sugoi_gets_a_text_or_a_list(sugoi: tuple[TestClient, EchoGenerator], path: str) -> None:
    client, japanese = sugoi
    one = client.post(path, json={"message": "translate sentences", "content": "Tea."})
    assert (one.status_code, one.json()) == (200, "Tea.")
    several = client.post(path, json={"message": "translate sentences", "content": ["Tea!", "Water."]})
    assert several.json() == ["Tea!", "Water."]
    assert len(japanese.batches[-1]) == 2
    batch = client.post(path, json={"message": "translate batch", "batch": ["Tea."]})
    assert batch.json() == ["Tea."]


def test_sugoi_needs_japanese_or_a_single_pair(compatible: TestClient, echo: EchoGenerator) -> None:
    body = {"message": "translate sentences", "content": "Tea."}
    rejected = compatible.post("/", json=body)
    assert rejected.status_code == 400
    assert "ja to en" in rejected.json()["error"]
    with TestClient(create_app(Settings(), [echo])) as client:
        assert client.post("/", json=body).json() == "Tea."


def test_the_page_stays_at_its_address(compatible: TestClient) -> None:
    assert "<html" in compatible.get("/").text
    assert compatible.post("/", json={"content": "Tea."}).status_code == 405
