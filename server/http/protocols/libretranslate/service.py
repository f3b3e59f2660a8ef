"""LibreTranslate-compatible routes that describe the server, for one of which OpenAPI 3.1 becomes Swagger 2.0."""

import copy
from collections.abc import Mapping
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from server.documents.formats.registry import FORMATS
from server.http.protocols.libretranslate.texts import code_of, libretranslate_responses
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


_DEFINITIONS = ("#/components/schemas/", "#/definitions/")


def swagger(openapi: Mapping[str, Any], tag: str) -> dict[str, object]:
    """Return the operations with this tag. Bodies are described as JSON; Swagger 2.0 has no alternative media types."""
    paths: dict[str, dict[str, object]] = {}
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            if tag in operation.get("tags", ()):
                paths.setdefault(path, {})[method] = _operation(operation)
    schemas = openapi.get("components", {}).get("schemas", {})
    return {
        "swagger": "2.0",
        "info": {"title": openapi["info"]["title"], "version": openapi["info"]["version"]},
        "basePath": "/",
        "paths": paths,
        "definitions": {name: _schema(schema) for name, schema in schemas.items()},
    }


def _operation(operation: Mapping[str, Any]) -> dict[str, object]:
    converted: dict[str, object] = {
        "tags": operation["tags"],
        "summary": operation.get("summary", ""),
        "produces": ["application/json"],
        "responses": {
            status: {"description": response["description"]} | _content(response)
            for status, response in operation["responses"].items()
        },
    }
    parameters = [
        {"name": each["name"], "in": each["in"], "required": each.get("required", False), "type": "string"}
        for each in operation.get("parameters", ())
    ]
    if body := operation.get("requestBody"):
        converted["consumes"] = list(body["content"])
        parameters.append({"name": "body", "in": "body", "required": True, **_content(body)})
    if parameters:
        converted["parameters"] = parameters
    return converted


def _content(holder: Mapping[str, Any]) -> dict[str, object]:
    for media_type in holder.get("content", {}).values():
        return {"schema": _schema(media_type.get("schema", {}))}
    return {}


def _schema(schema: object) -> object:
    """Convert a schema: references point to `definitions`, and of several types the first is used."""
    if isinstance(schema, list):
        return [_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    converted = copy.copy(schema)
    for choice in ("anyOf", "oneOf"):
        if alternatives := converted.pop(choice, None):
            converted = alternatives[0] | converted
    if reference := converted.get("$ref"):
        return {"$ref": reference.replace(*_DEFINITIONS)}
    return {name: _schema(value) for name, value in converted.items() if name not in ("$defs", "const")}
