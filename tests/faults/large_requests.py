"""Requests that are large, or make large answers, in all protocols: `loop_holds` and `fuzz_requests` send them."""

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
    form = "application/x-www-form-urlencoded"
    en_de = {"source": "en", "target": "de"}
    yield Attack("libretranslate: lines", "/translate", _json(en_de | {"q": _LINES}))
    yield Attack("libretranslate: alternatives", "/translate", _json(en_de | {"q": _LINES[:200], "alternatives": 7}))
    yield Attack("libretranslate: html", "/translate", _json(en_de | {"q": _filled("<i>a "), "format": "html"}))
    yield Attack("libretranslate: escaped form", "/translate", "source=en&target=de&q=" + "%41" * 1_000_000, form)
    yield Attack(
        "libretranslate: form of names", "/translate", "&".join(f"{'%41' * 1200}{n}=" for n in range(1000)), form
    )
    yield Attack("libretranslate: ampersands", "/translate", "&" * _BODY_BYTES, form)
    yield Attack("libretranslate: plus signs", "/translate", "q=" + "+" * 1_000_000, form)
    yield Attack(
        "libretranslate: 900 fields", "/translate", "&".join(["q=a%20house"] * 900) + "&source=en&target=de", form
    )
    parts = (
        b"".join(b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\n' for _ in range(60_000)) + b"--b--\r\n"
    )
    yield Attack("libretranslate: parts", "/translate", parts, "multipart/form-data; boundary=b")
    dashes = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + b"\r\n-" * 330_000 + b"\r\n--b--\r\n"
    yield Attack("libretranslate: boundaries", "/translate", dashes, "multipart/form-data; boundary=b")
    many_headers = b"--b\r\n" + b"a: b\r\n" * 600_000
    yield Attack("libretranslate: part headers", "/translate", many_headers, "multipart/form-data; boundary=b")
    yield Attack("detect: prose", "/detect", _json({"q": _PROSE}))
    yield Attack("detect: lines", "/detect", _json({"q": _LINES}))
    yield Attack("detect: letters", "/detect", _json({"q": "é" * _CHARACTERS}))
    deepl = {"source_lang": "EN", "target_lang": "DE"}
    yield Attack("deepl: lines", "/v2/translate", _json(deepl | {"text": _LINES}))
    names = [f"n{number}" for number in range(11_000)]
    tagged = _filled("<n5>a</n5><n6>b</n6>")
    for tags in ("ignore_tags", "splitting_tags", "non_splitting_tags"):
        yield Attack(
            f"deepl: {tags}",
            "/v2/translate",
            _json(deepl | {"text": ["<a>" + tagged + "</a>"], "tag_handling": "xml", tags: names}),
        )
    entries = "\n".join(f"{_word()} {_word()}\t{_word()}" for _ in range(9_900))
    stored = {"name": "g", "source_lang": "en", "target_lang": "de", "entries_format": "tsv"}
    yield Attack("deepl: glossary", "/v2/glossaries", _json(stored | {"entries": entries}))
    yield Attack(
        "deepl: glossary of 3.9 MB",
        "/v2/glossaries",
        _json(stored | {"entries": _filled("abcdefgh\tx\n", _BODY_BYTES)}),
    )
    yield Attack("deepl: one long entry", "/v2/glossaries", _json(stored | {"entries": "a" * _BODY_BYTES + "\tb"}))
    dictionaries = [{"source_lang": "en", "target_lang": "de", "entries": entries, "entries_format": "tsv"}]
    yield Attack(
        "deepl: multilingual glossary", "/v3/glossaries", _json({"name": "g", "dictionaries": dictionaries * 10})
    )
    yield Attack("deepl: wrong dictionaries", "/v3/glossaries", _json({"name": "g", "dictionaries": [1] * 49_000}))
    yield Attack("deeplx: prose", "/deeplx/translate", _json({"text": _PROSE, "target_lang": "DE"}))
    rpc = {"id": 1, "method": "LMT_handle_texts"}
    lang = {"source_lang_user_selected": "EN", "target_lang": "DE"}
    yield Attack(
        "deeplx: call",
        "/deeplx/jsonrpc",
        _json(rpc | {"params": {"texts": [{"text": each} for each in _LINES], "lang": lang}}),
    )
    yield Attack(
        "deeplx: wrong call", "/deeplx/jsonrpc", _json(rpc | {"params": {"texts": [1] * 49_000, "lang": lang}})
    )
    yield Attack(
        "deeplx: empty texts", "/deeplx/jsonrpc", _json(rpc | {"params": {"texts": [{}] * 24_000, "lang": lang}})
    )
    yield Attack("imme", "/imme", _json({"source_lang": "en", "target_lang": "de", "text_list": _LINES}))
    yield Attack("kiss", "/kiss", _json({"texts": _LINES, "from": "auto", "to": "de"}))
    yield Attack(
        "hcfy", "/hcfy", _json({"name": "k", "text": "\n".join(_LINES), "destination": ["德语"], "source": "英语"})
    )
    yield Attack("mtranserver", "/translate/batch", _json({"from": "en", "to": "de", "texts": _LINES, "html": True}))
    message = {"role": "user", "content": _PROSE}
    yield Attack("openai: prose", "/v1/chat/completions", _json({"model": "kvasir:en-de", "messages": [message]}))
    yield Attack(
        "openai: stream",
        "/v1/chat/completions",
        _json({"model": "kvasir:en-de", "messages": [message], "stream": True}),
    )
    yield Attack(
        "openai: wrong messages", "/v1/chat/completions", _json({"model": "kvasir:en-de", "messages": [1] * 49_000})
    )
    yield Attack(
        "openai: wrong parts", "/v1/chat/completions", _json({"messages": [{"role": "user", "content": [{}] * 24_000}]})
    )
    yield Attack("openai: many messages", "/v1/chat/completions", _json({"messages": [{"role": "a"}] * 20_000}))
    for name, begin in (
        ("pot", 'Translate into German:\n"""\n'),
        ("long", "Translate from English to German, keep "),
        ("kiss", "Translate the Source Text below to German."),
        ("quotes", '"""'),
        ("mark", "\U0001f524 "),
    ):
        prompt = begin + _filled('Translate into \n"""\n text. ', _BODY_BYTES - 1_500_000)
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": prompt}]
        yield Attack(f"openai: prompt {name}", "/v1/chat/completions", _json({"messages": messages[1:]}))
    segments = {"targetLanguage": "de", "segments": [{"id": number, "text": "Tea."} for number in range(9_000)]}
    batch = [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": json.dumps(segments)}]
    yield Attack("openai: segments", "/v1/chat/completions", _json({"messages": batch}))
    nested = [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "[" * 1_900_000}]
    yield Attack("openai: nested segments", "/v1/chat/completions", _json({"messages": nested}))
    values = [
        {"role": "system", "content": "Answer in JSON."},
        {"role": "user", "content": "[" + "1," * 1_900_000 + "1]"},
    ]
    yield Attack("openai: values in a message", "/v1/chat/completions", _json({"messages": values}))
    yield Attack("google: lines", "/language/translate/v2", _json({"q": _LINES, "source": "en", "target": "de"}))
    yield Attack("google: detect", "/language/translate/v2/detect", _json({"q": _LINES}))
    yield Attack("google: web", "/translate_a/single?client=gtx&sl=en&tl=de&dt=t", "q=" + quote(_PROSE), form)
    yield Attack(
        "google: web lines",
        "/translate_a/t?client=gtx&sl=en&tl=de",
        "&".join(f"q={quote(line)}" for line in _LINES),
        form,
    )
    yield Attack("apertium", "/apertium/translate", "langpair=en|de&q=" + quote(_PROSE), form)
    yield Attack("apertium: identify", "/identifyLang", "q=" + quote(_PROSE), form)
    yield Attack("xunity", "/translate?from=en&to=de&text=" + quote(_PROSE[:40_000]), method="GET")
    yield Attack("sugoi", "/", _json({"message": "translate batch", "batch": _LINES}))
    items = [{"Text": line} for line in _LINES]
    yield Attack("microsoft: lines", "/translate?api-version=3.0&from=en&to=de", _json(items))
    yield Attack("microsoft: wrong items", "/translate?api-version=3.0&from=en&to=de", _json([1] * 49_000))
    yield Attack("microsoft: detect", "/detect?api-version=3.0", _json(items))
    yield Attack("microsoft: break", "/breaksentence?api-version=3.0", _json([{"Text": _PROSE}]))
    yield Attack(
        "microsoft: break without blanks",
        "/breaksentence?api-version=3.0&language=en",
        _json([{"Text": "a." * 50_000}]),
    )


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
