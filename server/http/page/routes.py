"""Routes of the web page and of the API's documentation, under a policy that lets a browser run no other script."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

FOLDER: Final = Path(__file__).resolve().parent / "static"
INDEX: Final = "index.html"

# A constant table: the operating system's may map .js to anything.
_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """Content and headers of a file. `etag` is a hash of the content, so it is equal on every machine."""

    content: bytes
    media_type: str
    etag: str


def read_page(folder: Path = FOLDER) -> dict[str, PageFile]:
    """Return every file of the page by name. Requests can name these only, so no path leaves the folder.

    Raises KeyError for an unknown file extension.
    """
    files = {}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        files[path.name] = PageFile(content, _MEDIA_TYPES[path.suffix], etag)
    return files


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


router = APIRouter(include_in_schema=False)

_HEADERS: Final = security_headers()
_FILES: Final = read_page()


@router.api_route("/", methods=["GET", "HEAD"])
async def index(request: Request) -> Response:
    """Return the page."""
    return _response(request, _FILES[INDEX])


@router.api_route("/page/{name}", methods=["GET", "HEAD"])
async def page_file(request: Request, name: str) -> Response:
    """Return a file of the page."""
    if name not in _FILES:
        raise HTTPException(404)
    return _response(request, _FILES[name])


def _response(request: Request, file: PageFile, headers: Mapping[str, str] = _HEADERS) -> Response:
    headers = {**headers, "ETag": file.etag}
    cached = request.headers.get("if-none-match", "")
    # A proxy that compresses may have made the tag a weak one: https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
    if cached == "*" or file.etag in (tag.strip().removeprefix("W/") for tag in cached.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)


live_router = APIRouter(include_in_schema=False)

_LIVE_HEADERS: Final = security_headers(microphone="self")


@live_router.api_route("/live", methods=["GET", "HEAD"])
async def live(request: Request) -> Response:
    """Return the page for text that is still being spoken."""
    return _response(request, _FILES["live.html"], _LIVE_HEADERS)


docs_router = APIRouter(include_in_schema=False)

# Swagger UI sets style attributes, embeds its icons as data, and writes markup without trusted types.
_DOCS_HEADERS: Final = security_headers(style="'self' 'unsafe-inline'", image="'self' data:", has_trusted_types=False)
_DOCS_FILES: Final = read_page(Path(__file__).resolve().parent / "docs")


@docs_router.api_route("/docs", methods=["GET", "HEAD"])
async def docs() -> Response:
    """Return the documentation page."""
    return _docs_response("docs.html")


@docs_router.api_route("/openapi.json", methods=["GET", "HEAD"])
async def description(request: Request) -> Response:
    """Return the description of all protocols. It is made at the first request: that takes 0.2 s of another thread."""
    encoded, root_path = request.app.state.descriptions, str(request.scope.get("root_path", "")).rstrip("/")
    if root_path not in encoded:
        encoded[root_path] = asyncio.create_task(run_in_threadpool(_encode, request.app, root_path))
    return Response(await asyncio.shield(encoded[root_path]), media_type="application/json")


def _encode(app: FastAPI, root_path: str) -> bytes:
    description = app.openapi() | ({"servers": [{"url": root_path}]} if root_path else {})
    return json.dumps(description, ensure_ascii=False, separators=(",", ":")).encode()


@docs_router.api_route("/docs/start.js", methods=["GET", "HEAD"])
async def start() -> Response:
    """Return the script that starts Swagger UI."""
    return _docs_response("start.js")


def _docs_response(name: str) -> Response:
    return Response(_DOCS_FILES[name].content, headers=_DOCS_HEADERS, media_type=_DOCS_FILES[name].media_type)
