import json
import random
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from transformers import MarianTokenizer as ReferenceTokenizer

from bundle.loading import Bundle
from bundle.manifest import (
    SOURCE_SENTENCEPIECE_FILE,
    TARGET_SENTENCEPIECE_FILE,
    TARGET_VOCABULARY_FILE,
    VOCABULARY_FILE,
)
from server.text.tokenizers.marian import MarianTokenizer
from tests.fakes.echo import SENTENCES, make_bundle

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_TEXTS = (
    *SENTENCES,
    "",
    "  spaces   inside and around ",
    "a tab\tand a line\nbreak",
    "Prices: 3,000.50 € (about $3,300) – 12:30–13:45 o’clock…",
    "letters it never saw: ж 你好 🎉 \N{COMBINING ACUTE ACCENT}",
    "ﬁne print ① ½ Å",
)


def _reference(bundle: Bundle) -> ReferenceTokenizer:
    source, target = (bundle.file(name) for name in (SOURCE_SENTENCEPIECE_FILE, TARGET_SENTENCEPIECE_FILE))
    return ReferenceTokenizer(
        source_spm=str(source),
        target_spm=str(target if target.is_file() else source),
        vocab=str(bundle.file(VOCABULARY_FILE)),
    )


@pytest.mark.parametrize("text", _TEXTS)
def test_tokens_equal_those_of_the_family(echo_bundle: Bundle, text: str) -> None:
    ours, reference = MarianTokenizer(echo_bundle), _reference(echo_bundle)
    expected = reference(text).input_ids
    assert ours.encode(text).tolist() == expected
    assert ours.decode(expected) == reference.decode(expected, skip_special_tokens=True)


@pytest.mark.parametrize("text", _TEXTS)
def test_tokens_of_the_default_model_equal_those_of_the_family(default_bundle: Bundle, text: str) -> None:
    ours, reference = MarianTokenizer(default_bundle), _reference(default_bundle)
    expected = reference(text).input_ids
    assert ours.encode(text).tolist() == expected
    assert ours.decode(expected) == reference.decode(expected, skip_special_tokens=True)


def test_ordinary_text_comes_back_from_its_tokens(echo_bundle: Bundle) -> None:
    tokenizer = MarianTokenizer(echo_bundle)
    assert [tokenizer.decode(tokenizer.encode(text).tolist()) for text in SENTENCES] == list(SENTENCES)


@pytest.mark.parametrize("text", ["</s>", "<pad>", "<unk>", "a</s>b", "<s>", ">>de<<"])
def test_control_tokens_written_in_a_text_are_plain_text(echo_bundle: Bundle, text: str) -> None:
    *tokens, last = MarianTokenizer(echo_bundle).encode(text).tolist()
    special = echo_bundle.config.special_tokens
    assert last == special.end_of_sequence
    assert special.end_of_sequence not in tokens
    assert special.padding not in tokens
    assert tokens


def test_a_control_token_of_unknown_letters_is_the_unknown_token(tmp_path: Path) -> None:
    # The source model reads a run of unknown letters as one piece, which may be an entry of the vocabulary.
    bundle = make_bundle(tmp_path, extra_pieces=["ж", ">>ж<<"])
    vocabulary = json.loads(bundle.file(VOCABULARY_FILE).read_text(encoding="utf-8"))
    special = bundle.config.special_tokens.model_copy(update={"padding": vocabulary["ж"]})
    tokenizer = MarianTokenizer(replace(bundle, config=bundle.config.model_copy(update={"special_tokens": special})))
    assert vocabulary["ж"] not in tokenizer.encode("ж").tolist()
    assert vocabulary[">>ж<<"] not in tokenizer.encode(">>ж<<").tolist()


def test_a_language_token_comes_from_the_request_and_never_from_the_text(tmp_path: Path) -> None:
    # OPUS-MT names languages with three letters, or with regions: clients do not.
    tokens = {"de": ">>deu<<", "pt-BR": ">>pt_br<<"}
    bundle = make_bundle(tmp_path, extra_pieces=list(tokens.values()))
    config = bundle.config.model_copy(update={"target_languages": tuple(tokens), "target_language_tokens": tokens})
    bundle = replace(bundle, config=config)
    tokenizer, reference = MarianTokenizer(bundle), _reference(bundle)
    for language, token in tokens.items():
        expected = reference(f"{token} Good morning.").input_ids
        assert tokenizer.encode("Good morning.", language).tolist() == expected
        assert expected[0] == reference.encoder[token]
        assert expected[0] not in tokenizer.encode(f"{token} Good morning.").tolist()
        assert tokenizer.count_tokens("Good morning.") == len(expected) == len(tokenizer.source_spans("Good morning."))
    assert len(tokenizer.encode("Good morning.", "fr")) == len(tokenizer.encode("Good morning.")) == len(expected) - 1


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00", "a\x00b", "\u202e\u200f", "🎉" * 50, "\U0010ffff"])
def test_any_string_can_be_encoded(echo_bundle: Bundle, text: str) -> None:
    tokenizer = MarianTokenizer(echo_bundle)
    tokens = tokenizer.encode(text)
    assert len(tokens) == tokenizer.count_tokens(text)
    assert tokenizer.decode(tokens.tolist()).encode("utf-8") is not None


def test_lone_surrogates_are_read_as_replacement_characters(echo_bundle: Bundle) -> None:
    tokenizer = MarianTokenizer(echo_bundle)
    assert tokenizer.encode("a\ud800b").tolist() == tokenizer.encode("a\N{REPLACEMENT CHARACTER}b").tolist()


def test_a_vocabulary_of_its_own_numbers_the_target_side(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    vocabulary = json.loads(bundle.file(VOCABULARY_FILE).read_text(encoding="utf-8"))
    backwards = dict(zip(vocabulary, reversed(vocabulary.values()), strict=True))
    bundle.file(TARGET_VOCABULARY_FILE).write_text(json.dumps(backwards), encoding="utf-8")
    tokenizer = MarianTokenizer(bundle)
    pieces = {id_: piece for piece, id_ in vocabulary.items()}
    source = tokenizer.encode("the lazy dog").tolist()[:-1]
    assert tokenizer.decode([backwards[pieces[id_]] for id_ in source]) == "the lazy dog"


def test_tokens_outside_the_vocabulary_are_skipped(echo_bundle: Bundle) -> None:
    tokenizer = MarianTokenizer(echo_bundle)
    tokens = tokenizer.encode("the lazy dog").tolist()
    assert tokenizer.decode([10_000, *tokens, echo_bundle.config.special_tokens.padding]) == "the lazy dog"


def test_tokens_joined_here_are_those_that_sentencepiece_joins(default_bundle: Bundle) -> None:
    tokenizer = MarianTokenizer(default_bundle)
    numbers = random.Random(7)
    for _ in range(300):
        tokens = [numbers.randrange(default_bundle.config.shapes.target_vocab_size) for _ in range(20)]
        text = tokenizer._target.decode_pieces([tokenizer._target_pieces.get(each, "") for each in tokens])
        assert tokenizer.decode(tokens) == text.replace("▁", " ").strip()


def _beginnings(tokenizer: MarianTokenizer, tokens: list[int]) -> list[str]:
    return [tokenizer.decode_beginning(tokens[:end]) for end in range(len(tokens) + 1)]


@pytest.mark.parametrize("text", _TEXTS)
def test_a_translation_begins_with_the_text_of_its_first_tokens(default_bundle: Bundle, text: str) -> None:
    tokenizer = MarianTokenizer(default_bundle)
    tokens = tokenizer.encode(text).tolist()[:-1]
    beginnings = _beginnings(tokenizer, tokens)
    whole = tokenizer.decode(tokens)
    assert beginnings[-1] == whole
    assert all(longer.startswith(shorter) for shorter, longer in pairwise(beginnings))
    assert all(_REPLACEMENT not in beginning for beginning in beginnings)


def test_a_character_of_several_bytes_comes_whole_and_only_then(default_bundle: Bundle) -> None:
    tokenizer = MarianTokenizer(default_bundle)
    vocabulary = json.loads(default_bundle.file(VOCABULARY_FILE).read_text(encoding="utf-8"))
    tokens = [vocabulary[f"<0x{byte:02X}>"] for byte in "é你🎉".encode()]
    assert _beginnings(tokenizer, tokens) == ["", "", "é", "é", "é", "é你", "é你", "é你", "é你", "é你🎉"]
    torn = [vocabulary["<0xF0>"], vocabulary["<0x9F>"], vocabulary["▁I"]]
    assert _beginnings(tokenizer, torn)[:3] == ["", "", ""]
    assert tokenizer.decode(torn).startswith(_REPLACEMENT)


@pytest.mark.parametrize("seed", range(20))
def test_any_tokens_whatever_begin_with_their_beginnings(default_bundle: Bundle, seed: int) -> None:
    tokenizer = MarianTokenizer(default_bundle)
    vocabulary = json.loads(default_bundle.file(VOCABULARY_FILE).read_text(encoding="utf-8"))
    drawn = random.Random(seed)
    in_bytes = [vocabulary[piece] for piece in vocabulary if re.fullmatch("<0x..>", piece)]
    spaces = [vocabulary["▁"], vocabulary["."]]
    sets = [list(range(len(vocabulary))), in_bytes, spaces]
    tokens = [drawn.choice(drawn.choice(sets)) for _ in range(60)]
    beginnings = _beginnings(tokenizer, tokens)
    assert all(longer.startswith(shorter) for shorter, longer in pairwise([*beginnings, tokenizer.decode(tokens)]))
