"""Routes of the API's documentation: its description, and Swagger UI under the security policy of the page."""

from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response

from server.http.page.files import read_page
from server.http.page.headers import security_headers
from server.http.responses.descriptions import Descriptions, openapi

router = APIRouter(include_in_schema=False)

# Swagger UI sets style attributes, embeds its icons as data, and writes markup without trusted types.
_HEADERS: Final = security_headers(style="'self' 'unsafe-inline'", image="'self' data:", has_trusted_types=False)
_FILES: Final = read_page(Path(__file__).resolve().parent / "docs")


@router.api_route("/docs", methods=["GET", "HEAD"])
async def docs() -> Response:
    """Return the documentation page."""
    return _response("docs.html")


@router.api_route("/openapi.json", methods=["GET", "HEAD"])
async def description(request: Request) -> Response:
    """Return the description of all protocols."""
    descriptions: Descriptions = request.app.state.descriptions
    return await descriptions.response(openapi, request.scope.get("root_path", ""))


@router.api_route("/docs/start.js", methods=["GET", "HEAD"])
async def start() -> Response:
    """Return the script that starts Swagger UI."""
    return _response("start.js")


def _response(name: str) -> Response:
    return Response(_FILES[name].content, headers=_HEADERS, media_type=_FILES[name].media_type)
