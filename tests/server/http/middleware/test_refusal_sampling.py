import logging

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.http.middleware.recorder import RefusalSampling
from server.interface.errors import QueueFull
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator


def test_the_first_refusals_of_a_status_are_logged_and_the_others_counted() -> None:
    now = 100.0
    sampling = RefusalSampling(lambda: now)
    assert [sampling.select(429) for _ in range(10)] == [0] * 10
    assert [sampling.select(429) for _ in range(7)] == [None] * 7
    assert sampling.select(401) == 0, "another status is logged"
    now += 10
    assert sampling.select(429) == 7
    assert sampling.select(429) == 0


def test_answers_and_errors_are_all_logged() -> None:
    sampling = RefusalSampling(lambda: 0.0)
    assert [sampling.select(status) for status in (200, 422, 500, 504) for _ in range(50)] == [0] * 200


def test_a_refused_flood_leaves_ten_lines_and_is_counted_in_the_metrics(
    echo: EchoGenerator, caplog: pytest.LogCaptureFixture
) -> None:
    echo.error = QueueFull("full", 1.0)
    with caplog.at_level(logging.INFO, "kvasir.request"), TestClient(create_app(Settings(), [echo])) as client:
        for _ in range(30):
            client.post("/v1/translate", json={"text": "Tea."})
        metrics = client.get("/metrics").text
    lines = [record for record in caplog.records if record.name == "kvasir.request"]
    assert len(lines) == 10
    assert 'outcome="rejected",status="429"} 30.0' in metrics
