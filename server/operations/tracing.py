"""OpenTelemetry traces of requests, sent to a collector by OTLP over HTTP.

The SDK is in the extra `telemetry`, and is imported only if an endpoint is configured.
"""

import time
from collections.abc import Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING

from server.operations.version import version

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

_EXPORT_SECONDS = 2.0  # for one attempt; a collector that is down must not delay the end of the server
_PROJECT = "kvasir-server"

Attribute = str | int | float | bool


# The trace of the request that runs. Tasks that outlive the request, such as document jobs, keep it.
trace_of_call: ContextVar["RequestTrace | None"] = ContextVar("trace_of_call", default=None)


class RequestTrace:
    """The span of one HTTP request. `traceparent` is its W3C trace context, for the response.

    `phases` of a span are durations in seconds, one after the other; each that took time is a span below it.
    """

    def __init__(self, api: ModuleType, tracer: "Tracer", span: "Span") -> None:
        self._api, self._tracer, self._span = api, tracer, span
        self._begun = time.time_ns()
        context = span.get_span_context()
        self.trace_id = f"{context.trace_id:032x}"
        self.is_sampled = context.trace_flags.sampled
        self.traceparent = f"00-{self.trace_id}-{context.span_id:016x}-{int(context.trace_flags):02x}"

    def end(
        self, name: str, attributes: Mapping[str, Attribute], phases: Mapping[str, float], error: str | None = None
    ) -> None:
        """End the span."""
        if self._span.is_recording():
            self._span.update_name(name)
            self._describe(self._span, self._begun, attributes, phases, error)
        self._span.end()

    def add_job(
        self, name: str, attributes: Mapping[str, Attribute], phases: Mapping[str, float], error: str | None = None
    ) -> None:
        """Add the span of a job that the request began and that ends now, after its phases.

        It is a child of the request's span, which has ended; the job is recorded if the request is.
        """
        if self.is_sampled:
            ended = time.time_ns()
            begun = ended - round(sum(phases.values()) * 1e9)
            context = self._api.set_span_in_context(self._span)
            span = self._tracer.start_span(name, context=context, start_time=begun)
            self._describe(span, begun, attributes, phases, error)
            span.end(ended)

    def _describe(
        self,
        span: "Span",
        begun: int,
        attributes: Mapping[str, Attribute],
        phases: Mapping[str, float],
        error: str | None,
    ) -> None:
        """Set the attributes and the error of a span that began then, in nanoseconds since 1970, and add its phases."""
        span.set_attributes(dict(attributes))
        if error is not None:
            span.set_status(self._api.Status(self._api.StatusCode.ERROR, error))
        context = self._api.set_span_in_context(span)
        for phase, seconds in phases.items():
            if seconds > 0:
                ended = begun + round(seconds * 1e9)
                self._tracer.start_span(phase, context=context, start_time=begun).end(ended)
                begun = ended


class Tracing:
    """Creates the spans of requests. Spans are sent in batches from a thread, and dropped if the collector is down."""

    def __init__(self, endpoint: str, ratio: float) -> None:
        """`ratio` is the fraction of traces recorded, unless a request has a trace context, which decides.

        Raises ValueError if the SDK is not installed.
        """
        self._api, resources, sdk, export, sampling, exporter, propagation = _modules()
        sampler = sampling.ParentBased(sampling.TraceIdRatioBased(ratio))
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES of the environment take precedence.
        resource = resources.Resource.create({"service.name": "kvasir", "service.version": version()}).merge(
            resources.OTELResourceDetector().detect()
        )
        self._provider = sdk.TracerProvider(resource=resource, sampler=sampler, shutdown_on_exit=False)
        self._provider.add_span_processor(
            export.BatchSpanProcessor(exporter.OTLPSpanExporter(endpoint=endpoint, timeout=_EXPORT_SECONDS))
        )
        self._tracer = self._provider.get_tracer("kvasir")
        self._propagator = propagation.TraceContextTextMapPropagator()

    def begin(self, headers: Mapping[str, str]) -> RequestTrace:
        """Begin the span of a request, in the trace of its `traceparent` header if it has a valid one."""
        names = [name for name in ("traceparent", "tracestate") if name in headers]
        context = self._propagator.extract({name: headers[name] for name in names})
        span = self._tracer.start_span("request", context=context, kind=self._api.SpanKind.SERVER)
        return RequestTrace(self._api, self._tracer, span)

    def close(self) -> None:
        """Send the spans that were not sent yet. Blocks for some seconds if the collector is down."""
        self._provider.shutdown()


def _modules() -> tuple[ModuleType, ...]:
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http import trace_exporter
        from opentelemetry.sdk import resources
        from opentelemetry.sdk import trace as sdk
        from opentelemetry.sdk.trace import export, sampling
        from opentelemetry.trace.propagation import tracecontext
    except ImportError as error:
        raise ValueError(
            f"`trace_endpoint` needs the extra `telemetry`: pip install '{_PROJECT}[telemetry]' ({error})"
        ) from error
    return trace, resources, sdk, export, sampling, trace_exporter, tracecontext
