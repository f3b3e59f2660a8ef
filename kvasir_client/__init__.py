"""Python client of a Kvasir server: `Client` and `AsyncClient`. It imports nothing of the server."""

from kvasir_client.answers import (
    Alternative,
    DetectedLanguage,
    Document,
    DocumentDetails,
    Embedding,
    Generation,
    GenerationResult,
    Language,
    Limits,
    Models,
    Score,
    TextDelta,
    Translation,
    TranslationResult,
)
from kvasir_client.async_client import AsyncClient
from kvasir_client.client import Client
from kvasir_client.details import (
    KeptSentence,
    NumberDifferences,
    ProtectedSpan,
    RepairedSentence,
    Sentence,
    SentenceQuality,
    TranslationDetails,
)
from kvasir_client.errors import (
    ConnectionFailed,
    DocumentFailed,
    KvasirError,
    Overloaded,
    ResponseError,
    TimedOut,
)

__all__ = [
    "Alternative",
    "AsyncClient",
    "Client",
    "ConnectionFailed",
    "DetectedLanguage",
    "Document",
    "DocumentDetails",
    "DocumentFailed",
    "Embedding",
    "Generation",
    "GenerationResult",
    "KeptSentence",
    "KvasirError",
    "Language",
    "Limits",
    "Models",
    "NumberDifferences",
    "Overloaded",
    "ProtectedSpan",
    "RepairedSentence",
    "ResponseError",
    "Score",
    "Sentence",
    "SentenceQuality",
    "TextDelta",
    "TimedOut",
    "Translation",
    "TranslationDetails",
    "TranslationResult",
]
