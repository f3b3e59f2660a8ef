"""Traces of requests, received by a collector; exemplars; `traceparent` in and out."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client.openmetrics import parser
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

pytest.importorskip("opentelemetry.sdk")
import itertools

from tests.fakes.collector import Collector, collecting  # needs the extra

_TRACE, _PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
_HEADERS = {"traceparent": f"00-{_TRACE}-{_PARENT}-01", "X-Request-ID": "mine"}
_BODY = {"text": "Good morning.", "source": "en", "target": "de"}


def _traced(echo: EchoGenerator, ratio: float, *requests: dict[str, str]) -> tuple[Collector, list[dict[str, str]]]:
    """Translate once for each dictionary of headers; return the collector and the headers of the responses."""
    with collecting() as collector:
        settings = Settings(trace_endpoint=collector.url, trace_percent=100 * ratio)
        with TestClient(create_app(settings, [echo])) as client:
            answers = [client.post("/v1/translate", json=_BODY, headers=headers) for headers in requests]
        return collector, [dict(answer.headers) for answer in answers]


@contextmanager
def _traced_client(echo: EchoGenerator) -> Iterator[tuple[Collector, TestClient]]:
    """Run a server; its collector has all spans after the block."""
    with collecting() as collector, TestClient(create_app(Settings(trace_endpoint=collector.url), [echo])) as client:
        yield collector, client


def test_a_request_is_a_span_in_the_trace_of_its_client_with_its_phases_below(echo: EchoGenerator) -> None:
    collector, [headers] = _traced(echo, 1.0, _HEADERS)
    assert collector.services == {"kvasir"}
    spans = {span.name: span for span in collector.spans}
    assert {span.trace_id.hex() for span in collector.spans} == {_TRACE}
    root = spans.pop("POST /v1/translate")
    assert root.parent_span_id.hex() == _PARENT
    assert headers["traceparent"] == f"00-{_TRACE}-{root.span_id.hex()}-01"
    assert set(spans) == {"tokenize", "queue", "encode", "decode"}
    assert all(span.parent_span_id == root.span_id for span in spans.values())
    order = [spans[name] for name in ("tokenize", "queue", "encode", "decode")]
    for first, second in itertools.pairwise(order):
        assert first.end_time_unix_nano == second.start_time_unix_nano
    assert order[3].end_time_unix_nano - order[3].start_time_unix_nano == pytest.approx(7e6, rel=0.01)
    attributes = collector.attributes(root)
    assert attributes["http.response.status_code"] == 200
    assert (attributes["kvasir.request_id"], attributes["kvasir.model"]) == ("mine", "echo-en-de")
    assert attributes["kvasir.characters"] == len(_BODY["text"])
    assert "Good morning" not in str(collector.spans)


def test_the_client_decides_whether_its_request_is_traced(echo: EchoGenerator) -> None:
    unsampled = {"traceparent": f"00-{_TRACE}-{_PARENT}-00"}
    collector, [headers, _] = _traced(echo, 0.0, unsampled, {"traceparent": f"00-{'1' * 32}-{_PARENT}-01"})
    assert headers["traceparent"].startswith(f"00-{_TRACE}-")
    assert headers["traceparent"].endswith("-00")
    assert {span.trace_id.hex() for span in collector.spans} == {"1" * 32}


@pytest.mark.parametrize("header", ["", "x", "00-0-0-01", f"00-{'0' * 32}-{_PARENT}-01", "00-" + "f" * 10_000])
def test_an_invalid_header_begins_a_trace_of_its_own(echo: EchoGenerator, header: str) -> None:
    collector, [headers] = _traced(echo, 1.0, {"traceparent": header})
    [root] = [span for span in collector.spans if span.name == "POST /v1/translate"]
    assert root.parent_span_id == b""
    version, trace_id, span_id, flags = headers["traceparent"].split("-")
    assert (version, trace_id, span_id) == ("00", root.trace_id.hex(), root.span_id.hex())
    assert int(flags, 16) & 1, "sampled"


def test_a_request_that_expires_in_the_engine_has_phases_until_its_deadline(echo: EchoGenerator) -> None:
    echo.gate = asyncio.Event()
    body = {**_BODY, "text": "<b>Good</b> morning.", "format": "html", "timeout_seconds": 0.2}
    with _traced_client(echo) as (collector, client):
        answer = client.post("/v1/translate", json=body)
    assert answer.status_code == 504
    spans = {span.name: span for span in collector.spans}
    root = spans.pop("POST /v1/translate")
    assert set(spans) == {"tokenize", "queue"}, "no sentence was admitted"
    seconds = sum(span.end_time_unix_nano - span.start_time_unix_nano for span in spans.values()) / 1e9
    assert 0.2 <= seconds <= (root.end_time_unix_nano - root.start_time_unix_nano) / 1e9
    timings = dict(each.split(";dur=") for each in answer.headers["Server-Timing"].split(", "))
    assert 0.2 <= (float(timings["tokenize"]) + float(timings["queue"])) / 1e3 <= float(timings["total"]) / 1e3


@pytest.mark.parametrize(("name", "status"), [("a.txt", "done"), ("a.docx", "error")])
def test_a_document_is_a_span_below_its_upload_with_its_phases(echo: EchoGenerator, name: str, status: str) -> None:
    with _traced_client(echo) as (collector, client):
        fields, files = {"source": "en", "target": "de"}, {"file": (name, b"Good morning.")}
        path = client.post("/v1/documents", data=fields, files=files, headers=_HEADERS).headers["Location"]
        while (found := client.get(path).json()["status"]) not in ("done", "error"):
            time.sleep(0.005)
    assert found == status
    spans = {span.name: span for span in collector.spans if span.trace_id.hex() == _TRACE}
    upload, job = spans["POST /v1/documents"], spans["document"]
    assert job.parent_span_id == upload.span_id
    attributes = collector.attributes(job)
    assert (attributes["kvasir.format"], attributes["kvasir.outcome"]) == (name[2:], status)
    assert (job.status.code == job.status.STATUS_CODE_ERROR) == (status == "error")
    phases = [span for span in collector.spans if span.parent_span_id == job.span_id]
    expected = ["queue", "read", "write", "translate"] if status == "done" else ["queue", "read"]
    assert [span.name for span in phases] == expected
    assert phases[0].start_time_unix_nano == job.start_time_unix_nano
    assert phases[-1].end_time_unix_nano == pytest.approx(job.end_time_unix_nano, abs=1e3)
    assert path.rsplit("/", 1)[1] not in str(collector.spans), "the id gives access to the document"


def test_a_latency_has_its_trace_as_exemplar_for_scrapers_that_accept_it(echo: EchoGenerator) -> None:
    with collecting() as collector, TestClient(create_app(Settings(trace_endpoint=collector.url), [echo])) as client:
        client.post("/v1/translate", json=_BODY, headers=_HEADERS)
        answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0,*/*;q=0.1"})
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        exemplars = [
            sample.exemplar.labels
            for family in parser.text_string_to_metric_families(answer.text)  # type: ignore[no-untyped-call]
            for sample in family.samples
            if sample.name == "kvasir_request_seconds_bucket" and sample.exemplar is not None
        ]
        assert {"trace_id": _TRACE} in exemplars
        assert "trace_id" not in client.get("/metrics").text


def test_without_an_endpoint_the_sdk_is_not_imported() -> None:
    program = """
import sys
from server.http.app import create_app
from server.operations.settings import Settings
create_app(Settings())
assert not [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_the_extra_the_error_has_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ValueError, match=r"`trace_endpoint` needs the extra `telemetry`: pip install"):
        create_app(Settings(trace_endpoint="http://127.0.0.1:4318/v1/traces"))
