"""A collector of OpenTelemetry traces: OTLP over HTTP, as protobuf."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """Spans received on a port of this machine."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    def receive(self, body: bytes) -> None:
        """Keep the spans of one export."""
        for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {each.key: each.value.string_value for each in resource_spans.resource.attributes}
            self.services.add(attributes["service.name"])
            for scope_spans in resource_spans.scope_spans:
                self.spans += scope_spans.spans

    def attributes(self, span: Span) -> dict[str, object]:
        """Return the attributes of a span as Python values."""
        return {each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in span.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector until the end of the block."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.receive(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
