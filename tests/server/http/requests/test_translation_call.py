import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.app import create_app
from server.http.requests.translation_call import expected_detail_bytes
from server.interface.decoding_options import DecodingOptions
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator


def test_details_are_expected_to_take_memory_by_character() -> None:
    assert expected_detail_bytes(DecodingOptions(return_token_scores=True), 100) == 0
    attention = expected_detail_bytes(DecodingOptions(return_attention=True), 100)
    alternatives = expected_detail_bytes(DecodingOptions(num_token_alternatives=2), 100)
    assert attention > 10 * alternatives > 0
    assert expected_detail_bytes(DecodingOptions(num_token_alternatives=4), 100) == 2 * alternatives
    assert expected_detail_bytes(DecodingOptions(num_token_alternatives=2), 200) == 2 * alternatives
    both = DecodingOptions(return_attention=True, num_token_alternatives=2)
    assert expected_detail_bytes(both, 100) == attention + alternatives


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/score"])
def test_details_beyond_the_memory_for_responses_are_rejected(echo: EchoGenerator, path: str) -> None:
    app: FastAPI = create_app(Settings(max_unread_megabytes=1), [echo])
    body = {"text": "Tea.", "translation": "Tee.", "return_attention": True}
    if path == "/v1/translate":
        del body["translation"]
    with TestClient(app) as client:
        server = app.state.server
        assert client.post(path, json=body).status_code != 429
        assert server.expected.total == 0, "nothing is held behind the response"
        server.expected.add("testclient", 250_000)
        rejected = client.post(path, json=body)
        assert (rejected.status_code, rejected.json()["error"]["code"]) == (429, "queue_full")
        assert server.expected.total == 250_000
        assert client.post(path, json=body | {"return_attention": False}).status_code != 429
