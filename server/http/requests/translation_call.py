"""Steps that every protocol takes between reading a request and writing its response."""

from dataclasses import replace

from fastapi import Request

from server.http.requests.disconnect import unless_disconnected
from server.http.state import RequestRecord, request_record, server_state
from server.translation.service import TranslationOutcome, TranslationService
from server.translation.types import TranslationRequest


async def run_translation(
    request: Request, translation: TranslationRequest, source: str | None, target: str | None
) -> TranslationOutcome:
    """Translate from `source` to `target`, record the outcome for the log, and cancel if the client disconnects."""
    service, translation = accept(request, translation)
    outcome = await unless_disconnected(request, service.translate(translation, source, target))
    record_outcome(request_record(request), outcome)
    return outcome


def accept(request: Request, translation: TranslationRequest) -> tuple[TranslationService, TranslationRequest]:
    """Return the translation service and the request for it, and record the request's size for the log.

    `Cache-Control: no-cache` sets `bypass_cache`. Raises `Draining` during start-up and shutdown.
    """
    record = request_record(request)
    record.num_texts, record.num_characters = len(translation.texts), translation.num_characters
    service, _ = server_state(request).accept()
    directives = [directive.strip().lower() for directive in request.headers.get("Cache-Control", "").split(",")]
    return service, replace(translation, bypass_cache=True) if "no-cache" in directives else translation


def record_outcome(record: RequestRecord, outcome: TranslationOutcome) -> None:
    """Keep the outcome of a request for the log and the metrics."""
    record.result, record.model = outcome.result, outcome.model
