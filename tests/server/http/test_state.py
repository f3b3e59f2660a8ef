from pathlib import Path

import pytest

from server.http.state import RequestRecord, ServerState
from server.interface.errors import Draining, QueueFull
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.translation.types import Phases, TokenCounts, TranslationResult
from tests.fakes.echo import EchoFor, EchoGenerator
from tests.fakes.event_loop import in_event_loop


@pytest.fixture
def engines(echo_for: EchoFor) -> list[EchoGenerator]:
    return [echo_for("en", "de"), echo_for("de", "en")]


@pytest.fixture
def server(engines: list[EchoGenerator]) -> ServerState:
    server = ServerState(Settings(max_unread_megabytes=100), Metrics())
    server.open(engines)
    return server


def test_a_request_is_admitted_while_one_model_has_room(server: ServerState, engines: list[EchoGenerator]) -> None:
    server.check_admission()
    for engine in engines:
        server.check_admission()
        engine.error = QueueFull("full", 1.0)
    with pytest.raises(QueueFull):
        server.check_admission()
    engines[0].error = None
    server.check_admission()
    engines[0].error = QueueFull("full", 1.0)
    server.draining = True
    with pytest.raises(Draining):
        server.check_admission()


def test_before_the_models_are_loaded_nothing_is_accepted() -> None:
    server = ServerState(Settings(), Metrics())
    for accept in (server.accept, server.check_admission, server.stored_glossaries):
        with pytest.raises(Draining):
            accept()
    with pytest.raises(Draining):
        server.begin_upload("a", 1)


def test_a_server_is_idle_when_its_last_request_ended(server: ServerState) -> None:
    assert server.is_idle
    for _ in range(2):
        server.begin_request()
    server.end_request()
    assert (server.is_idle, server.idle.is_set()) == (False, False)
    server.end_request()
    assert (server.is_idle, server.idle.is_set()) == (True, True)
    server.begin_request()
    assert not server.idle.is_set()


@pytest.mark.parametrize(
    ("body_bytes", "expected_bytes", "is_light"),
    [(50_000, 1_000_000, True), (50_001, 0, False), (0, 1_000_001, False), (0, 0, True)],
)
def test_small_requests_are_light(server: ServerState, body_bytes: int, expected_bytes: int, is_light: bool) -> None:
    server.body_memory.add("a", body_bytes)
    server.expected.add("b", expected_bytes)
    assert server.is_light == is_light


def test_an_api_key_file_opens_the_gate(tmp_path: Path) -> None:
    assert ServerState(Settings(), Metrics()).key_gate is None
    gate = ServerState(Settings(api_keys=tmp_path / "keys.sqlite"), Metrics()).key_gate
    assert gate is not None
    gate.close()


def test_durations_of_a_request_are_in_milliseconds() -> None:
    record = RequestRecord("id", elapsed_seconds=lambda: 0.0123456)
    assert record.timings() == {"tokenize": 0, "queue": 0, "encode": 0, "decode": 0, "total": 12.346}
    phases = Phases(0.001, 0.002, 0.003, 0.004)
    record.result = TranslationResult([], phases, TokenCounts({}, {}), num_splits=0)
    assert record.timings() == {"tokenize": 1, "queue": 2, "encode": 3, "decode": 4, "total": 12.346}


@in_event_loop
async def test_the_end_writes_the_usage_of_keys_and_ends_changes_of_models(tmp_path: Path, echo: EchoGenerator) -> None:
    path = tmp_path / "keys.sqlite"
    file = KeyFile(path)
    _, text = file.add("team", KeyLimits())
    server = ServerState(Settings(api_keys=path), Metrics())
    server.open([echo])
    gate = server.key_gate
    assert gate is not None
    charge = gate.charge(gate.authenticate(text), 12)
    await server.close()
    assert [usage.characters for usage in file.usage(charge.day).values()] == [12]
    with pytest.raises(Draining):
        await server.models.put(tmp_path)
