"""Engines in processes, over the default model."""

import asyncio
import dataclasses
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import psutil
import pytest

from bundle.loading import Bundle, load_bundle
from bundle.manifest import MANIFEST_FILE, BundleError
from bundle.tensors import DECODER_FILE
from server.interface.errors import Draining, EngineFailed
from server.interface.request import Completion, FinishReason, Request, Sampling, SentenceParams, Timings
from server.operations.defaults import DEFAULT_MODEL
from server.text.tokenizers.registry import open_tokenizer
from server.workers.pool import EnginePool, PoolOptions
from server.workers.process_worker import ProcessWorker
from tests.fakes.event_loop import until
from tests.fakes.held_worker import PATIENCE_SECONDS, begin
from tests.fakes.sentence_params import sentence_params

TEXTS = (
    "Good morning.",
    "The old man sat at the window and looked at the rain.",
    "Where is the station?",
    "She had never seen so many people in the small church before.",
)
# Each asks for something else that has to come through the pipe whole.
KINDS = (
    sentence_params(),
    sentence_params(beam_size=4, num_hypotheses=3, return_scores=True),
    sentence_params(sampling=Sampling(temperature=1.3, seed=5), num_hypotheses=2),
    sentence_params(return_token_scores=True, num_token_alternatives=2, return_attention=True),
    sentence_params(target_prefix=(17, 4), no_repeat_ngram_size=3),
    sentence_params(forced_target=(17, 4, 0), return_token_scores=True),
)
LONG = sentence_params(beam_size=4, max_new_tokens=250, min_new_tokens=249, max_repetitions=1000)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load_bundle(DEFAULT_MODEL)


@pytest.fixture(scope="module")
def processes(bundle: Bundle) -> Iterator[EnginePool]:
    """Two engines in processes, for tests that leave them unchanged."""
    steps = _Steps()
    replicas = EnginePool.open(bundle, PoolOptions(replicas=2, max_rows=16, processes=True, observe=steps))
    yield replicas
    replicas.close()
    assert steps.num_steps
    assert steps.num_rows >= steps.num_steps


@dataclasses.dataclass
class _Steps:
    num_steps: int = 0
    num_rows: int = 0

    def step(self, rows: int, seconds: float) -> None:
        assert seconds > 0
        self.num_steps += 1
        self.num_rows += rows


def _requests(bundle: Bundle, *kinds: SentenceParams, deadline: float | None = None) -> list[Request]:
    tokenizer, now = open_tokenizer(bundle), time.monotonic()
    return [Request(tokenizer.encode(text), kind, Timings(now), deadline) for kind in kinds for text in TEXTS]


def _run(awaitable: "asyncio.Future[list[Completion]] | object") -> list[Completion]:
    return asyncio.run(asyncio.wait_for(awaitable, 3 * PATIENCE_SECONDS))  # type: ignore[arg-type]


def _engines(replicas: EnginePool) -> list[ProcessWorker]:
    return [engine for engine in replicas._engines if isinstance(engine, ProcessWorker)]


def test_processes_return_the_answers_of_threads_for_all_options(bundle: Bundle, processes: EnginePool) -> None:
    threads = EnginePool.open(bundle, PoolOptions(replicas=2, max_rows=16))
    try:
        expected = _run(threads.generate(_requests(bundle, *KINDS)))
    finally:
        threads.close()
    asked = _requests(bundle, *KINDS)
    completions = _run(processes.generate(asked))
    assert [completion.request for completion in completions] == asked
    for ours, theirs in zip(completions, expected, strict=True):
        assert ours.finish_reason == theirs.finish_reason
        for one, other in zip(ours.hypotheses, theirs.hypotheses, strict=True):
            np.testing.assert_equal(dataclasses.asdict(one), dataclasses.asdict(other))
    for completion in completions:
        timings = completion.request.timings
        stations = [getattr(timings, field.name) for field in dataclasses.fields(timings)]
        assert stations == sorted(stations)
        assert stations[0] > 0


def test_a_streaming_request_receives_parts_and_then_the_whole_answer(bundle: Bundle, processes: EnginePool) -> None:
    [request] = _requests(bundle, sentence_params())[1:2]
    received: list[tuple[list[int], bool]] = []
    request.on_progress = lambda tokens, is_complete: received.append((tokens, is_complete))
    [completion] = _run(processes.generate([request]))
    *parts, (whole, is_complete) = received
    assert is_complete
    assert whole == completion.hypotheses[0].token_ids
    assert len(parts) > 3
    for tokens, is_all in parts:
        assert not is_all
        assert tokens == whole[: len(tokens)]


def test_cancelled_and_expired_requests_leave_and_the_others_stay(bundle: Bundle, processes: EnginePool) -> None:
    async def scenario() -> list[Completion]:
        goes = begin(processes, *_requests(bundle, LONG))
        expires = begin(processes, *_requests(bundle, LONG, deadline=time.monotonic() + 0.05))
        stays = begin(processes, *_requests(bundle, sentence_params()))
        await until(lambda: processes.status().rows_in_use > 0)
        goes.cancel()
        with pytest.raises(asyncio.CancelledError):
            await goes
        assert {done.finish_reason for done in await expires} == {FinishReason.DEADLINE}
        completions = await stays
        await until(lambda: processes.status().rows_in_use == 0)
        status = processes.status()
        assert (status.waiting, status.running) == (0, 0)
        return completions

    assert all(completion.hypotheses for completion in _run(scenario()))


def test_requests_of_a_killed_process_are_decoded_again_but_not_a_third_time(
    bundle: Bundle, caplog: pytest.LogCaptureFixture
) -> None:
    replicas = EnginePool.open(bundle, PoolOptions(replicas=1, max_rows=16, processes=True))
    [engine] = _engines(replicas)
    killed: list[int | None] = []

    async def killed_while_it_works() -> None:
        await until(lambda: replicas.status().rows_in_use > 0 and engine._process.pid not in killed)
        killed.append(engine._process.pid)
        os.kill(engine._process.pid or 0, signal.SIGKILL)

    async def scenario() -> list[Completion]:
        stubborn = begin(replicas, *_requests(bundle, LONG))
        await killed_while_it_works()
        await killed_while_it_works()
        with pytest.raises(EngineFailed, match="exited by signal 9, for the second time"):
            await stubborn
        ordinary = begin(replicas, *_requests(bundle, sentence_params(min_new_tokens=60)))
        await killed_while_it_works()
        return await ordinary

    try:
        assert all(completion.hypotheses for completion in _run(scenario()))
        exits = [vars(record) for record in caplog.records if record.message == "worker process exited"]
        assert ("engine-0", "by signal 9", 4) in [(each["worker"], each["exit"], each["requests"]) for each in exits]
    finally:
        replicas.close()


def test_a_stream_continues_at_its_position_when_its_process_is_killed(bundle: Bundle) -> None:
    replicas = EnginePool.open(bundle, PoolOptions(replicas=1, max_rows=16, processes=True))
    [engine] = _engines(replicas)
    [request] = _requests(bundle, sentence_params(max_new_tokens=250, min_new_tokens=249, max_repetitions=1000))[:1]
    received: list[list[int]] = []
    request.on_progress = lambda tokens, is_complete: received.append(tokens)

    async def scenario() -> list[Completion]:
        running = begin(replicas, request)
        await until(lambda: len(received) > 5)
        os.kill(engine._process.pid or 0, signal.SIGKILL)
        return await running

    try:
        [completion] = _run(scenario())
    finally:
        replicas.close()
    whole = completion.hypotheses[0].token_ids
    assert received[-1] == whole
    assert [len(tokens) for tokens in received[:-1]] == sorted({len(tokens) for tokens in received[:-1]})
    assert all(tokens == whole[: len(tokens)] for tokens in received)


def test_an_engine_that_hangs_delays_no_other_request(bundle: Bundle) -> None:
    replicas = EnginePool.open(bundle, PoolOptions(replicas=1, max_rows=16, processes=True))
    [engine] = _engines(replicas)
    pid = engine._process.pid or 0
    # More than a pipe holds, several times.
    phrases = tuple(tuple(range(start, start + 200)) for start in range(50, 7000, 50))
    longest_pause = 0.0

    async def watch() -> None:
        nonlocal longest_pause
        while True:
            begun = time.monotonic()
            await asyncio.sleep(0.01)
            longest_pause = max(longest_pause, time.monotonic() - begun)

    async def scenario() -> list[Completion]:
        os.kill(pid, signal.SIGSTOP)
        watcher = asyncio.create_task(watch())
        for _ in range(3):
            soon = time.monotonic() + 0.05
            expired = replicas.generate(_requests(bundle, sentence_params(suppress_phrases=phrases), deadline=soon))
            assert {done.finish_reason for done in await expired} == {FinishReason.DEADLINE}
        watcher.cancel()
        os.kill(pid, signal.SIGCONT)
        return await replicas.generate(_requests(bundle, sentence_params()))

    try:
        assert all(completion.hypotheses for completion in _run(scenario()))
        assert longest_pause < PATIENCE_SECONDS / 4
    finally:
        os.kill(pid, signal.SIGCONT)
        replicas.close()


def test_an_error_in_the_process_reaches_caller_and_log_and_the_engine_continues(
    bundle: Bundle, processes: EnginePool, caplog: pytest.LogCaptureFixture
) -> None:
    no_such_layer = sentence_params(return_attention=True, alignment_layer=99)
    [impossible] = _requests(bundle, no_such_layer)[:1]
    with pytest.raises(EngineFailed, match="the model failed on this request"):
        _run(processes.generate([impossible]))
    records = [record for record in caplog.records if record.name == "kvasir.engine"]
    assert records
    assert records[0].levelno == logging.ERROR
    assert "Traceback" in records[0].getMessage()
    assert _run(processes.generate(_requests(bundle, sentence_params())))


def test_a_bundle_that_cannot_be_loaded_is_rejected_and_no_process_remains(bundle: Bundle, tmp_path: Path) -> None:
    for path in bundle.path.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / DECODER_FILE).unlink()
    (tmp_path / DECODER_FILE).write_bytes(b"no graph")
    assert (tmp_path / MANIFEST_FILE).exists()
    before = set(active_children())
    with pytest.raises(BundleError, match=DECODER_FILE):
        EnginePool.open(Bundle(tmp_path, bundle.config), PoolOptions(replicas=2, processes=True))
    assert set(active_children()) <= before


def test_closing_ends_the_processes_and_their_requests(bundle: Bundle) -> None:
    before = set(active_children())
    replicas = EnginePool.open(bundle, PoolOptions(replicas=1, max_rows=16, processes=True))

    async def scenario() -> list[Completion]:
        running = begin(replicas, *_requests(bundle, LONG))
        await until(lambda: replicas.status().rows_in_use > 0)
        await asyncio.to_thread(replicas.close)
        return await running

    with pytest.raises(Draining):
        _run(scenario())
    assert set(active_children()) <= before


def test_processes_end_when_the_one_that_started_them_is_killed() -> None:
    program = """
import time
from bundle.loading import load_bundle
from server.workers.pool import EnginePool
from server.workers.pool import PoolOptions
from server.operations.defaults import DEFAULT_MODEL

if __name__ == "__main__":
    replicas = EnginePool.open(load_bundle(DEFAULT_MODEL), PoolOptions(processes=True))
    print(*(engine._process.pid for engine in replicas._engines), flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        engine = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        engine.wait(PATIENCE_SECONDS)
    assert not engine.is_running()
