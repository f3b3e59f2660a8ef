"""LibreTranslate-compatible routes that describe the server."""

from collections.abc import Mapping
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from server.documents.formats.registry import FORMATS
from server.http.protocols.libretranslate.errors import libretranslate_responses
from server.http.protocols.libretranslate.swagger import swagger
from server.http.protocols.libretranslate.texts import code_of
from server.http.responses.descriptions import Descriptions
from server.http.state import server_state
from server.text.language_tags import display_name

router = APIRouter(tags=["LibreTranslate-compatible"])


class HealthAnswer(BaseModel):
    """Server status; /health/ready is more precise."""

    status: Literal["ok"] = "ok"


class LanguageOption(BaseModel):
    """Language of a selection list."""

    code: str
    name: str


class LanguageOptions(BaseModel):
    """Default languages of a page."""

    source: LanguageOption
    target: LanguageOption


class FrontendSettings(BaseModel):
    """Limits and features for a page."""

    charLimit: int  # noqa: N815 - the protocol's names
    frontendTimeout: int  # noqa: N815
    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    suggestions: bool
    filesTranslation: bool  # noqa: N815
    supportedFilesFormat: list[str]  # noqa: N815
    language: LanguageOptions


@router.head("/health", include_in_schema=False)
@router.get("/health")
async def health() -> HealthAnswer:
    """Return that the server is up."""
    return HealthAnswer()


@router.get("/frontend/settings", responses=libretranslate_responses(500, 503))
async def frontend_settings(request: Request) -> FrontendSettings:
    """Return limits and features."""
    server = server_state(request)
    _, model_router = server.accept()
    target = model_router.target_languages[0]
    return FrontendSettings(
        charLimit=server.settings.max_text_characters,
        frontendTimeout=500,
        apiKeys=server.key_gate is not None,
        keyRequired=server.key_gate is not None,
        suggestions=False,
        filesTranslation=True,
        supportedFilesFormat=list(FORMATS),
        language=LanguageOptions(
            source=LanguageOption(code="auto", name="Auto Detect"),
            target=LanguageOption(code=code_of(target), name=display_name(target)),
        ),
    )


@router.post("/suggest", status_code=403, responses=libretranslate_responses(403))
async def suggest() -> JSONResponse:
    """Reject the suggestion; this server does not collect any."""
    return JSONResponse({"error": "Suggestions are disabled on this server."}, 403)


@router.get("/spec")
async def spec(request: Request) -> Response:
    """Return this protocol's operations as Swagger 2.0; /openapi.json describes all protocols."""
    descriptions: Descriptions = request.app.state.descriptions
    return await descriptions.response(_swagger, "")


def _swagger(description: Mapping[str, Any], _: str) -> Mapping[str, object]:
    return swagger(description, "LibreTranslate-compatible")
