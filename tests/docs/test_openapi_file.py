"""The description of the HTTP API has every protocol, with its answers."""

import json

from tests.docs.openapi_file import openapi_text


def test_the_schema_describes_every_protocol_with_its_answers() -> None:
    schema = json.loads(openapi_text())
    assert schema["openapi"].startswith("3.")
    for path in ("/v1/translate", "/v1/documents", "/translate", "/translate_file", "/v2/translate", "/v2/document"):
        assert {"200", "202"} & set(schema["paths"][path]["post"]["responses"])
    assert "beam_size" in schema["components"]["schemas"]["TranslateBody"]["properties"]
