"""The files of the page, read once, with what browsers need to know of each."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent / "static"
INDEX: Final = "index.html"

# Named here and not asked of the machine, whose own table may have anything for .js.
_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent. `etag` comes of the content, so every process and machine has the same."""

    content: bytes
    media_type: str
    etag: str


def read_page(folder: Path = FOLDER) -> dict[str, PageFile]:
    """Every file of the page by its name, which is all that can be asked for: no path leads anywhere else.

    Raises KeyError for a file whose kind is not known here.
    """
    files = {}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        files[path.name] = PageFile(content, _MEDIA_TYPES[path.suffix], etag)
    return files
