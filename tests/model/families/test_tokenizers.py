"""Tokens around a source, which depend on the class of a checkpoint's tokenizer."""

import json
from pathlib import Path
from typing import Any

import pytest
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]
from transformers import NllbTokenizer, RobertaTokenizer

from bundle.loading import Bundle
from export.checks import require_tokenizer
from export.exporter import describe_bundle
from model.checkpoints.checkpoint import CheckpointError
from model.families.registry import read_checkpoint
from model.families.tokenizers import open_sentencepiece
from server.text.tokenizers.registry import open_tokenizer
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.engine_requests import first_token
from tests.model.families.family_checkpoints import SENTENCES, TEXTS, FamilyCheckpoint, write_family

TEXT = SENTENCES[0]
_PIECES = (("<unk>", 2), ("<s>", 3), ("▁", 1), ("river", 1))


def _changed(saved: FamilyCheckpoint, **settings: object) -> Path:
    path = saved.folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | settings), "utf-8")
    return saved.folder


def _open(folder: Path, bundle: Path) -> tuple[Bundle, Tokenizer]:
    """Return a bundle without graphs, and its tokenizer."""
    checkpoint = read_checkpoint(folder)
    bundle.mkdir()
    for name, path in checkpoint.tokenizer.files.items():
        (bundle / name).write_bytes(path.read_bytes())
    for name, content in checkpoint.tokenizer.converted.items():
        (bundle / name).write_bytes(content)
    unknown = require_tokenizer(checkpoint, pytest.fail)
    opened = Bundle(bundle, describe_bundle(checkpoint, bundle, "float32", "tiny", unknown))
    return opened, open_tokenizer(opened)


@pytest.mark.parametrize("sign", ["class", "file"])
def test_small100_has_the_target_before_the_text_and_forces_no_token(sign: str, tmp_path: Path) -> None:
    saved = write_family("m2m100", tmp_path / "checkpoint")
    if sign == "class":
        _changed(saved, tokenizer_class="SMALL100Tokenizer")
    else:
        (saved.folder / "tokenization_small100.py").write_text("raise SystemExit", "utf-8")
    bundle, tokenizer = _open(saved.folder, tmp_path / "bundle")
    reference: Any = saved.tokenizer
    for language in ("de", "zu"):
        reference.src_lang = language  # M2M100's own tokenizer has the source language there
        assert tokenizer.encode(TEXT, language, "en").tolist() == reference(TEXT).input_ids
        assert tokenizer.encode(TEXT, language, "fr").tolist() == reference(TEXT).input_ids
        assert first_token(bundle.config, language) is None
    assert tokenizer.count_tokens(TEXT) == len(reference(TEXT).input_ids)


@pytest.mark.parametrize("is_legacy", [False, True, None])
def test_nllb_with_legacy_behaviour_has_the_source_language_last(is_legacy: bool | None, tmp_path: Path) -> None:
    saved = write_family("nllb", tmp_path / "checkpoint")
    folder = _changed(saved, legacy_behaviour=is_legacy)
    reference = NllbTokenizer.from_pretrained(folder, src_lang="fra_Latn")
    bundle, tokenizer = _open(folder, tmp_path / "bundle")
    assert tokenizer.encode(TEXT, "de", "fr").tolist() == reference(TEXT).input_ids
    assert first_token(bundle.config, "de") == reference.convert_tokens_to_ids("deu_Latn")


def test_a_byte_level_vocabulary_in_two_files_encodes_like_its_tokenizer(tmp_path: Path) -> None:
    saved = write_family("bart", tmp_path / "checkpoint")
    model = json.loads((saved.folder / "tokenizer.json").read_text("utf-8"))["model"]
    (saved.folder / "tokenizer.json").unlink()
    (saved.folder / "vocab.json").write_text(json.dumps(model["vocab"]), "utf-8")
    lines = ["#version: 0.2", *(" ".join(merge) for merge in model["merges"])]
    (saved.folder / "merges.txt").write_text("\n".join(lines) + "\n", "utf-8")
    _, tokenizer = _open(saved.folder, tmp_path / "bundle")
    reference: Any = saved.tokenizer
    for text in (text for text in TEXTS if "<" not in text):  # special tokens in a text are text here
        assert tokenizer.encode(text).tolist() == reference(text).input_ids, text
    (saved.folder / "merges.txt").write_text("no merge at all\n", "utf-8")
    with pytest.raises(CheckpointError, match=r"merges\.txt is damaged"):
        read_checkpoint(saved.folder)


def test_a_t5_with_the_tokenizer_of_roberta_has_its_tokens_around_a_text(tmp_path: Path) -> None:
    folder = _changed(write_family("t5", tmp_path / "checkpoint"), tokenizer_class="RobertaTokenizer")
    other = write_family("bart", tmp_path / "bart")
    content = (other.folder / "tokenizer.json").read_bytes()
    (folder / "tokenizer.json").write_bytes(content)
    checkpoint = read_checkpoint(folder)
    reference = RobertaTokenizer.from_pretrained(other.folder)
    template = checkpoint.tokenizer.template
    assert [*template.before, *(template.after or ())] == reference("").input_ids
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r'`tokenizer_class` must be one of T5Tokenizer, .*Given: "RobertaTok'):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("processor", "before", "after"),
    [
        (None, (), ()),
        ({"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}, (1,), (2,)),
        (
            {
                "type": "Sequence",
                "processors": [
                    {"type": "ByteLevel"},
                    {
                        "type": "TemplateProcessing",
                        "single": [
                            {"SpecialToken": {"id": "a", "type_id": 0}},
                            {"Sequence": {"id": "A", "type_id": 0}},
                            {"SpecialToken": {"id": "b", "type_id": 0}},
                        ],
                        "special_tokens": {"a": {"id": "a", "ids": [7, 8]}, "b": {"id": "b", "ids": [9]}},
                    },
                ],
            },
            (7, 8),
            (9,),
        ),
        ({"type": "TemplateProcessing", "single": [{"SpecialToken": {}}], "special_tokens": {}}, None, None),
    ],
)
def test_the_tokens_around_a_text_are_those_of_the_post_processor(
    processor: object, before: tuple[int, ...] | None, after: tuple[int, ...], tmp_path: Path
) -> None:
    folder = _changed(write_family("bart", tmp_path / "checkpoint"), tokenizer_class="PreTrainedTokenizerFast")
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"post_processor": processor}), "utf-8")
    if before is None:
        with pytest.raises(CheckpointError, match=r"tokenizer.json: `post_processor` is damaged"):
            read_checkpoint(folder)
        return
    template = read_checkpoint(folder).tokenizer.template
    assert (template.before, template.after) == (before, after)


def _model() -> ModelProto:
    model = ModelProto()
    for index, (piece, kind) in enumerate(_PIECES):
        model.pieces.add(piece=piece, type=kind, score=-index)
    return model


def _rules(trie: bytes) -> bytes:
    """Return a model whose rules for characters are a trie that leads out of itself, and a text."""
    model = _model()
    model.normalizer_spec.precompiled_charsmap = len(trie).to_bytes(4, "little") + trie + b"text\0"
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize(
    "content",
    [
        b"garbage",
        b"\x0a\xff\xff\xff\xff\x07river",  # a piece of 2 GB
        _model().SerializeToString()[:-3],
        _model().SerializeToString().replace(b"river", b"\xffiver"),
        ModelProto().SerializeToString() + b"\x12\x00",
        _rules(b"\xff" * 1024),  # ended the process before SentencePiece 0.2.2
        _rules(b"\xff" * 1000),
    ],
    ids=["text", "huge", "cut", "not-utf8", "empty", "trie", "size"],
)
def test_a_damaged_model_is_an_error_that_names_the_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "source.spm"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"source\.spm is not a SentencePiece model, or damaged; .*git lfs pull"):
        open_sentencepiece(path)
