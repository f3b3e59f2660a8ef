"""The file `openapi.json` describes the HTTP API of the server."""

import json

from tests.docs.openapi_file import FILE, openapi_text


def test_the_file_is_the_schema_of_the_server() -> None:
    assert FILE.read_text(encoding="utf-8") == openapi_text(), "run `make reference`"


def test_the_file_describes_every_protocol_with_its_answers() -> None:
    schema = json.loads(FILE.read_text(encoding="utf-8"))
    assert schema["openapi"].startswith("3.")
    for path in ("/v1/translate", "/v1/documents", "/translate", "/translate_file", "/v2/translate", "/v2/document"):
        assert (
            "200" in schema["paths"][path]["post"]["responses"] or "202" in schema["paths"][path]["post"]["responses"]
        )
    assert "beam_size" in schema["components"]["schemas"]["TranslateBody"]["properties"]
