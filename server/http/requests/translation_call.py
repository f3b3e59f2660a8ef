"""What every protocol does between reading a request and writing its answer."""

from dataclasses import replace

from fastapi import Request

from server.http.requests.disconnect import unless_disconnected
from server.http.state import RequestRecord, request_record, server_state
from server.translation.service import TranslationOutcome, TranslationService
from server.translation.types import TranslationRequest


async def interpret(
    request: Request, asked: TranslationRequest, source: str | None, target: str | None
) -> TranslationOutcome:
    """`asked` from and to these languages; noted for the log, and cancelled when the client goes away."""
    interpreter, asked = accept(request, asked)
    done = await unless_disconnected(request, interpreter.translate(asked, source, target))
    note(request_record(request), done)
    return done


def accept(request: Request, asked: TranslationRequest) -> tuple[TranslationService, TranslationRequest]:
    """Who translates `asked`, and what exactly: with `Cache-Control: no-cache`, nothing that was translated before.

    Its size is noted for the log. Raises `Draining` where nobody translates.
    """
    record = request_record(request)
    record.num_texts, record.num_characters = len(asked.texts), asked.num_characters
    interpreter, _ = server_state(request).accept()
    directives = [directive.strip().lower() for directive in request.headers.get("Cache-Control", "").split(",")]
    return interpreter, replace(asked, fresh=True) if "no-cache" in directives else asked


def note(record: RequestRecord, done: TranslationOutcome) -> None:
    """Keep for the log and the metrics what was done."""
    record.result, record.model = done.result, done.model
