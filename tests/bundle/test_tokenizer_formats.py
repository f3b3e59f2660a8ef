import json
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from bundle.tokenizer_formats import open_json_tokenizer

_VOCABULARY = {"<unk>": 0, "h": 1, "e": 2, "l": 3, "o": 4, "he": 5}


def _content(model: Mapping[str, object] = MappingProxyType({}), **parts: object) -> bytes:
    bpe = {"type": "BPE", "unk_token": "<unk>", "vocab": _VOCABULARY, "merges": ["h e"], **model}
    return json.dumps({"version": "1.0", "added_tokens": [], "model": bpe, **parts}).encode()


def test_a_tokenizer_is_read_without_truncation_and_padding() -> None:
    truncation = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    padding = {
        "strategy": {"Fixed": 1 << 40},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "<unk>",
    }
    tokenizer = open_json_tokenizer(_content(truncation=truncation, padding=padding))
    assert tokenizer.encode("hello").ids == [5, 3, 3, 4]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"\xff",
        b"[" * 100_000,
        _content()[:-20],
        # Panics while the file is read, while a text is encoded, and while tokens are decoded:
        _content(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        _content(normalizer={"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAAA="}),
        _content(normalizer={"type": "Prepend", "prepend": ""}, pre_tokenizer={"type": "ByteLevel"}),
        _content(normalizer={"type": "Replace", "pattern": {"Regex": "("}, "content": ""}),
        _content(pre_tokenizer={"type": "FixedLength", "length": 0}),
        _content(model={"continuing_subword_prefix": "#" * 100}),
        _content(decoder={"type": "Strip", "content": "o", "start": 10, "stop": 10}),
        # Errors of single texts:
        _content(model={"type": "WordLevel", "unk_token": "absent"}),
        _content(model={"type": "Unigram", "unk_id": None, "vocab": [["h", -1.0]]}),
    ],
)
def test_a_tokenizer_that_cannot_encode_and_decode_every_text_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        open_json_tokenizer(content)
