import pytest
from starlette.testclient import TestClient

from bundle.loading import Bundle
from server.http.app import create_app
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.workers.cache import CachedEngineClient
from tests.fakes.echo import EchoGenerator


def test_the_same_text_twice_over_http_is_decoded_once_and_the_metrics_say_so(echo_bundle: Bundle) -> None:
    metrics = Metrics()
    echo = EchoGenerator(echo_bundle)
    generator = CachedEngineClient(echo, 100, metrics)
    with TestClient(create_app(Settings(), [generator], metrics)) as client:
        body = {"text": "Good morning. Tea. Good morning."}
        first, second = (client.post("/v1/translate", json=body) for _ in range(2))
        exposition = client.get("/metrics").text
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()
    for outcome, count in {"decoded": 2.0, "coalesced": 1.0, "cached": 3.0}.items():
        assert f'kvasir_sentences_total{{outcome="{outcome}"}} {count}\n' in exposition
    assert "kvasir_cached_sentences 2.0\n" in exposition
    assert len(echo.batches) == 1
    assert echo.is_closed


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/translate", {"text": "Tea."}), ("/translate", {"q": "Tea.", "source": "en", "target": "de"})],
)
def test_with_cache_control_no_cache_a_text_is_decoded_anew(
    echo_bundle: Bundle, path: str, body: dict[str, str]
) -> None:
    metrics = Metrics()
    echo = EchoGenerator(echo_bundle)
    with TestClient(create_app(Settings(), [CachedEngineClient(echo, 100, metrics)], metrics)) as client:
        answers = [
            client.post(path, json=body, headers=headers)
            for headers in ({}, {"Cache-Control": "max-age=0, No-Cache"}, {"Cache-Control": "max-age=60"})
        ]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len(echo.batches) == 2
