"""Routes of the page: static files, with a policy that lets a browser run no other script."""

from typing import Final

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from server.http.page.files import INDEX, PageFile, read_page
from server.http.page.headers import security_headers

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


def _response(request: Request, file: PageFile) -> Response:
    headers = {**_HEADERS, "ETag": file.etag}
    cached = request.headers.get("if-none-match", "")
    # A proxy that compresses may have made the tag a weak one: https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
    if cached == "*" or file.etag in (tag.strip().removeprefix("W/") for tag in cached.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)
