"""Description of the HTTP API: `python -m tests.docs.openapi_file FILE` writes it, as `make docs` does."""

import json
import sys
from pathlib import Path

from server.http.app import create_app
from server.operations.settings import Settings


def openapi_text() -> str:
    """Return the schema of a server with Kvasir's, LibreTranslate's and DeepL's protocols."""
    schema = create_app(Settings(protocols=["native", "libretranslate", "deepl"])).openapi()
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(openapi_text(), encoding="utf-8")
