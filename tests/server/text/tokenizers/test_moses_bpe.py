import json
import random
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from sacremoses import MosesDetokenizer

from bundle.loading import Bundle
from bundle.manifest import BPE_CODES_FILE, VOCABULARY_FILE, BundleError
from bundle.tokenizer_formats import read_bpe_codes
from server.text.tokenizers.moses_bpe import MosesBpeTokenizer
from server.text.tokenizers.registry import open_tokenizer
from tests.fakes.echo import SENTENCES, make_bundle
from tests.linear_time import assert_linear_time
from tests.server.text.tokenizers.bpe_codes import apply, file_of, learn, moses_words

_TEXTS = (
    *SENTENCES,
    "",
    "  spaces   inside and around ",
    "a tab\tand a line\nbreak",
    'Prices: 3,000.50 € ("about" $3,300) – it’s 12:30… & <b>|</b> [a]',
    "letters it never saw: ж 你好 🎉 \ue000",
    "xxxxx aaaaaaaaaa",
)
_VERSIONS = pytest.mark.parametrize("ends_join_symbols", [True, False], ids=["0.2", "0.1"])


def _bundle(folder: Path, languages: tuple[str, str] = ("en", "de"), *, ends_join_symbols: bool = True) -> Bundle:
    words = [word for text in SENTENCES for word in moses_words(text, "en")]
    merges = learn(words, 80, ends_join_symbols=ends_join_symbols)
    (folder / BPE_CODES_FILE).write_bytes(file_of(merges, ends_join_symbols=ends_join_symbols))
    letters = sorted(set("".join(words)))
    pieces = {piece for word in words for piece in apply(word, merges, ends_join_symbols=ends_join_symbols)}
    vocabulary = [
        "</s>",
        "<unk>",
        *sorted({*pieces, *letters, *(f"{each}@@" for each in letters), "&apos;", "-"}),
        "<pad>",
    ]
    bundle = make_bundle(folder, languages=languages)
    (folder / VOCABULARY_FILE).write_text(json.dumps({piece: id_ for id_, piece in enumerate(vocabulary)}))
    config = bundle.config
    tokenizer = config.tokenizer.model_copy(update={"kind": "moses_bpe"})
    shapes = config.shapes.model_copy(update={"vocab_size": len(vocabulary), "target_vocab_size": len(vocabulary)})
    special = config.special_tokens.model_copy(
        update={"padding": len(vocabulary) - 1, "decoder_start": len(vocabulary) - 1}
    )
    changed = {"tokenizer": tokenizer, "shapes": shapes, "special_tokens": special}
    return replace(bundle, config=config.model_copy(update=changed))


@_VERSIONS
def test_tokens_equal_those_of_the_published_algorithm(tmp_path: Path, *, ends_join_symbols: bool) -> None:
    bundle = _bundle(tmp_path, ends_join_symbols=ends_join_symbols)
    tokenizer = MosesBpeTokenizer(bundle)
    merges = list(read_bpe_codes(bundle.file(BPE_CODES_FILE).read_bytes(), BPE_CODES_FILE).merges)
    vocabulary = json.loads(bundle.file(VOCABULARY_FILE).read_text())
    choose = random.Random(3)
    drawn = (
        " ".join("".join(choose.choices("aehinrstlü", k=choose.randint(1, 9))) for _ in range(9)) for _ in "x" * 50
    )
    for text in (*_TEXTS, *drawn):
        words = moses_words(text, "en")
        pieces = [piece for word in words for piece in apply(word, merges, ends_join_symbols=ends_join_symbols)]
        expected = [vocabulary.get(piece, tokenizer.unknown_token) for piece in pieces]
        assert tokenizer.encode(text).tolist() == [*expected, tokenizer.end_token]
        assert tokenizer.count_tokens(text) == len(expected) + 1


def test_a_translation_is_joined_by_the_rules_of_its_language(tmp_path: Path) -> None:
    tokenizer = MosesBpeTokenizer(_bundle(tmp_path))
    for text in SENTENCES:
        tokens = tokenizer.encode_target(text)
        assert tokenizer.unknown_token not in tokens
        assert tokenizer.decode(tokens) == MosesDetokenizer("de").detokenize(moses_words(text, "de"))
    assert tokenizer.decode(tokenizer.encode_target("Guten Morgen (300 & 30).")) == "Guten Morgen (300 & 30)."


@pytest.mark.parametrize("language", ["de", "en", "fr", "cs", "fi"])
def test_a_beginning_is_never_taken_back(tmp_path: Path, language: str) -> None:
    tokenizer = MosesBpeTokenizer(_bundle(tmp_path, ("en", language)))
    for text in (*SENTENCES, "l'homme qu'il a vu : « oui » 'so' \"it\" 3 . 5 a: n"):
        tokens = tokenizer.encode_target(text)
        whole = tokenizer.decode(tokens)
        beginnings = [tokenizer.decode_beginning(tokens[:end]) for end in range(len(tokens) + 1)]
        assert all(whole.startswith(beginning) for beginning in beginnings)
        assert all(later.startswith(earlier) for earlier, later in pairwise(beginnings))
        assert language in ("cs", "fi") or len(beginnings[-1]) > len(whole) / 2


def test_czech_words_that_the_package_fails_with_are_joined(tmp_path: Path) -> None:
    tokenizer = MosesBpeTokenizer(_bundle(tmp_path, ("en", "cs")))
    numbers = {piece: id_ for id_, piece in enumerate(tokenizer.target_pieces(range(400)))}
    words = [numbers[piece] for piece in ("a@@", "&apos;", "-", "l@@", "i", "a")]
    assert tokenizer.decode(words) == "a' - li a"


def test_no_text_produces_a_control_token(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path)
    special = bundle.config.special_tokens
    tokenizer = MosesBpeTokenizer(bundle)
    for text in ("</s>", "<pad>", "<unk>", "a</s>b", "\udc80"):
        *tokens, last = tokenizer.encode(text).tolist()
        assert last == special.end_of_sequence
        assert {special.end_of_sequence, special.padding}.isdisjoint(tokens)


def test_spans_cover_the_words(tmp_path: Path) -> None:
    tokenizer = MosesBpeTokenizer(_bundle(tmp_path))
    text = "Good morning & (hello)."
    pieces = tokenizer.source_pieces(tokenizer.encode(text).tolist())
    spans = tokenizer.source_spans(text)
    assert len(spans) == len(pieces)
    assert spans[-1] == (len(text), len(text))
    covered = [text[start:end] for start, end in spans]
    assert "".join(covered) == "Goodmorning&(hello)."
    assert covered[pieces.index("(") + 1] == pieces[pieces.index("(") + 1].removesuffix("@@")
    tokens = tokenizer.encode_target(text)
    joined = tokenizer.decode(tokens)
    assert "".join(joined[start:end] for start, end in tokenizer.target_spans(tokens, joined)) == joined


def test_known_characters_include_those_that_the_rules_replace(tmp_path: Path) -> None:
    known = MosesBpeTokenizer(_bundle(tmp_path)).known_characters
    assert {*"aÜ3&", "’", " "} <= known
    assert not {"ж", "你", "🎉"} & known


@pytest.mark.parametrize("unit", [".", "a", "a."])
def test_long_runs_take_linear_time(unit: str, tmp_path: Path) -> None:
    tokenizer = MosesBpeTokenizer(_bundle(tmp_path))
    assert_linear_time(lambda length: unit * (length // len(unit)), tokenizer.count_tokens, 40_000)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"#version: 0.3\na b\n", "the version must be 0.1 or 0.2. Given: '0.3'"),
        (b"#version: 0.2\na b\na b c\n", "line 3 must be two symbols. Given: 'a b c'"),
        (b"", "line 1 must be two symbols"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_damaged_merges_are_rejected_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    bundle = _bundle(tmp_path)
    bundle.file(BPE_CODES_FILE).write_bytes(content)
    with pytest.raises(BundleError, match=message):
        open_tokenizer(bundle)


def test_without_the_package_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(BundleError, match=r"kvasir-server\[moses\]"):
        open_tokenizer(_bundle(tmp_path))
