"""Requests that are large, or make large answers, in all protocols; `loop_holds` sends them."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from tests.faults.documents import word

_SENTENCE = "The old house has 12 windows, {name}, and we want to buy it for 3,500 euros. "
_CHARACTERS = 100_000
_BODY_BYTES = 3_900_000


@dataclass(frozen=True)
class Attack:
    """One request."""

    name: str
    path: str
    content: bytes | str = b""
    content_type: str = "application/json"
    method: str = "POST"


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _filled(piece: str, num_characters: int = _CHARACTERS) -> str:
    return piece * (num_characters // len(piece))


_PROSE = _filled(_SENTENCE)
_LINES = [_SENTENCE.strip()] * 1000
_WORDS = random.Random(1)


def _word() -> str:
    return "".join(_WORDS.choices("abcdefghijklmnopqrstuvwxyz", k=8))


_TERMS = {f"{_word()} {_word()}": _word() for _ in range(9_900)}
_LONG_TERMS = {_word() * 24: _word() for _ in range(9_900)}


def native_attacks() -> Iterator[Attack]:
    """Yield requests with every option that makes a request or a response large."""
    values: dict[str, Mapping[str, object]] = {
        "prose": {"text": _PROSE},
        "1000 texts": {"text": _LINES},
        "1000 texts, auto": {"text": _LINES, "source": "auto", "target": "de"},
        "1000 one-letter texts": {"text": ["a"] * 1000},
        "50,000 lines": {"text": "a\n" * 50_000},
        "25,000 different lines": {"text": "\n".join(_word()[:3] for _ in range(25_000))},
        "50,000 line feeds": {"text": "\n" * 100_000},
        "items": {"text": _filled("{a} 12 <b> ")},
        "digits": {"text": "1" * _CHARACTERS},
        "one word": {"text": "a" * _CHARACTERS},
        "emoji": {"text": _filled("\U0001f1e9\U0001f1ea")},
        "lone surrogates": {"text": "\ud800" * _CHARACTERS},
        "html": {"text": _filled("<p>a <b>house</b> "), "format": "html"},
        "html without words": {"text": _filled("<br>"), "format": "html"},
        "xml": {"text": "<a>" + _filled("<p>house</p>") + "</a>", "format": "xml"},
        "attention": {"text": [_SENTENCE * 4] * 300, "return_attention": True},
        "attention, one text": {"text": _PROSE[:50_000], "return_attention": True},
        "alternatives": {"text": _PROSE, "num_token_alternatives": 8, "return_token_scores": True},
        "token scores": {"text": _PROSE, "return_token_scores": True},
        "alignments": {"text": _PROSE, "return_alignments": True},
        "all details of lines": {
            "text": _LINES,
            "return_token_scores": True,
            "return_alignments": True,
            "return_scores": True,
        },
        "hypotheses": {"text": _LINES, "beam_size": 8, "num_hypotheses": 8, "return_scores": True},
        "stream": {"text": _PROSE, "stream": True},
        "stream of lines": {"text": _LINES, "stream": True},
        "stream of html": {"text": _filled("<p>a <b>house</b> "), "format": "html", "stream": True},
        "stream with details": {"text": _PROSE, "stream": True, "return_token_scores": True, "return_attention": True},
        "glossary": {"text": "A house.", "glossary": _TERMS},
        "glossary of long terms": {"text": "A house.", "glossary": _LONG_TERMS},
        "glossary and prose": {"text": _PROSE, "glossary": _TERMS},
        "glossary of alternatives": {"text": "A house.", "glossary": {key: ["a", "b"] for key in _TERMS}},
        "glossary of one letter each": {"text": _PROSE, "glossary": {chr(97 + n): "b" for n in range(26)}},
        "required phrases": {"text": _LINES, "required_phrases": [_word() for _ in range(64)]},
        "many required phrases": {"text": "a", "required_phrases": [_word() for _ in range(1999)]},
        "suppressed phrases": {"text": _LINES, "suppress_phrases": [_word() for _ in range(64)]},
        "suppressed tokens": {"text": _LINES, "suppress_tokens": list(range(1000))},
        "prefix": {"text": "a", "target_prefix": "word " * 780_000},
        "long language": {"text": "a", "source": "x" * _BODY_BYTES},
        "long text": {"text": "a" * _BODY_BYTES},
        "long text of escapes": {"text": "\x01" * (_BODY_BYTES // 6)},
        "long unknown field": {"text": "a", "x" * _BODY_BYTES: 1},
        "unknown fields": {"text": "a"} | {f"f{number}": 1 for number in range(25_000)},
        "one list": {"text": [""] * 49_000},
        "wrong lists": {"text": "a", "required_phrases": [[1] * 1999] * 20},
        "wrong glossary": {"text": "a", "glossary": {f"f{number}": [1] for number in range(20_000)}},
        "many numbers": {"text": "a", "suppress_tokens": [0.1234567890123456789] * 49_000},
        "long numbers": {"text": "a", "suppress_tokens": [10**4200] * 900},
    }
    for name, fields in values.items():
        yield Attack(f"translate: {name}", "/v1/translate", _json({"source": "en", "target": "de"} | dict(fields)))
    raw = {
        "escapes": b'{"text": "' + b"\\u00e9" * 640_000 + b'"}',
        "surrogate escapes": b'{"text": "' + b"\\ud800" * 640_000 + b'"}',
        "nested lists": b'{"text": ' + b"[" * 49_000 + b"]" * 49_000 + b"}",
        "nested objects": b'{"a":' * 49_000 + b"1" + b"}" * 49_000,
        "blanks": b" " * _BODY_BYTES + b"{}",
        "digits": b'{"text": ' + b"1" * _BODY_BYTES + b"}",
        "float": b'{"text": 0.' + b"1" * _BODY_BYTES + b"}",
        "not UTF-8": b'{"text": "' + b"\xff" * _BODY_BYTES + b'"}',
        "UTF-16": ('{"text": "' + "a" * 1_900_000 + '"}').encode("utf-16"),
        "equal names": b"{" + b'"text": "a",' * 49_000 + b'"text": "b"}',
    }
    for name, body in raw.items():
        for path in ("/v1/translate", "/translate"):
            yield Attack(f"{path}: {name}", path, body)
    pairs = {"text": [_SENTENCE.strip()] * 600, "translation": [_SENTENCE.strip()] * 600}
    for name, options in (
        ("", {}),
        (" with attention", {"return_attention": True}),
        (" with alternatives", {"num_token_alternatives": 8, "return_token_scores": True}),
        (" with alignments", {"return_alignments": True}),
    ):
        yield Attack(f"score{name}", "/v1/score", _json(pairs | options))
    short = {"text": ["a"] * 1000, "translation": ["b"] * 1000}
    yield Attack("score of letters", "/v1/score", _json(short | {"return_token_scores": True}))
    yield Attack("score of one long text", "/v1/score", _json({"text": "a " * 25_000, "translation": "b " * 25_000}))


def compatible_attacks() -> Iterator[Attack]:
    """Yield large requests of the other protocols."""
    en_de, deepl = {"source": "en", "target": "de"}, {"source_lang": "EN", "target_lang": "DE"}
    names, tagged = [f"n{number}" for number in range(11_000)], _filled("<n5>a</n5><n6>b</n6>")
    entries = "\n".join(f"{_word()} {_word()}\t{_word()}" for _ in range(9_900))
    stored = {"name": "g", "source_lang": "en", "target_lang": "de", "entries_format": "tsv"}
    items = [{"Text": line} for line in _LINES]
    nested = [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "[" * 1_900_000}]
    values: list[tuple[str, object]] = [
        ("/translate", en_de | {"q": _LINES}),
        ("/translate", en_de | {"q": _LINES[:200], "alternatives": 7}),
        ("/translate", en_de | {"q": _filled("<i>a "), "format": "html"}),
        ("/detect", {"q": _PROSE}),
        ("/detect", {"q": "é" * _CHARACTERS}),
        ("/v2/translate", deepl | {"text": _LINES}),
        *(
            ("/v2/translate", deepl | {"text": [f"<a>{tagged}</a>"], "tag_handling": "xml", tags: names})
            for tags in ("ignore_tags", "splitting_tags", "non_splitting_tags")
        ),
        ("/v2/glossaries", stored | {"entries": entries}),
        ("/v2/glossaries", stored | {"entries": _filled("abcdefgh\tx\n", _BODY_BYTES)}),
        ("/v2/glossaries", stored | {"entries": "a" * _BODY_BYTES + "\tb"}),
        ("/v3/glossaries", {"name": "g", "dictionaries": [{**stored, "entries": entries}] * 10}),
        ("/v3/glossaries", {"name": "g", "dictionaries": [1] * 49_000}),
        ("/deeplx/translate", {"text": _PROSE, "target_lang": "DE"}),
        ("/deeplx/jsonrpc", {"id": 1, "method": "LMT_handle_texts", "params": {"texts": [{}] * 24_000, "lang": {}}}),
        ("/imme", {"source_lang": "en", "target_lang": "de", "text_list": _LINES}),
        ("/hcfy", {"name": "k", "text": "\n".join(_LINES), "destination": ["德语"], "source": "英语"}),
        ("/translate/batch", {"from": "en", "to": "de", "texts": _LINES, "html": True}),
        ("/language/translate/v2", en_de | {"q": _LINES}),
        ("/", {"message": "translate batch", "batch": _LINES}),
        ("/translate?api-version=3.0&from=en&to=de", items),
        ("/translate?api-version=3.0&from=en&to=de", [1] * 49_000),
        ("/breaksentence?api-version=3.0&language=en", [{"Text": "a." * 50_000}]),
        ("/v1/chat/completions", {"messages": [1] * 49_000}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{}] * 24_000}]}),
        ("/v1/chat/completions", {"messages": nested}),
        *(
            ("/v1/chat/completions", {"model": "kvasir:en-de", "messages": [{"role": "user", "content": prompt}]})
            for prompt in (
                _PROSE,
                *(
                    begin + _filled('Translate into \n"""\n text. ', _BODY_BYTES - 1_500_000)
                    for begin in ('Translate into German:\n"""\n', "Translate from English to German, keep ", '"""')
                ),
            )
        ),
    ]
    for number, (path, value) in enumerate(values):
        yield Attack(f"{path} {number}", path, _json(value))
    form = "application/x-www-form-urlencoded"
    for name, path, fields in (
        ("escaped letters", "/translate", "source=en&target=de&q=" + "%41" * 1_000_000),
        ("names", "/translate", "&".join(f"{'%41' * 1200}{n}=" for n in range(1000))),
        ("ampersands", "/translate", "&" * _BODY_BYTES),
        ("fields", "/translate", "&".join(["q=a%20house"] * 900) + "&source=en&target=de"),
        ("web", "/translate_a/single?client=gtx&sl=en&tl=de&dt=t", "q=" + quote(_PROSE)),
        ("prose", "/apertium/translate", "langpair=en|de&q=" + quote(_PROSE)),
    ):
        yield Attack(f"form of {name}", path, fields, form)
    head = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\n'
    for name, body in (
        ("parts", (head + b"a\r\n") * 60_000 + b"--b--\r\n"),
        ("boundaries", head + b"\r\n-" * 330_000 + b"\r\n--b--\r\n"),
        ("headers", b"--b\r\n" + b"a: b\r\n" * 600_000),
    ):
        yield Attack(f"multipart form of {name}", "/translate", body, "multipart/form-data; boundary=b")


def other_attacks() -> Iterator[Attack]:
    """Yield requests for pages and documents."""
    for path in (
        "/openapi.json",
        "/docs",
        "/metrics",
        "/",
        "/v1/models",
        "/languages",
        "/v1/languages",
        "/v2/languages",
        "/microsoft/languages",
        "/listPairs",
        "/v2/glossaries",
        "/v3/glossaries",
    ):
        yield Attack(f"GET {path}", path, method="GET")
    yield Attack("long query", "/languages?" + "a=b&" * 14_000, method="GET")
    yield Attack("long path", "/v1/documents/" + "a" * 60_000, method="GET")
    files = {
        "a.txt": "a\n" * 200_000,
        "long.txt": _filled("a", 4_000_000),
        "a.srt": "1\n00:00:01,000 --> 00:00:02,000\na\n\n" * 40_000,
        "a.html": _filled("<p>a <b>b</b>", 2_000_000),
        "a.csv": "a,b\n" * 100_000,
        "a.md": _filled("# a\n\nb *c*\n\n", 400_000),
        "a.json": json.dumps({f"k{n}": "a house" for n in range(40_000)}),
        "a.docx": word("<w:p><w:r><w:t>a house</w:t></w:r></w:p>" * 40_000),
    }
    for name, content in files.items():
        data = content if isinstance(content, bytes) else str(content).encode()
        head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        body = head + data + b"\r\n--b--\r\n"
        yield Attack(f"document {name}", "/v1/documents", body, "multipart/form-data; boundary=b")
