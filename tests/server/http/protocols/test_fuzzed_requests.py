"""Each protocol answers damaged requests with its own error, and never with 500.

`FUZZED_REQUESTS=5000` sends more of them.
"""

import os
import random

import pytest
from starlette.testclient import TestClient

from server.http.protocols.registry import PROTOCOLS
from tests.server.http.protocols.fuzzing import Fuzzed, check_error, random_request

NUM_REQUESTS = int(os.environ.get("FUZZED_REQUESTS", "200"))
FUZZED = {
    "deeplx": Fuzzed(
        ("/translate", "/v1/translate", "/deeplx", "/deeplx/translate", "/deeplx/jsonrpc", "/deeplx/x"),
        (
            {"text": "Tea.", "source_lang": "EN", "target_lang": "DE", "tag_handling": "html"},
            {
                "id": 1,
                "method": "LMT_handle_texts",
                "params": {
                    "texts": [{"text": "Tea."}],
                    "lang": {"source_lang_user_selected": "auto", "target_lang": "DE"},
                },
            },
        ),
        {"token": "x"},
    ),
    "extensions": Fuzzed(
        ("/imme", "/kiss", "/hcfy"),
        (
            {"source_lang": "auto", "target_lang": "de", "text_list": ["Tea.", "Tee."]},
            {"text": "Tea.", "from": "auto", "to": "de"},
            {"texts": ["Tea.", "Tee."], "from": "auto", "to": "de"},
            {"name": "Kvasir", "text": "Tea.", "destination": ["英语", "德语"], "source": "英语"},
        ),
        {"token": "x"},
    ),
    "openai": Fuzzed(
        ("/v1/chat/completions", "/chat/completions", "/v1/chat/completions/x"),
        (
            {"model": "kvasir:en-de", "messages": [{"role": "user", "content": "Tea."}], "stream": True},
            {"model": "m", "messages": [{"role": "user", "content": 'Translate into German:\n"""\nTea.\n"""'}]},
            {
                "messages": [
                    {"role": "system", "content": "Answer in JSON."},
                    {"role": "user", "content": '{"targetLanguage": "de", "segments": [{"id": 1, "text": "Tea."}]}'},
                ],
                "stream_options": {"include_usage": True},
                "translation_options": {"source_lang": "auto", "target_lang": "German"},
            },
        ),
        {},
    ),
    "google": Fuzzed(
        (
            "/language/translate/v2",
            "/language/translate/v2/detect",
            "/language/translate/v2/languages/",
            "/translate_a/single",
            "/translate_a/t",
            "/m",
            "/google",
            "/_/TranslateWebserverUi/data/batchexecute",
        ),
        (
            {"q": ["Tea.", "Water."], "target": "de", "source": None, "format": "text", "cid": []},
            {"q": "Tea.", "sl": "en", "tl": "de", "target": "de", "dj": 1},
            {"f.req": '[[["MkEWBc", "[[\\"Tea.\\",\\"en\\",\\"de\\",true],[1]]", null, "0"]]]', "rt": "c"},
        ),
        {"client": "gtx", "sl": "auto", "tl": "de", "dj": "1", "q": "Tea.", "target": "de"},
    ),
    "apertium": Fuzzed(
        ("/translate", "/apertium/translate", "/listPairs", "/identifyLang"),
        ({"langpair": "eng|deu", "q": "Tea.", "format": "txt", "markUnknown": "no"},),
        {"langpair": "en|de", "q": "Tea.", "callback": "show"},
    ),
    "games": Fuzzed(
        ("/translate", "/xunity/translate", "/sugoi/", "/"),
        (
            {"message": "translate sentences", "content": ["Tea.", "Water."]},
            {"message": "translate batch", "batch": ["Tea."]},
        ),
        {"from": "en", "to": "de", "text": "Tea."},
    ),
    "microsoft": Fuzzed(
        ("/translate", "/detect", "/breaksentence", "/microsoft/translate", "/translator/text/v3.0/translate"),
        (
            [{"Text": "Tea."}, {"text": "Water."}],
            {"inputs": [{"text": "Tea.", "language": "en", "targets": [{"language": "de"}]}]},
        ),
        {"api-version": "3.0", "to": "de", "from": "en", "textType": "plain"},
    ),
    "mtranserver": Fuzzed(
        ("/translate", "/translate/batch", "/mtranserver/translate", "/mtranserver/translate/batch", "/detect"),
        (
            {"from": "en", "to": "de", "text": "Tea.", "html": False},
            {"from": "auto", "to": "de", "texts": ["Tea.", "Tee."], "html": True},
            {"text": "Tea.", "minConfidence": 0.5},
        ),
        {"token": "x"},
    ),
}


def test_every_compatible_protocol_is_fuzzed() -> None:
    assert set(FUZZED) == set(PROTOCOLS) - {
        "native",
        "live",
        "libretranslate",
        "deepl",
    }  # these have tests of their own


@pytest.mark.parametrize("name", FUZZED)
def test_a_damaged_request_gets_the_error_of_its_protocol(compatible: TestClient, name: str) -> None:
    protocol, chance = PROTOCOLS[name], random.Random(name)
    statuses = []
    for _ in range(NUM_REQUESTS):
        request = random_request(compatible, FUZZED[name], chance)
        answer = compatible.send(request)
        shown = f"{request.method} {request.url} {request.content[:300]!r}: {answer.status_code} {answer.text[:300]}"
        assert answer.status_code < 500, shown
        if answer.status_code >= 400 and protocol.owns(request.url.path):
            check_error(answer, protocol.error_format)
        statuses.append(answer.status_code)
    assert 200 in statuses
    assert 400 in statuses
