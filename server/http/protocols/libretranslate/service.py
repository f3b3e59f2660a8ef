"""LibreTranslate-compatible: what such a server says of itself."""

from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from server.documents.formats.registry import FORMATS
from server.http.protocols.libretranslate.swagger import swagger
from server.http.protocols.libretranslate.texts import code_of
from server.http.responses.errors import libretranslate_responses
from server.http.state import server_state
from server.text.language_tags import display_name

router = APIRouter(tags=["LibreTranslate-compatible"])


class HealthAnswer(BaseModel):
    """That the server answers; /health/ready says more."""

    status: Literal["ok"] = "ok"


class LanguageOption(BaseModel):
    """A language as a page offers it."""

    code: str
    name: str


class LanguageOptions(BaseModel):
    """What a page offers before anything is chosen."""

    source: LanguageOption
    target: LanguageOption


class FrontendSettings(BaseModel):
    """What a page must know of the server."""

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
    """The server answers."""
    return HealthAnswer()


@router.get("/frontend/settings", responses=libretranslate_responses(500, 503))
async def frontend_settings(request: Request) -> FrontendSettings:
    """Limits, and what is switched on."""
    server = server_state(request)
    _, catalogue = server.accept()
    target = catalogue.target_languages[0]
    return FrontendSettings(
        charLimit=server.settings.max_text_characters,
        frontendTimeout=500,
        apiKeys=False,
        keyRequired=False,
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
    """Always refused: this server learns nothing from its users."""
    return JSONResponse({"error": "Suggestions are disabled on this server."}, 403)


@router.get("/spec")
async def spec(request: Request) -> JSONResponse:
    """The operations of this protocol, as Swagger 2.0; /openapi.json describes everything."""
    return JSONResponse(swagger(request.app.openapi(), "LibreTranslate-compatible"))
