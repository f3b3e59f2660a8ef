"""Kvasir behind a local Ray of two replicas: `pytest -s -W default -p no:xdist tests/deploy/ray_cluster.py`.

Install `ray[serve]==2.60.0` with `-c constraints.txt` before, in an environment of its own."""

import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

os.environ |= {"RAY_raylet_start_wait_time_s": "180", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
os.environ["KVASIR_MODEL"] = "models"  # both of them
import ray
from ray import serve

PORT = 18437
URL = f"http://127.0.0.1:{PORT}"
_SENTENCE = "We met at noon near the old bridge, and it was raining"


def _deploy(num_replicas: int, version: str, max_replicas: int = 0) -> None:
    os.environ |= {
        "KVASIR_RAY_MIN_REPLICAS": str(num_replicas),
        "KVASIR_RAY_MAX_REPLICAS": str(max(num_replicas, max_replicas)),
        "KVASIR_RAY_TARGET_ONGOING": "2",
        "KVASIR_RAY_CPUS": "0.1",
    }
    from deploy.ray_serve import deployed

    # A change of the environment is a new version of the replicas: Ray Serve replaces one after the other.
    variables = {"KVASIR_CACHE_SENTENCES": "0", "KVASIR_RAY_VERSION": version, "PYTHONPATH": str(Path.cwd())}
    serve.run(deployed({"env_vars": variables}), name="kvasir", route_prefix="/")


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(
        num_cpus=4,
        include_dashboard=False,
        object_store_memory=100_000_000,
        _node_ip_address="127.0.0.1",
        log_to_driver=False,
    )
    serve.start(http_options={"host": "127.0.0.1", "port": PORT, "request_timeout_s": 120})
    _deploy(1, "1")
    yield
    serve.shutdown()
    ray.shutdown()


def _translate(text: str, source: str = "en", target: str = "de") -> tuple[int, dict[str, Any]]:
    body = json.dumps({"text": text, "source": source, "target": target}).encode()
    request = urllib.request.Request(f"{URL}/v1/translate", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@contextmanager
def _load(num_clients: int = 6) -> Iterator[list[int]]:
    """Translate without a pause; the list receives the status of each answer."""
    statuses: list[int] = []
    has_ended = threading.Event()

    def ask(number: int) -> None:
        while not has_ended.is_set():
            try:
                statuses.append(_translate(f"{_SENTENCE} {number}, {len(statuses)}.")[0])
            except OSError:
                statuses.append(0)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(num_clients)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        has_ended.set()
        for thread in threads:
            thread.join()


def _until(condition: Any, seconds: float = 180) -> None:  # noqa: ANN401 - a callable
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "too slow"
        time.sleep(0.2)


def _replicas() -> set[int]:
    """Return the processes of the replicas, not those of the gateway and of what stores."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            title = path.read_bytes()
        except OSError:
            continue
        if b"ServeReplica:kvasir:replica" in title:
            found.add(int(path.parent.name))
    return found


def _show(text: str) -> None:
    sys.stderr.write(text + "\n")


def _rate(seconds: float) -> float:
    with _load() as statuses:
        _until(lambda: len(statuses) > 6)
        begun, num_before = time.monotonic(), len(statuses)
        time.sleep(seconds)
        rate = (len(statuses) - num_before) / (time.monotonic() - begun)
    assert set(statuses) == {200}
    return rate


def test_a_text_is_translated_and_errors_keep_their_form() -> None:
    status, answer = _translate("Good morning.")
    assert status == 200
    assert answer["translations"][0]["text"].startswith("Guten Morgen")
    status, answer = _translate("x" * 200_000)
    assert status == 422
    assert "error" in answer
    with urllib.request.urlopen(f"{URL}/health/ready") as ready:
        assert json.load(ready) == {"status": "ok"}


def test_a_stream_arrives_in_events() -> None:
    body = json.dumps({"text": _SENTENCE, "source": "en", "target": "de", "stream": True}).encode()
    request = urllib.request.Request(f"{URL}/v1/translate", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        text = answer.read().decode()
    assert text.count("data:") > 1


def test_the_languages_of_a_request_choose_its_model() -> None:
    for number in range(4):  # the replica has both models, and each request gets its own
        status, answer = _translate(f"Good morning, {number} times.")
        assert (status, answer["model"]) == (200, "en-de")
        status, answer = _translate(f"Guten Morgen, {number} mal.", "de", "en")
        assert (status, answer["model"]) == (200, "de-en")
    with urllib.request.urlopen(f"{URL}/v1/models") as models:
        assert {model["name"] for model in json.load(models)["models"]} == {"de-en", "en-de"}


def test_replicas_are_added_and_removed_under_load_without_a_lost_request() -> None:
    _deploy(1, "1", max_replicas=2)
    with _load() as statuses:
        _until(lambda: len(_replicas()) == 2)
        num_before = len(statuses)
        _until(lambda: len(statuses) > num_before + 20)
        _deploy(1, "1")
        _until(lambda: len(_replicas()) == 1)
    _show(f"a replica added and removed: {len(statuses)} requests, {sum(status != 200 for status in statuses)} lost")
    assert set(statuses) == {200}


def test_two_replicas_answer_more_than_one_and_a_rolling_update_loses_nothing() -> None:
    one = _rate(8)
    with _load() as statuses:
        _deploy(2, "2")  # replaces the replica of version 1 under load
        _until(lambda: len(_replicas()) >= 2)
    assert statuses
    assert set(statuses) == {200}
    two = _rate(8)
    _show(f"requests/s with one replica {one:.1f}, with two {two:.1f}, ratio {two / one:.2f}")
    old = _replicas()
    with _load() as statuses:
        _deploy(2, "3")
        _until(lambda: _replicas().isdisjoint(old))
        num_before = len(statuses)
        _until(lambda: len(statuses) > num_before + 10)
    _show(f"rolling update: {len(statuses)} requests, {sum(status != 200 for status in statuses)} lost")
    assert set(statuses) == {200}


def test_a_killed_replica_loses_no_request() -> None:
    with _load() as statuses:
        _until(lambda: len(statuses) > 6)
        victim = min(_replicas())
        os.kill(victim, signal.SIGKILL)
        num_before = len(statuses)
        _until(lambda: len(statuses) > num_before + 40)
    _show(f"kill -9 of a replica: {len(statuses)} requests, {sum(status != 200 for status in statuses)} lost")
    assert set(statuses) == {200}
