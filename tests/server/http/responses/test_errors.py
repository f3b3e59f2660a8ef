"""No request of a client leads to a 500, and every error has the same format."""

import json
from collections.abc import Iterator
from http.client import responses

import pytest
from starlette.testclient import TestClient

from bundle.loading import Bundle
from server.http.app import create_app
from server.http.responses.errors import error_response
from server.interface.errors import EngineFailed, KvasirError, QueueFull, TryLater
from server.interface.request import FinishReason
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

_JSON = {"Content-Type": "application/json"}


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    settings = Settings(max_texts=100, max_text_characters=20_000, max_body_bytes=200_000)
    with TestClient(create_app(settings, [echo])) as client:
        yield client


def _error(client: TestClient, content: bytes, status: int, headers: dict[str, str] | None = None) -> tuple[str, str]:
    answer = client.post("/v1/translate", content=content, headers=_JSON if headers is None else headers)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"code", "message"}
    still = client.post("/v1/translate", json={"text": "Tea."})
    assert still.json()["translations"][0]["text"] == "Tea."
    return answer.json()["error"]["code"], answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "`text` is required"),
        ({"text": ["a", 5]}, "`text` item 1 must be a string"),
        ({"text": "a", "beam_size": 9}, "`beam_size` must be at most 8. Given: 9"),
        ({"text": "a", "max_new_tokens": 33}, "`max_new_tokens` must be from 1 to 32 with this model. Given: 33"),
        ({"text": "a", "beam_width": 4}, "`beam_width` is not a field of this request"),
        ({"text": "a", "target": "fr"}, "no model translates from any language to fr; available: en to de"),
        ({"text": ["a"] * 101}, "a request must have at most 100 texts. Given: 101; send them in parts"),
        ("text", "the body must be a JSON object, sent with Content-Type: application/json"),
    ],
)
def test_an_invalid_body_is_rejected_in_one_readable_sentence(client: TestClient, body: object, message: str) -> None:
    assert _error(client, json.dumps(body).encode(), 422)[1] == message


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "-0.0e-400", "123456789" * 20])
def test_numbers_that_are_none_are_refused_or_harmless(client: TestClient, value: str) -> None:
    answer = client.post("/v1/translate", content=f'{{"text": "a", "length_penalty": {value}}}', headers=_JSON)
    assert answer.status_code == (200 if value == "-0.0e-400" else 422)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b'{"text": "\xff\xfe"}', 400),
        (b"[" * 100_000, 422),
        (b'{"text": "a", "beam_size": ' + b"9" * 5000 + b"}", 422),
        (b'{"text": "a", "source": "\\ud800"}', 422),
    ],
)
def test_what_is_no_json_is_refused(client: TestClient, content: bytes, status: int) -> None:
    _error(client, content, status)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "nonsense"])
def test_another_content_type_is_refused_and_the_right_one_named(client: TestClient, content_type: str) -> None:
    _, message = _error(client, b'{"text": "a"}', 422, {"Content-Type": content_type})
    assert "application/json" in message


def test_a_body_over_the_limit_is_refused_when_it_is_announced(client: TestClient) -> None:
    code, message = _error(client, b" " * 200_001, 413)
    assert code == "body_too_large"
    assert "200001" in message
    assert "200000" in message


def test_a_body_over_the_limit_is_refused_when_it_comes_unannounced(client: TestClient) -> None:
    answer = client.post("/v1/translate", content=(b" " * 1000 for _ in range(201)), headers=_JSON)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "body_too_large"
    assert answer.headers["Connection"] == "close"


def test_a_full_queue_says_when_to_come_back(client: TestClient, echo: EchoGenerator) -> None:
    echo.error = QueueFull("2048 sentences wait and 2048 may", 2.1)
    answer = client.post("/v1/translate", json={"text": "Tea."})
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "3"
    assert answer.json()["error"] == {"code": "queue_full", "message": "2048 sentences wait and 2048 may"}


def test_time_that_was_up_is_a_504(client: TestClient, echo: EchoGenerator) -> None:
    echo.finish_reason = FinishReason.DEADLINE
    answer = client.post("/v1/translate", json={"text": "Tea.", "timeout_seconds": 0.5})
    assert answer.status_code == 504
    assert answer.json()["error"]["code"] == "deadline_exceeded"
    assert "0.5 seconds" in answer.json()["error"]["message"]


@pytest.mark.parametrize("error", [EngineFailed("a step failed"), RuntimeError("/an/internal/path")])
def test_a_bug_is_a_500_in_the_error_format_without_details(echo_bundle: Bundle, error: Exception) -> None:
    with TestClient(create_app(Settings(), [EchoGenerator(echo_bundle, error=error)])) as client:
        answer = client.post("/v1/translate", json={"text": "Tea."})
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == "engine_failed"
        assert "path" not in answer.text
        assert client.get("/health/live").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing/here", 404, "not_found"),
        ("GET", "/v1/translate", 405, "method_not_allowed"),
        ("DELETE", "/health/live", 405, "method_not_allowed"),
        ("POST", "/nothing", 404, "not_found"),
        ("POST", "/", 405, "method_not_allowed"),
    ],
)
def test_wrong_paths_and_methods_have_the_error_format(
    client: TestClient, method: str, path: str, status: int, code: str
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    if status == 405:
        assert answer.headers["Allow"] in answer.json()["error"]["message"]


def _all_errors(root: type[KvasirError]) -> Iterator[type[KvasirError]]:
    for error in root.__subclasses__():
        yield error
        yield from _all_errors(error)


@pytest.mark.parametrize("error", list(_all_errors(KvasirError)))
def test_every_error_has_a_code_of_its_own_and_a_status(error: type[KvasirError]) -> None:
    instance = error("full", 1.0) if issubclass(error, TryLater) else error("a message")
    answer = error_response(instance)
    assert answer.status_code == 499 or answer.status_code in responses
    assert [other.code for other in _all_errors(KvasirError)].count(error.code) == 1
