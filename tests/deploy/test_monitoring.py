"""Alert rules and dashboard: every metric exists, and Prometheus accepts and evaluates every expression."""

import json
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
import yaml
from prometheus_client.parser import text_string_to_metric_families

from server.http.app import create_app
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from tests.architecture.project_files import ROOT, text_of
from tests.fakes.echo import EchoGenerator, make_bundle

FOLDER = ROOT / "deploy" / "prometheus"
PATIENCE_SECONDS = 60
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")


@pytest.fixture
def echo(tmp_path: Path) -> EchoGenerator:
    return EchoGenerator(make_bundle(tmp_path))


def _dashboard() -> dict[str, Any]:
    dashboard: dict[str, Any] = json.loads(text_of("deploy/grafana/dashboard.json"))
    return dashboard


def _expressions() -> list[str]:
    rules = yaml.safe_load(text_of("deploy/prometheus/alerts.yml"))
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    panels = [target["expr"] for panel in _dashboard()["panels"] for target in panel["targets"]]
    table = re.findall(r"\| `([^`]+\(.+\))` \|$", text_of("docs/metrics.md"), re.MULTILINE)
    assert min(len(alerts), len(panels), len(table)) > 4
    scaling = re.findall(r"query: (.+)$", text_of("deploy/helm/kvasir/templates/autoscaling.yaml"), re.MULTILINE)
    return [*alerts, *panels, *table, *(re.sub(r"\{ \{\{.*?\}\} \}", "", query) for query in scaling)]


def _drawn() -> list[str]:
    """Return the expressions that have a value as soon as texts and documents are translated."""
    alerts = ("KvasirDown", "KvasirSlow", "KvasirEventLoopBlocked", "KvasirDocumentsFull", "KvasirCertificateExpires")
    rules = yaml.safe_load(text_of("deploy/prometheus/alerts.yml"))["groups"][0]["rules"]
    limits = {rule["alert"]: re.split(r"(?:>=|==|[<>]) [0-9.]+$", rule["expr"].strip()) for rule in rules}
    panels = [target["expr"] for panel in _dashboard()["panels"] for target in panel["targets"]]
    return [*panels, *(limits[alert][0] for alert in alerts)]


def _in_general(expression: str) -> str:
    return expression.replace("$__rate_interval", "1m").replace("$instance", ".*")


@contextmanager
def _served(echo: EchoGenerator) -> Iterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        observer = Metrics()
        observer.watch_certificate(lambda: time.time() + 1e7)
        server = uvicorn.Server(uvicorn.Config(create_app(Settings(), [echo], observer), log_config=None))
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        _until(lambda: server.started)
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join()


def _until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < end, "it never becomes true"
        time.sleep(0.05)


def test_every_metric_and_label_exists(echo: EchoGenerator) -> None:
    with _served(echo) as address:
        body = {"text": "Good morning.", "source": "en", "target": "de"}
        httpx.post(f"http://{address}/v1/translate", json=body).raise_for_status()
        families = list(text_string_to_metric_families(httpx.get(f"http://{address}/metrics").text))
    labels = {sample.name: set(sample.labels) for family in families for sample in family.samples}
    declared = {f"{family.name}{'_total' if family.type == 'counter' else ''}" for family in families}
    for expression in _expressions():
        for name, selector in re.findall(r"(kvasir_[a-z_]+)(?:\{([^}]*)\})?", expression):
            assert name in labels or name in declared, f"{name} of {expression}"
            used = set(re.findall(r"(\w+)\s*=", selector)) - {"instance", "job"}
            assert used <= labels.get(name, used), f"{name}{{{selector}}}"


@pytest.mark.parametrize("file", ["compose.monitoring.yaml", "compose.proxy.yaml"])
def test_a_compose_file_mounts_files_that_exist(file: str) -> None:
    services = yaml.safe_load(text_of(f"deploy/{file}"))["services"]
    mounted = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())]
    assert all((ROOT / "deploy" / path).exists() for path in mounted if path.startswith("."))
    ports = {port for service in services.values() for port in service.get("ports", ())}
    # Strangers reach nothing but Caddy.
    assert all(port.startswith("127.0.0.1:") for port in ports - {"80:80", "443:443"})


@needs_promtool
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("check", "config", "prometheus.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
)
def test_promtool_accepts_the_rules(arguments: tuple[str, ...]) -> None:
    checked = subprocess.run(["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@needs_prometheus
def test_prometheus_evaluates_every_expression(echo: EchoGenerator, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with _served(echo) as address:
        config = text_of("deploy/prometheus/prometheus.yml").replace("kvasir:8000", address).replace("15s", "1s")
        (tmp_path / "prometheus.yml").write_text(config, encoding="utf-8")
        shutil.copy(FOLDER / "alerts.yml", tmp_path)
        body = {"text": "Good morning.", "source": "en", "target": "de"}
        command = ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1") as prometheus:

                def value(expression: str) -> float | None:
                    try:
                        answer = prometheus.get("/query", params={"query": expression})
                    except httpx.TransportError:
                        return None  # not listening yet
                    if answer.status_code == 503:
                        return None
                    assert answer.status_code == 200, f"{expression}: {answer.text}"
                    result = answer.json()["data"]["result"]
                    return float(result[0]["value"][1]) if result else None

                def is_drawn() -> bool:
                    httpx.post(f"http://{address}/v1/translate", json=body).raise_for_status()
                    fields, files = {"source": "en", "target": "de"}, {"file": ("a.txt", b"Tea.")}
                    httpx.post(f"http://{address}/v1/documents", data=fields, files=files).raise_for_status()
                    return all(value(_in_general(expression)) is not None for expression in _drawn())

                _until(is_drawn)
                for expression in _expressions():
                    value(_in_general(expression))
                assert value("kvasir_model_info") == 1
                rules = prometheus.get("/rules").json()["data"]["groups"][0]["rules"]
                assert [rule["name"] for rule in rules if rule["health"] == "err"] == []
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
