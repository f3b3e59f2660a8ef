"""Description of the HTTP API in `openapi.json`. `python -m tests.docs.openapi_file` writes it again."""

import json

from server.http.app import create_app
from server.operations.settings import Settings
from tests.architecture.project_files import ROOT

FILE = ROOT / "openapi.json"


def openapi_text() -> str:
    """Return the schema that a server with all protocols publishes at `/openapi.json`."""
    schema = create_app(Settings(protocols=["native", "libretranslate", "deepl"])).openapi()
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(openapi_text(), encoding="utf-8")
