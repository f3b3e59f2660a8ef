import io
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from starlette.testclient import TestClient

from server.cli.top import Screen, screens
from server.cli.top_samples import AdminConnection, KeyLoad, ModelLoad, Sample, quantile, read_sample
from server.http.admin.app import create_admin_app
from server.http.app import create_app
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator, EchoStatus

_SAMPLE = Sample(
    seconds=10.0,
    uptime_seconds=3725.0,
    requests_in_flight=3,
    draining=False,
    models=(ModelLoad("en-de", True, 24, 32, 20, 7, 126_000_000, 100, 1000, 2000), ModelLoad("en-fr", False)),
    keys=(KeyLoad("1f3a", "shop", 50, 2, 4000, 1000),),
    outcomes={"ok": 90.0, "rejected": 5.0},
    latencies={0.05: 40.0, 0.1: 90.0, float("inf"): 95.0},
    cached_share=0.25,
)


def _text(before: Sample, after: Sample, width: int = 140) -> str:
    return _printed(Screen(before, after), width)


def _printed(shown: RenderableType, width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    path: Path = tmp_path_factory.mktemp("keys") / "keys.sqlite"
    file = KeyFile(path)
    _, text = file.add("shop [bold]", KeyLimits())
    file.close()
    return path, text


@pytest.fixture
def server(echo: EchoGenerator, keys: tuple[Path, str]) -> Iterator[tuple[TestClient, TestClient]]:
    echo.shown_status = EchoStatus(waiting=5, running=3, rows_in_use=48, rows=64)
    app = create_app(Settings(api_keys=keys[0]), [echo])
    with (
        TestClient(app) as client,
        TestClient(create_admin_app(app.state.server, None), base_url="http://127.0.0.1") as admin,
    ):
        yield client, admin


def test_a_screen_has_rows_queue_and_rates_by_model_and_key() -> None:
    later = replace(
        _SAMPLE,
        seconds=12.0,
        models=(replace(_SAMPLE.models[0], requests=120, source_tokens=1300, target_tokens=2500), _SAMPLE.models[1]),
        keys=(replace(_SAMPLE.keys[0], requests=60, rejected=4, target_tokens=1250),),
        outcomes={"ok": 110.0, "rejected": 9.0},
        latencies={0.05: 40.0, 0.1: 108.0, float("inf"): 119.0},
    )
    heading, *lines = _text(_SAMPLE, later).splitlines()
    assert heading.split("  ") == [
        "up 1:02:05",
        "3 in flight",
        "10.0 ok/s",
        "2.0 rejected/s",
        "p50 ≤ 100 ms",
        "p99 > 0.1 s",
        "cache 25%",
    ]
    [row] = [line for line in lines if "en-de" in line]
    assert row.split() == ["en-de", "█████████···", "24/32", "20", "7", "10.0", "150", "250", "126", "MB"]
    assert any("en-fr" in line and "unloaded" in line for line in lines)
    [row] = [line for line in lines if "1f3a" in line]
    assert row.split() == ["shop", "1f3a", "5.0", "1.0", "125", "60", "4000"]


@pytest.mark.parametrize("width", [50, 64, 80, 140])
def test_nothing_is_cut_in_a_narrow_terminal(width: int) -> None:
    model = ModelLoad("many-languages-of-a-university", True, 1024, 1024, 1000, 2048, 126_000_000, 100, 1000, 2000)
    later = replace(model, requests=100_099, source_tokens=21_000, target_tokens=23_000)
    text = _text(replace(_SAMPLE, models=(model,)), replace(_SAMPLE, seconds=11.0, models=(later,)), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for each in ("requests/s", "99999.0", "1024/1024", "2048", "20000", "21000"):
        assert each in text
    assert ("█" * 12 in text) == (width >= 100)


def test_a_server_that_is_restarted_is_shown_again_and_counted_from_its_start() -> None:
    restarted = replace(_SAMPLE, seconds=14.0, uptime_seconds=2.0, outcomes={"ok": 8.0})
    later = replace(restarted, seconds=16.0, uptime_seconds=4.0, outcomes={"ok": 18.0})
    answers: list[Sample | OSError] = [OSError("no answer"), restarted, later]

    def read() -> Sample:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    first, gone, again, last = map(_printed, itertools.islice(screens(_SAMPLE, read, lambda: None), 4))
    assert "up 1:02:05" in first
    assert gone == "no answer; trying again\n"
    assert "up 0:00:02" in again
    assert "ok/s" not in again
    assert "5.0 ok/s" in last


def test_a_server_is_read_by_its_port_for_administration(
    server: tuple[TestClient, TestClient], keys: tuple[Path, str]
) -> None:
    client, admin = server

    def get(path: str) -> str:
        return admin.get(path).raise_for_status().text

    before = read_sample(get, lambda: 1.0)
    headers = {"Authorization": f"Bearer {keys[1]}"}
    for _ in range(4):
        assert client.post("/v1/translate", json={"text": "Good morning. Tea."}, headers=headers).status_code == 200
        assert client.get("/health/ready").status_code == 200
    after = read_sample(get, lambda: 3.0)
    [model] = after.models
    assert (model.name, model.rows_in_use, model.rows, model.running, model.waiting) == ("echo-en-de", 48, 64, 3, 5)
    assert (model.requests, model.source_tokens == model.target_tokens > 8) == (4, True)
    [key] = after.keys
    assert (key.name, key.requests, key.rejected) == ("shop [bold]", 4, 0)
    assert key.characters == 4 * len("Good morning. Tea.")
    assert after.outcomes["ok"] - before.outcomes.get("ok", 0) == 4
    text = _text(before, after)
    assert "2.0" in text
    assert "shop [bold]" in text, "names are shown as they are, not as markup"


def test_a_quantile_is_the_bucket_of_the_requests_in_between() -> None:
    before, after = {0.1: 5.0, 1.0: 10.0}, {0.1: 5.0, 1.0: 20.0}
    assert quantile(0.5, before, after) == 1.0
    assert quantile(0.5, before, before) is None


def test_a_server_that_does_not_answer_is_named_with_what_to_do(tmp_path: Path) -> None:
    for address in ("http://127.0.0.1:9", f"unix:{tmp_path / 'none.sock'}"):
        with pytest.raises(OSError, match=r"no answer from .*; start the server with --admin-port"):
            AdminConnection(address, None).get("/admin/models")
    with pytest.raises(ValueError, match="the address must be http://HOST:PORT or unix:PATH"):
        AdminConnection("localhost:9000", None)
