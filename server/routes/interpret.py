"""What every protocol does between reading a request and writing its answer."""

from fastapi import Request

from server.interpreter import Interpretation
from server.routes.disconnect import unless_disconnected
from server.state import request_record, server_state
from server.translation import TranslationRequest


async def interpret(
    request: Request, asked: TranslationRequest, source: str | None, target: str | None
) -> Interpretation:
    """`asked` from and to these languages; noted for the log, and cancelled when the client goes away."""
    interpreter, _ = server_state(request).accept()
    record = request_record(request)
    record.num_texts, record.num_characters = len(asked.texts), asked.num_characters
    done = await unless_disconnected(request, interpreter.translate(asked, source, target))
    record.result, record.model = done.result, done.model
    return done
