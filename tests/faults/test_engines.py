"""Engines that hang, die, or find other files than at their start."""

import asyncio
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bundle.loading import Bundle, load_bundle
from bundle.manifest import SOURCE_SENTENCEPIECE_FILE
from server.http.app import create_app
from server.interface.errors import NoEngine
from server.interface.request import Completion, Request, Timings
from server.operations.defaults import DEFAULT_MODEL
from server.operations.settings import Settings
from server.text.tokenizers.registry import open_tokenizer
from server.workers.pool import EnginePool, PoolOptions
from server.workers.process_worker import ProcessWorker
from tests.fakes.echo import EchoGenerator, EchoStatus
from tests.fakes.sentence_params import sentence_params

PATIENCE_SECONDS = 60.0
HEARTBEAT_SECONDS = 3.0
LONG = sentence_params(beam_size=4, max_new_tokens=150, min_new_tokens=149, max_repetitions=1000)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    folder = tmp_path / "en-de"
    shutil.copytree(DEFAULT_MODEL, folder)
    return load_bundle(folder)


def _pool(bundle: Bundle, replicas: int) -> tuple[EnginePool, list[ProcessWorker]]:
    options = PoolOptions(replicas, max_rows=16, processes=True, heartbeat_limit_seconds=HEARTBEAT_SECONDS)
    pool = EnginePool.open(bundle, options)
    return pool, [engine for engine in pool._engines if isinstance(engine, ProcessWorker)]


def _requests(bundle: Bundle, number: int) -> list[Request]:
    source = open_tokenizer(bundle).encode("The old man sat at the window and looked at the rain.")
    return [Request(source, LONG, Timings(time.monotonic())) for _ in range(number)]


async def _until(condition: object) -> None:
    assert callable(condition)
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up
        await asyncio.sleep(0.05)


def test_a_hung_engine_is_killed_and_its_requests_are_decoded_elsewhere(
    bundle: Bundle, caplog: pytest.LogCaptureFixture
) -> None:
    pool, engines = _pool(bundle, 2)
    before = [engine._process.pid for engine in engines]

    async def scenario() -> list[Completion]:
        call = asyncio.create_task(pool.generate(_requests(bundle, 8)))
        await _until(lambda: all(engine._running for engine in engines))
        os.kill(before[0] or 0, signal.SIGSTOP)
        completions = await asyncio.wait_for(call, PATIENCE_SECONDS)
        await _until(lambda: engines[0].is_responsive and engines[0]._process.pid != before[0])
        return completions

    try:
        completions = asyncio.run(scenario())
    finally:
        pool.close()
    assert len(completions) == 8
    assert all(done.hypotheses for done in completions)
    assert "worker process killed" in caplog.messages
    assert engines[1]._process.pid == before[1]


def test_a_silent_engine_takes_no_more_requests(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.workers.process_worker.SILENCE_SECONDS", 0.5)
    pool, engines = _pool(bundle, 2)
    stopped = engines[0]

    async def scenario() -> None:
        call = asyncio.create_task(pool.generate(_requests(bundle, 8)))
        await _until(lambda: stopped._running)
        os.kill(stopped._process.pid or 0, signal.SIGSTOP)
        await _until(lambda: not stopped.is_responsive)
        held = len(stopped._running)
        more = asyncio.create_task(pool.generate(_requests(bundle, 4)))
        await asyncio.sleep(0.3)
        assert len(stopped._running) == held
        os.kill(stopped._process.pid or 0, signal.SIGCONT)
        await asyncio.wait_for(asyncio.gather(call, more), PATIENCE_SECONDS)
        assert stopped.is_responsive

    try:
        asyncio.run(scenario())
    finally:
        pool.close()


def test_an_engine_that_starts_again_loads_only_the_files_of_the_start(bundle: Bundle) -> None:
    pool, [engine] = _pool(bundle, 1)
    file = bundle.file(SOURCE_SENTENCEPIECE_FILE)
    content, requests = file.read_bytes(), _requests(bundle, 1)

    async def scenario() -> None:
        file.write_bytes(bytes(len(content)))
        os.kill(engine._process.pid or 0, signal.SIGKILL)
        await _until(lambda: not pool.status().has_engine)
        with pytest.raises(NoEngine):
            await asyncio.wait_for(pool.generate(requests), PATIENCE_SECONDS)
        assert not pool.status().has_engine
        file.write_bytes(content)
        await _until(lambda: pool.status().has_engine)
        [done] = await asyncio.wait_for(pool.generate(_requests(bundle, 1)), PATIENCE_SECONDS)
        assert done.hypotheses

    try:
        asyncio.run(scenario())
    finally:
        pool.close()


def test_a_server_without_an_engine_is_not_ready_and_alive(echo: EchoGenerator) -> None:
    with TestClient(create_app(Settings(), [echo])) as client:
        assert client.get("/health/ready").status_code == 200
        echo.shown_status = EchoStatus(has_engine=False)
        answer = client.get("/health/ready")
        assert (answer.status_code, answer.json()) == (503, {"status": "no_engine"})
        assert client.get("/health/live").status_code == 200


def test_requests_are_answered_at_once_while_no_engine_can_be_started(bundle: Bundle, tmp_path: Path) -> None:
    settings = Settings(model=[bundle.path], threads=1, cache_sentences=0)
    pool, [engine] = _pool(bundle, 1)
    body = {"text": "The old man sat at the window and looked at the rain."}
    with TestClient(create_app(settings, [pool])) as client:
        moved = next(path for path in sorted(bundle.path.iterdir()) if path.suffix == ".onnx")
        weights = tmp_path / "moved"
        moved.rename(weights)
        os.kill(engine._process.pid or 0, signal.SIGKILL)
        answers = [client.post("/v1/translate", json=body) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [503] * 3
        assert {answer.json()["error"]["code"] for answer in answers} == {"no_engine"}
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
        assert client.get("/health/ready").json() == {"status": "no_engine"}
        weights.rename(moved)
        give_up = time.monotonic() + PATIENCE_SECONDS
        while client.post("/v1/translate", json=body).status_code != 200:
            assert time.monotonic() < give_up
            time.sleep(0.1)
