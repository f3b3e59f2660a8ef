"""Steps that every protocol takes between reading a request and writing its response."""

from dataclasses import replace
from typing import Final, Protocol

from fastapi import Request

from server.http.raw_headers import header
from server.http.requests.api_keys import charge
from server.http.requests.disconnect import unless_disconnected
from server.http.requests.memories import default_memory
from server.http.state import RequestRecord, request_record, server_state
from server.interface.decoding_options import DetailOptions
from server.translation.service import TranslationOutcome, TranslationService
from server.translation.types import TranslationRequest, TranslationResult

# For each character of a text: measured with sentences of 100 characters, which have 25 tokens.
_ATTENTION_BYTES: Final = 1000
_ALTERNATIVE_BYTES: Final = 15


class Outcome(Protocol):
    """Texts that a request received, and the name of the model."""

    @property
    def result(self) -> TranslationResult:
        """The texts, and the numbers for metrics and logs."""
        ...

    @property
    def model(self) -> str | None:
        """The name of the model."""
        ...


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

    `Cache-Control: no-cache` sets `bypass_cache`. Raises `Draining` during start-up and shutdown, and `QueueFull` if
    the details requested so far exceed the memory limit for responses, or the API key its quota.
    """
    record, server = request_record(request), server_state(request)
    record.num_texts, record.num_characters = len(translation.texts), translation.num_characters
    service, _ = server.accept()
    charge(request, translation.num_characters)
    if translation.memory is None:
        translation = replace(translation, memory=default_memory(request))
    if num_bytes := expected_detail_bytes(translation.options, translation.num_characters):
        server.expected.add(record.client, num_bytes)
        record.expected_bytes += num_bytes
    return service, replace(translation, bypass_cache=True) if bypasses_cache(request) else translation


def bypasses_cache(request: Request) -> bool:
    """Return whether a request has `Cache-Control: no-cache`."""
    directives = header(request.scope, b"cache-control").split(",")
    return "no-cache" in [directive.strip().lower() for directive in directives]


def expected_detail_bytes(options: DetailOptions, num_characters: int) -> int:
    """Estimate the JSON of token details, in bytes. 0 without any."""
    by_character = options.num_token_alternatives * _ALTERNATIVE_BYTES
    by_character += _ATTENTION_BYTES if options.return_attention else 0
    return by_character * num_characters


def record_outcome(record: RequestRecord, outcome: Outcome) -> None:
    """Keep the outcome of a request for the log and the metrics."""
    record.result, record.model = outcome.result, outcome.model
