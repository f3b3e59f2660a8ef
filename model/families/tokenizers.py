"""Tokenizer files of a checkpoint, in the formats that several families have, and the language tokens in them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentencepiece import SentencePieceProcessor
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from model.checkpoints.checkpoint import CheckpointError, Languages, SourceTemplate, TokenizerFiles
from model.checkpoints.hugging_face_files import CheckpointFolder, Settings, read_settings
from model.checkpoints.language_codes import language_codes

TOKENIZER_JSON = "tokenizer.json"
SENTENCEPIECE_FILES = ("sentencepiece.bpe.model", "spiece.model", "spm.model")
_VOCABULARY, _MERGES = "vocab.json", "merges.txt"
# deu_Latn (NLLB), de_DE or en_XX (mBART).
TARGET_TOKEN = re.compile(r"<2([A-Za-z_\-]+)>")
"""Token of a target language before the text, as in MADLAD-400."""
LANGUAGE_TOKEN = re.compile(r"[a-z]{2,3}_(?:[A-Z]{2}|[A-Z][a-z]{3})")


def open_sentencepiece(path: Path) -> SentencePieceProcessor:
    """Return the SentencePiece model in a file. Raises `CheckpointError` if it is empty, damaged or another file."""
    content = path.read_bytes()
    if not content:
        raise CheckpointError(f"{path} is empty; a SentencePiece model is required")
    try:
        model = SentencePieceProcessor(model_proto=content)
        all_pieces(model)
    except (RuntimeError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{path} is not a SentencePiece model, or damaged; if it is a pointer of Git LFS, fetch the file "
            "(git lfs pull), otherwise download it again"
        ) from error
    return model


def all_pieces(model: SentencePieceProcessor) -> list[str]:
    """Return the pieces of a model in the order of their numbers."""
    return [model.id_to_piece(piece) for piece in range(model.get_piece_size())]


@dataclass(frozen=True, slots=True)
class PieceNumbers:
    """Numbers of a SentencePiece model's pieces: those of `reserved`, and for the others their index plus `offset`.

    A piece that is reserved has no other number.
    """

    reserved: Mapping[str, int]
    offset: int = 0

    def vocabulary(self, pieces: Sequence[str]) -> dict[str, int]:
        """Return the number of every piece, and of every reserved token."""
        numbered = {piece: index + self.offset for index, piece in enumerate(pieces) if piece not in self.reserved}
        return {**self.reserved, **numbered}


def read_tokenizer(
    folder: CheckpointFolder, template: SourceTemplate, numbers: PieceNumbers, added: Mapping[str, int] | None = None
) -> TokenizerFiles:
    """Return the tokenizer of a checkpoint: tokenizer.json, else vocabulary and merges, else a SentencePiece model.

    `numbers` apply to a SentencePiece model without a vocabulary, and `added` are tokens that vocab.json lacks. A
    checkpoint without any of them has no files.
    """
    path = folder.path / TOKENIZER_JSON
    if path.is_file():
        return TokenizerFiles("tokenizer_json", {TOKENIZER_JSON: path}, template)
    sentencepiece = next((folder.path / name for name in SENTENCEPIECE_FILES if (folder.path / name).is_file()), None)
    vocabulary, merges = folder.path / _VOCABULARY, folder.path / _MERGES
    if sentencepiece is None and vocabulary.is_file() and merges.is_file():
        return TokenizerFiles("tokenizer_json", {}, template, {TOKENIZER_JSON: _byte_level_json(folder.path)})
    if sentencepiece is None:
        return TokenizerFiles("tokenizer_json", {}, template)
    files = {"source.spm": sentencepiece}
    if vocabulary.is_file() and added:
        completed = json.dumps(read_settings(vocabulary).values | dict(added)).encode()
        return TokenizerFiles("sentencepiece", files, template, {_VOCABULARY: completed})
    if vocabulary.is_file():
        return TokenizerFiles("sentencepiece", files | {_VOCABULARY: vocabulary}, template)
    numbered = numbers.vocabulary(all_pieces(open_sentencepiece(sentencepiece)))
    return TokenizerFiles("sentencepiece", files, template, {_VOCABULARY: json.dumps(numbered).encode()})


def template_of_class(folder: CheckpointFolder, template: SourceTemplate, classes: Sequence[str]) -> SourceTemplate:
    """Return the tokens around a source: `template` if the tokenizer has one of these classes or none is named.

    For another class it is what tokenizer.json adds. Raises `CheckpointError` if that is missing or adds other tokens
    than some before and some after a text.
    """
    settings = read_settings(folder.path / "tokenizer_config.json", required=False)
    name = settings.text("tokenizer_class", "")
    if not name or name.removesuffix("Fast") in classes:
        return template
    if not (folder.path / TOKENIZER_JSON).is_file():
        settings.reject("tokenizer_class", f"must be one of {', '.join(classes)}, or have a {TOKENIZER_JSON}")
    tokenizer = read_settings(folder.path / TOKENIZER_JSON)
    try:
        return SourceTemplate(*_added_around(tokenizer))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{TOKENIZER_JSON}: `post_processor` is damaged: {error}") from error


def _added_around(tokenizer: Settings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the tokens that the post-processor of tokenizer.json adds before and after a text."""
    processor = tokenizer.values.get("post_processor")
    listed = processor.get("processors") if isinstance(processor, dict) else None
    for step in listed if isinstance(listed, list) else [processor]:
        match step:
            case {"cls": [_, int(first)], "sep": [_, int(last)]}:
                return (first,), (last,)
            case {"single": [*pieces], "special_tokens": dict(special)}:
                names = [piece["SpecialToken"]["id"] if "SpecialToken" in piece else None for piece in pieces]
                around = names[: names.index(None)], names[names.index(None) + 1 :]
                before, after = (tuple(int(id_) for name in some for id_ in special[name]["ids"]) for some in around)
                return before, after
    return (), ()


def language_tokens(folder: CheckpointFolder) -> dict[str, int]:
    """Return the language tokens of a checkpoint and their ids, in the order of the ids.

    They are added tokens of tokenizer.json, or follow the pieces of a SentencePiece model as in fairseq.
    """
    path = folder.path / TOKENIZER_JSON
    if path.is_file():
        added = read_settings(path).values.get("added_tokens")
        entries = [entry for entry in added if isinstance(entry, dict)] if isinstance(added, list) else []
        found = {str(entry.get("content")): entry.get("id") for entry in entries}
        ids = {token: id_ for token, id_ in found.items() if isinstance(id_, int) and LANGUAGE_TOKEN.fullmatch(token)}
        return dict(sorted(ids.items(), key=lambda item: item[1]))
    sentencepiece = folder.path / SENTENCEPIECE_FILES[0]
    if not sentencepiece.is_file():
        return {}
    listed = [token for token in _listed_tokens(folder.path) if LANGUAGE_TOKEN.fullmatch(token)]
    first = open_sentencepiece(sentencepiece).get_piece_size() + 1
    return {token: first + index for index, token in enumerate(listed)}


def _listed_tokens(folder: Path) -> list[str]:
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        settings = read_settings(folder / name, required=False)
        for key in ("additional_special_tokens", "extra_special_tokens"):
            listed = settings.values.get(key)
            if isinstance(listed, list) and listed:
                return [str(token.get("content")) if isinstance(token, dict) else str(token) for token in listed]
    return []


def _byte_level_json(folder: Path) -> bytes:
    """Return tokenizer.json of a byte-level BPE in two files, as GPT-2 and BART have it."""
    settings = read_settings(folder / "tokenizer_config.json", required=False)
    try:
        tokenizer = Tokenizer(BPE.from_file(str(folder / _VOCABULARY), str(folder / _MERGES)))
    except Exception as error:  # the library has no type of its own
        raise CheckpointError(f"{folder / _VOCABULARY} or {_MERGES} is damaged: {error}") from error
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=settings.boolean("add_prefix_space", False))
    tokenizer.decoder = ByteLevelDecoder()
    special = [name for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>") if tokenizer.token_to_id(name) is not None]
    tokenizer.add_special_tokens([AddedToken(name, lstrip=name == "<mask>", normalized=False) for name in special])
    return tokenizer.to_str().encode()


def selected_by_tokens(tokens: Mapping[str, int], *, forces_target: bool = True) -> Languages:
    """Return the languages of tokens by their spelling, each with its id.

    A token selects the source language in the template and, with `forces_target`, the target as first token of outputs.
    """
    codes = language_codes(tokens)
    ids = {codes[written]: id_ for written, id_ in tokens.items()}
    every = tuple(ids)
    first_tokens = ids if forces_target else {}
    return Languages(every, every, first_tokens=first_tokens, source_tokens=ids, aliases=_aliases(codes))


def selected_by_prefixes(tokens: Iterable[str]) -> Languages:
    """Return the languages of tokens `__xx__` by `xx`; the target's begins the source, as in SMaLL-100."""
    codes = language_codes(tokens)
    every = tuple(codes.values())
    prefixes = {code: f"__{written}__" for written, code in codes.items()}
    return Languages(every, every, source_prefix=prefixes, aliases=_aliases(codes))


def selected_by_prompts(written: Iterable[str]) -> Languages:
    """Return the languages of tokens `<2xx>` by `xx`, of which the target's is written before the text.

    MADLAD-400 detects the source language; every language that it writes can be the source.
    """
    codes = language_codes(written)
    every = tuple(codes.values())
    prompts = {code: f"<2{written}> " for written, code in codes.items()}
    return Languages(every, every, prompts=prompts, aliases=_aliases(codes))


def _aliases(codes: Mapping[str, str]) -> dict[str, str]:
    return {written: code for written, code in codes.items() if written != code}
