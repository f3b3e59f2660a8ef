from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor

NATIVE, DEEPL, LIBRETRANSLATE, GOOGLE = "/v1/models", "/v2/usage", "/translate", "/language/translate/v2/languages"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.sqlite"


@pytest.fixture(scope="module")
def key(path: Path) -> str:
    file = KeyFile(path)
    _, text = file.add("team", KeyLimits())
    file.close()
    return text


@pytest.fixture(scope="module")
def client(key: str, path: Path, echo_for: EchoFor) -> Iterator[TestClient]:
    app: FastAPI = create_app(Settings(api_keys=path), [echo_for("en", "de")])
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize(
    ("address", "header", "value", "is_accepted"),
    [
        (NATIVE, "Authorization", "Bearer {}", True),
        (NATIVE, "Authorization", "bearer  {} ", True),
        (NATIVE, "Authorization", "DeepL-Auth-Key {}", True),
        (NATIVE, "Authorization", "Basic {}", False),
        (NATIVE, "Authorization", "{}", False),
        (NATIVE, "Authorization", "Bearer ", False),
        (NATIVE, "Authorization", "Bearer {}x", False),
        (NATIVE, "X-Goog-Api-Key", "{}", False),
        (DEEPL, "Authorization", "DeepL-Auth-Key {}", True),
        (GOOGLE, "X-Goog-Api-Key", "{}", True),
        (GOOGLE, "X-Goog-Api-Key", "{}x", False),
    ],
)
def test_a_key_in_a_header(
    client: TestClient, key: str, address: str, header: str, value: str, is_accepted: bool
) -> None:
    status = client.get(address, headers={header: value.format(key)}).status_code
    assert (status not in (400, 401, 403)) == is_accepted, status


@pytest.mark.parametrize(
    ("address", "query", "is_accepted"),
    [
        (NATIVE, "api_key", False),
        (NATIVE, "key", False),
        (DEEPL, "auth_key", True),
        (DEEPL, "api_key", False),
        (GOOGLE, "key", True),
    ],
)
def test_a_key_in_the_query(client: TestClient, key: str, address: str, query: str, is_accepted: bool) -> None:
    assert (client.get(address, params={query: key}).status_code not in (400, 401, 403)) == is_accepted
    assert client.get(address, params={query: key + "x"}).status_code in (400, 401, 403)


@pytest.mark.parametrize(("num_fields", "is_accepted"), [(2000, True), (2001, False)])
def test_a_key_is_not_looked_for_among_very_many_fields(
    client: TestClient, key: str, num_fields: int, is_accepted: bool
) -> None:
    address = f"{DEEPL}?" + "a=1&" * (num_fields - 1) + f"auth_key={key}"
    assert client.get(address).status_code == (200 if is_accepted else 403)


@pytest.mark.parametrize("address", ["/languages", "/frontend/settings", "/health/live", "/metrics", "/"])
def test_open_paths_need_no_key(client: TestClient, address: str) -> None:
    assert client.get(address).status_code == 200


def test_a_key_that_is_not_in_the_head_may_be_in_the_body_of_its_protocol_only(client: TestClient, key: str) -> None:
    fields = {"q": "Tea.", "source": "en", "target": "de", "api_key": key}
    assert client.post(LIBRETRANSLATE, json=fields).status_code == 200
    assert client.post("/v1/translate", json={"text": "Tea.", "api_key": key}).status_code == 401
    assert client.get("/v2/usage").status_code == 403, "a request that has no body"
