import asyncio
import json
import logging
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from bundle.loading import Bundle
from bundle.manifest import BundleError
from server.http.app import create_app
from server.http.state import ServerState
from server.interface.errors import QueueFull
from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.workers.cache import CachedEngineClient
from tests.fakes.echo import EchoFor, EchoGenerator, EchoStatus

Message = MutableMapping[str, object]


@pytest.fixture
def app(echo: EchoGenerator) -> FastAPI:
    return create_app(Settings(), [echo])


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


def _server(app: FastAPI) -> ServerState:
    server = app.state.server
    assert isinstance(server, ServerState)
    return server


def test_a_text_is_translated(client: TestClient) -> None:
    answer = client.post("/v1/translate", json={"text": "Good morning. Tea.", "source": "en", "target": "de"})
    assert answer.status_code == 200
    [translation] = answer.json()["translations"]
    assert answer.json()["model"] == "echo-en-de"
    assert translation["text"] == "Good morning. Tea."
    assert translation["finish_reason"] == "stop"
    assert translation["source_tokens"] == translation["target_tokens"] > 4
    assert set(translation) == {"text", "source_tokens", "target_tokens", "finish_reason"}


def test_every_parameter_reaches_the_engine(client: TestClient, echo: EchoGenerator) -> None:
    body = {
        "text": "Tea.",
        "beam_size": 5,
        "length_penalty": 0.5,
        "max_new_tokens": 20,
        "num_hypotheses": 2,
        "early_stopping": True,
        "return_scores": True,
        "timeout_seconds": 3,
    }
    answer = client.post("/v1/translate", json=body)
    [[request]] = echo.batches
    params = request.params
    assert (params.beam_size, params.options.length_penalty, params.max_new_tokens) == (5, 0.5, 20)
    assert (params.num_hypotheses, params.options.early_stopping, params.options.return_scores) == (2, True, True)
    assert request.deadline is not None
    [translation] = answer.json()["translations"]
    assert translation["score"] == -1
    [alternative] = translation["alternatives"]
    assert alternative["score"] == -2


def test_answers_say_where_the_time_went(client: TestClient) -> None:
    for body in ({"text": "Tea."}, {"text": 5}):
        timing = client.post("/v1/translate", json=body).headers["Server-Timing"]
        names = [entry.split(";dur=")[0] for entry in timing.split(", ")]
        assert names == ["tokenize", "queue", "encode", "decode", "total"]
    decode = client.post("/v1/translate", json={"text": "Tea."}).headers["Server-Timing"].split(", ")[3]
    assert float(decode.removeprefix("decode;dur=")) == pytest.approx(7.0)


def test_a_request_id_comes_back_and_a_missing_or_odd_one_is_made(client: TestClient) -> None:
    assert client.get("/health/live", headers={"X-Request-ID": "abc-1"}).headers["X-Request-ID"] == "abc-1"
    for odd in ("", "a b", "x" * 200, '"}'):
        made = client.get("/health/live", headers={"X-Request-ID": odd}).headers["X-Request-ID"]
        assert len(made) == 32
        assert made != odd


def test_models_are_described(client: TestClient) -> None:
    [model] = client.get("/v1/models").json()["models"]
    assert model["name"] == "echo-en-de"
    assert (model["source_languages"], model["target_languages"]) == (["en"], ["de"])
    assert model["max_source_tokens"] == 32
    assert (model["demonstration"], model["purpose"], model["quality"]) == (False, None, [])
    pairs = client.get("/v1/models").json()["pairs"]
    assert pairs == [{"source": "en", "target": "de", "models": ["echo-en-de"], "pivot": None}]


def test_monitors_that_ask_for_headers_alone_get_them(client: TestClient) -> None:
    described = client.get("/openapi.json").json()["paths"]
    for path in ("/health/live", "/health/ready", "/health", "/languages", "/v1/models", "/v2/languages"):
        head = client.head(path)
        assert (head.status_code, head.headers["Content-Type"]) == (200, "application/json")
        assert "head" not in described[path]


def test_a_draining_server_takes_nothing_new_and_says_so(app: FastAPI, client: TestClient) -> None:
    _server(app).draining = True
    ready = client.get("/health/ready")
    assert (ready.status_code, ready.json()) == (503, {"status": "draining"})
    assert client.get("/health/live").status_code == 200
    answer = client.post("/v1/translate", json={"text": "Tea."})
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "draining"
    assert answer.headers["Connection"] == "close"


def test_engines_are_closed_with_the_application(app: FastAPI, echo: EchoGenerator) -> None:
    with TestClient(app):
        assert not echo.is_closed
    assert echo.is_closed


def test_a_bundle_that_cannot_be_served_keeps_the_application_from_starting(tmp_path: Path) -> None:
    app = create_app(Settings(model=[tmp_path / "nothing"]))
    with pytest.raises(BundleError, match="nothing is not a folder"), TestClient(app):
        pass


def test_requests_are_counted_by_route_and_outcome(client: TestClient, echo: EchoGenerator) -> None:
    client.post("/v1/translate", json={"text": "Tea."})
    client.post("/v1/translate", json={"text": 5})
    client.get("/secret/path?text=hush")
    echo.error = QueueFull("full", 1.0)
    client.post("/v1/translate", json={"text": "Tea."})
    echo.error, echo.finish_reason = None, FinishReason.DEADLINE
    client.post("/v1/translate", json={"text": "Tea."})
    text = client.get("/metrics").text
    for labels in (
        'endpoint="/v1/translate",outcome="ok",status="200"',
        'endpoint="/v1/translate",outcome="invalid",status="422"',
        'endpoint="/v1/translate",outcome="rejected",status="429"',
        'endpoint="/v1/translate",outcome="timeout",status="504"',
        'endpoint="unknown",outcome="invalid",status="404"',
    ):
        assert f"kvasir_requests_total{{{labels}}} 1.0" in text
    assert "secret" not in text
    assert "hush" not in text


def test_a_request_leaves_one_log_line_without_its_text(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kvasir.request"):
        client.post("/v1/translate", json={"text": "Hush-hush tea."}, headers={"X-Request-ID": "id-1"})
        client.get("/health/live")
    [record] = [record for record in caplog.records if record.name == "kvasir.request"]
    fields = record.__dict__
    assert (fields["id"], fields["endpoint"], fields["status"]) == ("id-1", "/v1/translate", 200)
    assert (fields["texts"], fields["characters"], fields["sentences"]) == (1, 14, 1)
    assert (fields["finish_reason"], fields["decode_milliseconds"]) == ("stop", 7.0)
    assert "tea" not in json.dumps({name: str(value) for name, value in fields.items()}).lower()


@pytest.mark.parametrize(("cache_sentences", "decoded", "cached"), [(10, 1.0, 1.0), (0, 2.0, 0.0)])
def test_a_model_is_opened_behind_a_cache_of_the_size_that_was_set(
    default_bundle: Bundle, cache_sentences: int, decoded: float, cached: float
) -> None:
    settings = Settings(model=[default_bundle.path], threads=1, cache_sentences=cache_sentences)
    with TestClient(create_app(settings)) as client:
        first, second = (client.post("/v1/translate", json={"text": "Good morning."}) for _ in range(2))
        text = client.get("/metrics").text
    assert first.json() == second.json()
    assert f'kvasir_sentences_total{{outcome="decoded"}} {decoded}\n' in text
    assert f'kvasir_sentences_total{{outcome="cached"}} {cached}\n' in text


def test_a_client_that_goes_away_takes_its_work_along(app: FastAPI, echo: EchoGenerator) -> None:
    """Spoken in ASGI itself, where the end of a connection is a message."""

    async def scenario() -> list[Message]:
        echo.gate, echo.entered = asyncio.Event(), asyncio.Event()
        body = json.dumps({"text": "Good morning. Tea."}).encode()
        incoming: asyncio.Queue[Message] = asyncio.Queue()
        incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/v1/translate",
            "raw_path": b"/v1/translate",
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        }
        async with app.router.lifespan_context(app):
            answering = asyncio.create_task(app(scope, incoming.get, send))
            await echo.entered.wait()
            incoming.put_nowait({"type": "http.disconnect"})
            await answering
        return sent

    sent = asyncio.run(scenario())
    assert echo.num_cancelled == 2
    assert sent[0]["status"] == 499
    exposition = _server(app).metrics.exposition().decode()
    assert 'kvasir_requests_total{endpoint="/v1/translate",outcome="cancelled",status="499"} 1.0' in exposition
    assert _server(app).num_in_flight == 0


@pytest.fixture
def two_engines(echo_for: EchoFor) -> list[EchoGenerator]:
    return [echo_for("en", "de"), echo_for("de", "en")]


@pytest.fixture
def two_app(two_engines: list[EchoGenerator]) -> FastAPI:
    return create_app(Settings(heartbeat_limit_seconds=30), two_engines)


def _health(client: TestClient) -> tuple[str, str]:
    """Return the states of liveness and readiness; those other than "ok" must have the status 503."""
    answers = [client.get(path) for path in ("/health/live", "/health/ready")]
    states = [str(answer.json()["status"]) for answer in answers]
    assert [answer.status_code for answer in answers] == [200 if state == "ok" else 503 for state in states]
    assert [client.head(path).status_code for path in ("/health/live", "/health/ready")] == [
        answer.status_code for answer in answers
    ]
    return states[0], states[1]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (EchoStatus(), ("ok", "ok")),
        (EchoStatus(heartbeat_age_seconds=30), ("ok", "ok")),
        (EchoStatus(heartbeat_age_seconds=30.1), ("stuck", "stuck")),
        (EchoStatus(draining=True), ("ok", "draining")),
        (EchoStatus(has_engine=False), ("ok", "no_engine")),
    ],
)
def test_one_engine_is_enough_to_fail_a_probe(
    two_app: FastAPI, two_engines: list[EchoGenerator], status: EchoStatus, expected: tuple[str, str]
) -> None:
    with TestClient(two_app) as client:
        two_engines[1].shown_status = status
        assert _health(client) == expected


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
