"""The OpenAI-compatible protocol as a value for the registry."""

from server.http.protocols.openai import chat, models
from server.http.protocols.openai.errors import OPENAI
from server.http.protocols.protocol import Protocol

OPENAI_PROTOCOL = Protocol(
    name="openai",
    routers=(chat.router, models.router),
    error_format=OPENAI,
    paths=(*chat.PATHS, *models.PATHS),
    key_headers=("api-key",),
)
