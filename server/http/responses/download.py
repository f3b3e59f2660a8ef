"""Download response of a translated document, for every protocol."""

from collections.abc import Iterator
from urllib.parse import quote

from fastapi.responses import StreamingResponse

from server.documents.job_store import DocumentContent

_CHUNK_BYTES = 1 << 16


def download(document: DocumentContent) -> StreamingResponse:
    """Return the document as an attachment under its own name."""
    headers = {
        "Content-Disposition": f"attachment; filename*=utf-8''{quote(document.name, safe='')}",
        "Content-Length": str(document.num_bytes),
        "X-Content-Type-Options": "nosniff",  # a browser must not render the document as a page of this server
    }
    return StreamingResponse(_chunks(document), media_type=document.media_type, headers=headers)


def _chunks(document: DocumentContent) -> Iterator[bytes]:
    with document.stream as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk
