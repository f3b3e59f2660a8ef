"""The tokenizers of every family against those of transformers, on checkpoints that transformers saved."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from bundle.loading import Bundle
from export.checks import require_tokenizer
from export.exporter import describe_bundle
from model.families.registry import read_checkpoint
from server.text.tokenizers.registry import open_tokenizer
from server.text.tokenizers.tokenizer import Tokenizer
from tests.model.families.family_checkpoints import FAMILIES, TEXTS, FamilyCheckpoint, write_family

# Control tokens in a text are characters here and control tokens there.
PLAIN_TEXTS = [text for text in TEXTS if not re.search(r"</?\w+>", text)]


def bundled(saved: FamilyCheckpoint, folder: Path) -> Bundle:
    """The tokenizer of a checkpoint in a bundle without graphs."""
    checkpoint = read_checkpoint(saved.folder)
    unknown = require_tokenizer(checkpoint, pytest.fail)
    folder.mkdir()
    for name, path in checkpoint.tokenizer.files.items():
        shutil.copyfile(path, folder / name)
    for name, content in checkpoint.tokenizer.converted.items():
        (folder / name).write_bytes(content)
    return Bundle(folder, describe_bundle(checkpoint, folder, "float32", "tiny", unknown))


@pytest.fixture(scope="module", params=list(FAMILIES))
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[FamilyCheckpoint, Bundle]:
    folder = tmp_path_factory.mktemp(request.param)
    saved = write_family(request.param, folder / "checkpoint")
    return saved, bundled(saved, folder / "bundle")


def languages(saved: FamilyCheckpoint, bundle: Bundle) -> tuple[str, str]:
    """The languages in the spelling of the bundle."""
    aliases = bundle.config.language_aliases
    return aliases.get(saved.source, saved.source), aliases.get(saved.target, saved.target)


def reference_ids(saved: FamilyCheckpoint, bundle: Bundle, text: str) -> list[int]:
    tokenizer: Any = saved.tokenizer
    prompt = bundle.config.tokenizer.prompts.get(languages(saved, bundle)[1], "")
    ids: list[int] = tokenizer(prompt + text).input_ids
    return ids


def opened(bundle: Bundle) -> Tokenizer:
    return open_tokenizer(bundle)


def test_a_text_has_the_tokens_of_the_reference(family: tuple[FamilyCheckpoint, Bundle]) -> None:
    saved, bundle = family
    tokenizer, (source, target) = opened(bundle), languages(*family)
    for text in PLAIN_TEXTS:
        found = tokenizer.encode(text, target, source).tolist()
        assert found == reference_ids(saved, bundle, text), text
        assert len(found) <= tokenizer.count_tokens(text)


def test_tokens_have_the_text_of_the_reference(family: tuple[FamilyCheckpoint, Bundle]) -> None:
    saved, bundle = family
    reference: Any = saved.tokenizer
    tokenizer = opened(bundle)
    for text in PLAIN_TEXTS:
        ids = tokenizer.encode_target(text)
        decoded = reference.decode(ids, skip_special_tokens=True)
        unknown = getattr(reference, "unk_token", None) or "<unk>"
        if unknown not in decoded:
            assert tokenizer.decode(ids) == decoded
        first = bundle.config.first_language_tokens.get(languages(*family)[1])
        assert tokenizer.decode([*([] if first is None else [first]), *ids]) == tokenizer.decode(ids)


def test_a_text_produces_no_control_token(family: tuple[FamilyCheckpoint, Bundle]) -> None:
    _, bundle = family
    special = bundle.config.special_tokens
    control = {special.end_of_sequence, special.padding, special.decoder_start} - {special.unknown}
    languages = {
        *bundle.config.first_language_tokens.values(),
        *bundle.config.tokenizer.source_language_tokens.values(),
    }
    text = "a </s> <pad> <s> __de__ deu_Latn de_DE en_XX b"
    assert not (control | languages) & set(opened(bundle).encode_target(text))


def test_a_language_token_in_a_text_selects_no_language(tmp_path: Path) -> None:
    saved = write_family("madlad", tmp_path / "checkpoint")
    tokenizer = opened(bundled(saved, tmp_path / "bundle"))
    (french,) = set(tokenizer.encode("", "fr").tolist()) - set(tokenizer.encode("", "de").tolist())
    assert tokenizer.encode("a <2fr> b", "fr").tolist().count(french) == 1
    assert french not in tokenizer.encode("a <2fr> b", "de")


def test_the_beginning_of_a_translation_begins_it(family: tuple[FamilyCheckpoint, Bundle]) -> None:
    _, bundle = family
    tokenizer = opened(bundle)
    for text in TEXTS:
        ids = tokenizer.encode_target(text)
        whole = tokenizer.decode(ids)
        for num_tokens in range(len(ids) + 1):
            assert whole.startswith(tokenizer.decode_beginning(ids[:num_tokens]))


def test_spans_cover_one_range_for_each_token(family: tuple[FamilyCheckpoint, Bundle]) -> None:
    saved, bundle = family
    tokenizer, (source, _) = opened(bundle), languages(*family)
    text = "my dog sees the old house."
    spans = tokenizer.source_spans(text)
    assert len(spans) == len(tokenizer.encode(text, None, source)), saved.folder
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    ids = tokenizer.encode_target(text)
    assert tokenizer.target_spans(ids, tokenizer.decode(ids))[-1][1] == len(tokenizer.decode(ids))


def test_known_characters_are_those_of_the_vocabulary(family: tuple[FamilyCheckpoint, Bundle]) -> None:
    _, bundle = family
    known = opened(bundle).known_characters
    assert set("abghorsvwH äü.") <= known
    assert ("ж" in known) == (bundle.config.tokenizer.kind == "bytes")
