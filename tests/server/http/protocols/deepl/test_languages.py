"""Languages of the DeepL-compatible protocol, and the products that it lacks."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor


@pytest.fixture(scope="module")
def client(echo_for: EchoFor) -> Iterator[TestClient]:
    engines = [echo_for("en", "de"), echo_for("de", "en"), echo_for("en", "pt")]
    with TestClient(create_app(Settings(), engines)) as client:
        yield client


def test_languages_of_the_second_version(client: TestClient) -> None:
    source = [{"language": "DE", "name": "German"}, {"language": "EN", "name": "English"}]
    assert client.get("/v2/languages").json() == source
    targets = client.request("GET", "/v2/languages", data={"type": "target"}).json()
    assert [each["language"] for each in targets] == ["DE", "EN-GB", "EN-US", "PT-PT", "PT-BR"]
    assert [each["supports_formality"] for each in targets] == [True, False, False, True, True]
    assert client.post("/v2/languages", json={"type": "target"}).json() == targets
    assert client.get("/v2/languages?type=both").status_code == 400


def _languages(client: TestClient, resource: str) -> dict[str, dict[str, object]]:
    answer = client.get("/v3/languages", params={"resource": resource, "include": ["beta", "external"]})
    assert answer.status_code == 200, answer.text
    return {each["lang"]: each for each in answer.json()}


def test_languages_of_texts_have_sides_and_features(client: TestClient) -> None:
    found = _languages(client, "translate_text")
    assert list(found) == ["de", "en", "en-GB", "en-US", "pt-BR", "pt-PT"]
    assert found["de"] == {
        "lang": "de",
        "name": "German",
        "usable_as_source": True,
        "usable_as_target": True,
        "status": "stable",
        "features": {
            name: {"status": "stable"} for name in ("formality", "tag_handling", "glossary", "auto_detection")
        },
    }
    assert (found["en"]["usable_as_source"], found["en"]["usable_as_target"]) == (True, False)
    assert (found["en-GB"]["usable_as_source"], found["en-GB"]["usable_as_target"]) == (False, True)
    assert set(found["en-GB"]["features"]) == {"tag_handling", "glossary"}  # type: ignore[call-overload]
    assert "formality" in found["pt-BR"]["features"]  # type: ignore[operator]


@pytest.mark.parametrize(("query", "status"), [({}, 400), ({"resource": "speech"}, 400), ({"resource": "write"}, 404)])
def test_a_resource_that_is_not_there_is_an_error(client: TestClient, query: dict[str, str], status: int) -> None:
    answer = client.get("/v3/languages", params=query)
    assert (answer.status_code, list(answer.json())) == (status, ["message"])


@pytest.mark.parametrize(
    ("method", "path", "product"),
    [
        ("POST", "/v2/write/rephrase", "write"),
        ("POST", "/v2/write/correct", "write"),
        ("GET", "/v3/style_rules", "style_rules"),
        ("PATCH", "/v3/style_rules/1/custom_instructions/2", "style_rules"),
        ("POST", "/v3/voice/realtime", "voice"),
    ],
)
def test_a_product_that_is_not_there_is_named(client: TestClient, method: str, path: str, product: str) -> None:
    answer = client.request(method, path, json={})
    assert answer.status_code == 404
    assert f"does not have {product}" in answer.json()["message"]
    assert "translate_text" in answer.json()["message"]
