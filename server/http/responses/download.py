"""Download response of a translated document, for every protocol."""

import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import quote

from fastapi.responses import StreamingResponse

from server.documents.job_store import DocumentContent

_CHUNK_BYTES = 1 << 16


def download(document: DocumentContent) -> StreamingResponse:
    """Return the document as an attachment under its own name."""
    headers = {
        "Content-Disposition": _disposition(document.name),
        "Content-Length": str(document.num_bytes),
        "X-Content-Type-Options": "nosniff",  # a browser must not render the document as a page of this server
    }
    return StreamingResponse(_chunks(document), media_type=document.media_type, headers=headers)


def _disposition(name: str) -> str:
    """Return a header with both forms of a name: `filename*` for browsers, `filename` for `curl -OJ` and others.

    `filename` has letters without their accents, and underscores for other characters that a quoted string lacks.
    """
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    plain = re.sub(r'[^ -~]|["\\/%]', "_", plain)
    return f"attachment; filename=\"{plain}\"; filename*=utf-8''{quote(name, safe='')}"


def _chunks(document: DocumentContent) -> Iterator[bytes]:
    with document.stream as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk
