"""Routes of the web page and of the API's documentation, under a policy that lets a browser run no other script."""

import asyncio
import json
import mimetypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER: Final = Path(__file__).resolve().parent / "static"
INDEX: Final = "index.html"

# The operating system's table may map .js to anything.
for _extension, _kind in ((".html", "text/html"), (".css", "text/css"), (".js", "text/javascript")):
    mimetypes.add_type(_kind, _extension)
mimetypes.add_type("image/svg+xml", ".svg")


class PageFiles(StaticFiles):
    """The files of a folder, with these headers."""

    def __init__(self, folder: Path, headers: Mapping[str, str]) -> None:
        super().__init__(directory=folder)
        self._headers = headers

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return a file, or 304 for one that the browser has."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(self._headers)
        return response


def security_headers(
    style: str = "'self'", image: str = "'self'", has_trusted_types: bool = True, microphone: str = ""
) -> dict[str, str]:
    """Return the headers of a page with these sources of styles and images; `microphone` may use that."""
    policy = [
        "default-src 'none'",
        "script-src 'self'",
        f"style-src {style}",
        f"img-src {image}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    if has_trusted_types:
        policy += ["require-trusted-types-for 'script'", "trusted-types 'none'"]
    return {
        "Content-Security-Policy": "; ".join(policy),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": f"camera=(), geolocation=(), microphone=({microphone})",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        # Cached, but revalidated each time: an updated server must not be mixed with old files.
        "Cache-Control": "no-cache",
    }


async def _read_body(request: Request) -> None:
    """Reject a body that must not pass now: a file is sent while its response waits for the client to leave."""
    await request.body()


router = APIRouter(include_in_schema=False, dependencies=[Depends(_read_body)])

_FILES: Final = PageFiles(FOLDER, security_headers())
_SPEECH_FILES: Final = PageFiles(FOLDER, security_headers(microphone="self"))


@router.api_route("/page/{name}", methods=["GET", "HEAD"])
async def page_file(request: Request, name: str) -> Response:
    """Return a file of the page."""
    return await _FILES.get_response(name, request.scope)


live_router = APIRouter(include_in_schema=False, dependencies=[Depends(_read_body)])
docs_router = APIRouter(include_in_schema=False, dependencies=[Depends(_read_body)])

# Swagger UI sets style attributes, embeds its icons as data, and writes markup without trusted types.
_DOCS_FILES: Final = PageFiles(
    Path(__file__).resolve().parent / "docs",
    security_headers(style="'self' 'unsafe-inline'", image="'self' data:", has_trusted_types=False),
)


def _add_page(router: APIRouter, path: str, files: PageFiles, name: str) -> None:
    """Add the route of a file at an address of its own."""

    async def page(request: Request) -> Response:
        return await files.get_response(name, request.scope)

    router.add_api_route(path, page, methods=["GET", "HEAD"])


_add_page(router, "/", _FILES, INDEX)
_add_page(live_router, "/live", _SPEECH_FILES, "live.html")
_add_page(docs_router, "/docs", _DOCS_FILES, "docs.html")
_add_page(docs_router, "/docs/start.js", _DOCS_FILES, "start.js")


@docs_router.api_route("/openapi.json", methods=["GET", "HEAD"])
@docs_router.api_route("/spec", methods=["GET", "HEAD"])  # LibreTranslate's path of it
async def description(request: Request) -> Response:
    """Return the description of all protocols. It is made at the first request: that takes 0.2 s of another thread."""
    encoded, root_path = request.app.state.descriptions, str(request.scope.get("root_path", "")).rstrip("/")
    if root_path not in encoded:
        encoded[root_path] = asyncio.create_task(run_in_threadpool(_encode, request.app, root_path))
    return Response(await asyncio.shield(encoded[root_path]), media_type="application/json")


def _encode(app: FastAPI, root_path: str) -> bytes:
    description = app.openapi() | ({"servers": [{"url": root_path}]} if root_path else {})
    return json.dumps(description, ensure_ascii=False, separators=(",", ":")).encode()
