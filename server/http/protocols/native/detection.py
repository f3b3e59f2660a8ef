"""`POST /v1/detect`: languages that texts may be in."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from server.http.protocols.native.fields import BoundedBody, Text
from server.http.responses.errors import error_responses
from server.http.state import RequestRecord, ServerState, request_record, server_state

router = APIRouter(prefix="/v1", tags=["translation"])

_MAX_CANDIDATES = 5


class DetectBody(BoundedBody):
    """Texts whose languages are to be detected."""

    model_config = ConfigDict(extra="forbid")

    text: Text


class CandidateAnswer(BaseModel):
    """A language that a text may be in."""

    language: str = Field(description="tag, as in source")
    confidence: float = Field(description="probability, 0 to 1")


class DetectionsAnswer(BaseModel):
    """Candidates of each text, the most likely first; none for a text without letters."""

    detections: list[list[CandidateAnswer]]


@router.post("/detect", responses=error_responses(400, 413, 422, 500, 503, 504))
async def detect(
    body: DetectBody,
    server: Annotated[ServerState, Depends(server_state)],
    record: Annotated[RequestRecord, Depends(request_record)],
) -> DetectionsAnswer:
    """Return the languages that each text may be in, at most five, with their probabilities."""
    texts = (body.text,) if isinstance(body.text, str) else tuple(body.text)
    record.num_texts, record.num_characters = len(texts), sum(map(len, texts))
    service, _ = server.accept()
    return DetectionsAnswer(
        detections=[
            [CandidateAnswer(language=each.language, confidence=each.confidence) for each in ranked[:_MAX_CANDIDATES]]
            for ranked in await service.rank(texts)
        ]
    )
