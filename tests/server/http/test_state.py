import pytest

from server.http.state import ServerState
from server.interface.errors import Draining
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator


@pytest.fixture
def engines(echo_for: EchoFor) -> list[EchoGenerator]:
    return [echo_for("en", "de"), echo_for("de", "en")]


@pytest.fixture
def server(engines: list[EchoGenerator]) -> ServerState:
    server = ServerState(Settings(max_unread_megabytes=100), Metrics())
    server.open(engines)
    return server


def test_before_the_models_are_loaded_nothing_is_accepted() -> None:
    server = ServerState(Settings(), Metrics())
    for accept in (server.accept, server.check_admission, server.stored_glossaries):
        with pytest.raises(Draining):
            accept()


@pytest.mark.parametrize(
    ("body_bytes", "expected_bytes", "is_light"),
    [(50_000, 1_000_000, True), (50_001, 0, False), (0, 1_000_001, False), (0, 0, True)],
)
def test_small_requests_are_light(server: ServerState, body_bytes: int, expected_bytes: int, is_light: bool) -> None:
    server.body_memory.add("a", body_bytes)
    server.expected.add("b", expected_bytes)
    assert server.is_light == is_light
