"""Static files of the page, read once, with media type and entity tag."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
