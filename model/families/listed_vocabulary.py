"""Tokenizer files next to a model with vocabularies as lists of tokens: CTranslate2, OpenNMT-py and fairseq."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from model.checkpoints.checkpoint import CheckpointError, SourceTemplate, TokenizerFiles
from model.checkpoints.hugging_face_files import read_settings

_PAIR = ("source.spm", "target.spm")
_SINGLE = ("sentencepiece.model", "sentencepiece.bpe.model", "spiece.model", "spm.model", "source.spm")
_JSON = "tokenizer.json"
_BPE_CODES = "bpe.model"
_VOCABULARY, _TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
_UNKNOWN = "<unk>"
_OPENNMT_PADDING = "<blank>"
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class SpecialNames:
    """Special tokens, and the tokens that the engine adds to a source. A start of None is chosen by each request."""

    unknown: str
    beginning: str
    end: str
    decoder_start: str | None
    adds_beginning: bool
    adds_end: bool


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """Tokens of source and target in the order of their ids."""

    source: list[str]
    target: list[str]


def read_tokenizer(
    folder: Path, vocabularies: Vocabularies, special: SpecialNames, *, begins_source: bool
) -> TokenizerFiles:
    """Return the tokenizer: two SentencePiece models, tokenizer.json, one SentencePiece model, or BPE.

    Models converted from transformers end a source with the end-of-sequence token, although their settings do not name
    it: its tokenizers add it. `begins_source` is the same for the beginning.
    """
    numbers = {token: index for index, token in enumerate(vocabularies.source)}
    is_opennmt = _OPENNMT_PADDING in numbers
    adds_end = special.adds_end or not is_opennmt
    before = (special.beginning,) if special.adds_beginning or begins_source else ()
    after = (special.end,) if adds_end else ()
    if missing := [token for token in (*before, *after) if token not in numbers]:
        raise CheckpointError(
            f"the vocabulary of {folder.name} has no {missing[0]!r}, which its settings add to every source"
        )
    template = SourceTemplate(tuple(map(numbers.__getitem__, before)), tuple(map(numbers.__getitem__, after)))
    converted = {_VOCABULARY: _numbered(vocabularies.source, special)}
    if vocabularies.target != vocabularies.source:
        converted[_TARGET_VOCABULARY] = _numbered(vocabularies.target, special)
    if all((folder / name).is_file() for name in _PAIR):
        return TokenizerFiles("marian", {name: folder / name for name in _PAIR}, template, converted)
    if (folder / _JSON).is_file():
        _require_equal_numbers(folder / _JSON, numbers)
        return TokenizerFiles("tokenizer_json", {_JSON: folder / _JSON}, template)
    for name in _SINGLE:
        if (folder / name).is_file():
            return TokenizerFiles("sentencepiece", {"source.spm": folder / name}, template, converted)
    if (folder / _BPE_CODES).is_file():
        return TokenizerFiles("moses_bpe", {_BPE_CODES: folder / _BPE_CODES}, template, converted)
    raise CheckpointError(
        f"{folder.name} has no tokenizer; copy one of these into the folder: {' and '.join(_PAIR)}, {_JSON}, "
        f"{', '.join(_SINGLE[:-1])}, {_BPE_CODES}"
    )


def _numbered(tokens: Sequence[str], special: SpecialNames) -> bytes:
    named = (_UNKNOWN if token == special.unknown else token for token in tokens)
    numbers: dict[str, int] = {}
    for index, token in enumerate(named):
        numbers.setdefault(token, index)
    return json.dumps(numbers).encode()


def _require_equal_numbers(path: Path, numbers: dict[str, int]) -> None:
    model = read_settings(path).values.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, list):
        entries = {str(entry[0]): index for index, entry in enumerate(vocabulary) if isinstance(entry, list) and entry}
    else:
        entries = vocabulary if isinstance(vocabulary, dict) else {}
    wrong = [token for token, number in entries.items() if numbers.get(token, number) != number]
    if wrong:
        raise CheckpointError(
            f"{path.name} and the vocabulary of the model number {len(wrong)} tokens differently: "
            f"{' '.join(wrong[:_MAX_LISTED])}"
        )
