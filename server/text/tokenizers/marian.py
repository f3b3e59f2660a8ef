"""Tokenizers of kinds `marian` and `sentencepiece`: SentencePiece, with a vocabulary that numbers the pieces."""

import codecs
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate, filterfalse, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor

from bundle.loading import Bundle
from bundle.manifest import SOURCE_SENTENCEPIECE_FILE, TARGET_SENTENCEPIECE_FILE
from server.text.tokenizers.base import VocabularyTokenizer, read_vocabularies
from server.text.unicode_text import replace_lone_surrogates

_MIN_KNOWN_SHARE = 0.5
_WORD_START = "▁"
_LANGUAGE_CODE = re.compile(r">>.+<<")
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"  # a blank in their place would split a word


class MarianTokenizer(VocabularyTokenizer):
    """SentencePiece pieces numbered by the bundle's vocabulary; implements `Tokenizer`.

    Equal to Hugging Face `MarianTokenizer` except for control tokens in a text: `</s>`, `<pad>` and `>>de<<` are
    encoded as characters. Thread-safe.
    """

    def __init__(self, bundle: Bundle) -> None:
        vocabulary, target_vocabulary = read_vocabularies(bundle)
        super().__init__(bundle.config, vocabulary, target_vocabulary)
        tokens = bundle.config.special_tokens
        control = {tokens.end_of_sequence, tokens.padding, tokens.decoder_start, tokens.unknown}
        # The token of a language may contain another code than the bundle: >>deu<< for "de".
        language_tokens = bundle.config.target_language_tokens
        self._language_ids = {language: vocabulary[piece] for language, piece in language_tokens.items()}
        self._ids_of_pieces = {
            piece: id_
            for piece, id_ in vocabulary.items()
            if id_ not in control and not (piece.startswith(">>") and _LANGUAGE_CODE.fullmatch(piece))
        }
        self._source = _load_sentencepiece(bundle.file(SOURCE_SENTENCEPIECE_FILE))
        has_two = bundle.file(TARGET_SENTENCEPIECE_FILE).is_file()
        self._target = _load_sentencepiece(bundle.file(TARGET_SENTENCEPIECE_FILE)) if has_two else self._source
        source_pieces = _pieces(self._source)
        _check_pieces(source_pieces, vocabulary, SOURCE_SENTENCEPIECE_FILE)
        if bundle.config.tokenizer.kind == "marian":
            target_model = TARGET_SENTENCEPIECE_FILE if has_two else SOURCE_SENTENCEPIECE_FILE
            _check_pieces(_pieces(self._target) if has_two else source_pieces, target_vocabulary, target_model)
        self._source_unknown = self._source.unk_id()
        # The token id of each piece of the source model. For single sentences a list is faster to index than an array.
        self._source_ids = [self._ids_of_pieces.get(piece, self._unknown) for piece in source_pieces]
        target_control = {tokens.end_of_sequence, tokens.padding, tokens.unknown}
        self._target_ids = {piece: id_ for piece, id_ in target_vocabulary.items() if id_ not in target_control}
        # Byte pieces: the target model writes characters without a piece of their own byte by byte.
        are_bytes = self._target.is_byte(self._target.piece_to_id([*target_vocabulary]))
        self._target_bytes = {
            id_: int(piece[1:-1], 16)
            for (piece, id_), is_byte in zip(target_vocabulary.items(), are_bytes, strict=True)
            if is_byte
        }
        self._target_pieces = {id_: piece for piece, id_ in self._target_ids.items()}
        self._target_texts = self._texts_of_tokens()

    def encode(
        self, text: str, target_language: str | None = None, source_language: str | None = None
    ) -> NDArray[np.int32]:
        """Return the token ids [source_len] of `text` with the control tokens of a source, and that of its language."""
        prompt = self._template.prompt(target_language)
        language_id = None if target_language is None else self._language_ids.get(target_language)
        ids = self._text_ids(prompt + text)
        return self._template.source(ids if language_id is None else [language_id, *ids], source_language)

    def encode_target(self, text: str) -> list[int]:
        """Return the token ids of `text` as a translation, without the end-of-sequence token."""
        pieces = self._target.encode(replace_lone_surrogates(text), out_type=str)
        return [self._target_ids.get(piece, self._unknown) for piece in pieces]

    @cached_property
    def known_characters(self) -> frozenset[str]:
        """Characters of the source vocabulary, and control characters that the tokenizer drops or reads as a blank.

        A character that is only covered by byte tokens is not among them: models seldom reproduce it.
        """
        pieces = _pieces(self._source)
        are_bytes = self._source.is_byte([*range(len(pieces))])
        known = (
            piece
            for piece, is_byte in zip(pieces, are_bytes, strict=True)
            if not is_byte and piece in self._ids_of_pieces
        )
        return frozenset().union(" \n\r\t", filter(self._is_dropped, _controls()), *known)

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character range of `text` that each token of `encode` covers, the end-of-sequence token included.

        Ranges are approximate where SentencePiece replaces characters before it splits (NFKC).
        """
        spans = _spans(self._source.encode(replace_lone_surrogates(text), out_type=str), text)
        return [*[(0, 0)] * bool(self._language_ids), *self._within_template(spans, text)]

    def target_spans(self, token_ids: Sequence[int], text: str) -> list[tuple[int, int]]:
        """Return the character range of `text`, decoded from `token_ids`, that each token covers."""
        return _spans([self._target_pieces.get(id_, "") for id_ in token_ids], text)

    def count_tokens(self, text: str) -> int:
        """Return the length of the longest `encode` in any language."""
        return super().count_tokens(text) + bool(self._language_ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of generated `token_ids`, without control tokens and unknown tokens."""
        try:
            return "".join(map(self._target_texts.__getitem__, token_ids)).strip()  # type: ignore[arg-type]
        except TypeError:  # one of them is None
            pass
        pieces = [piece for piece in map(self._target_pieces.get, token_ids) if piece is not None]
        text: str = self._target.decode_pieces(pieces)
        return text.replace(_WORD_START, " ").strip()

    def decode_beginning(self, token_ids: Sequence[int]) -> str:
        """Return the text with which every translation that begins with `token_ids` begins.

        It lacks the bytes of a character whose other bytes are not generated yet.
        """
        end = len(token_ids)
        while end and token_ids[end - 1] in self._target_bytes:
            end -= 1
        if end == len(token_ids):
            return self.decode(token_ids)
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        decoder.decode(bytes(self._target_bytes[id_] for id_ in token_ids[end:]))
        num_pending = len(decoder.getstate()[0])
        return self.decode(token_ids[: len(token_ids) - num_pending])

    def _is_dropped(self, character: str) -> bool:
        return not "".join(self._source.encode(character, out_type=str)).strip(_WORD_START)

    def _text_ids(self, text: str, *, has_prompt: bool = False) -> Sequence[int]:
        text = replace_lone_surrogates(text)
        pieces = self._source.encode(text)
        if self._source_unknown not in pieces:
            return list(map(self._source_ids.__getitem__, pieces))
        # A vocabulary shared with the target can contain characters that the source model lacks.
        return [self._ids_of_pieces.get(piece, self._unknown) for piece in self._source.encode(text, out_type=str)]

    def _texts_of_tokens(self) -> "_Texts":
        """Return the text of each target token inside a translation; None where only SentencePiece can join it."""
        model, texts = self._target, _Texts()
        numbers = model.piece_to_id([*self._target_pieces.values()])
        are_control, unknown = model.is_control(numbers), model.id_to_piece(model.unk_id())
        for (id_, piece), is_control in zip(self._target_pieces.items(), are_control, strict=True):
            is_text = not is_control and id_ not in self._target_bytes and piece != unknown
            texts[id_] = piece.replace(_WORD_START, " ") if is_text else None
        joined: str = model.decode_pieces([self._target_pieces[id_] for id_, text in texts.items() if text is not None])
        # A model may also change what it has joined.
        is_plain = joined.replace(_WORD_START, " ").strip() == "".join(filter(None, texts.values())).strip()
        return texts if is_plain else _Texts(dict.fromkeys(texts))


class _Texts(dict[int, str | None]):
    """Texts of tokens; that of any other token is empty."""

    def __missing__(self, token: int) -> str:
        return ""


def _spans(pieces: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return ranges of `text` in proportion to the lengths of the pieces."""
    ends = list(accumulate(map(len, pieces)))
    if not ends:
        return []
    num_leading = len(pieces[0]) - len(pieces[0].lstrip(_WORD_START))
    scale = len(text) / max(ends[-1] - num_leading, 1)
    borders = [max(0, round((end - num_leading) * scale)) for end in (0, *ends)]
    return list(pairwise(borders))


def _load_sentencepiece(path: Path) -> SentencePieceProcessor:
    # Read here: SentencePiece's own reader fails with some valid paths.
    return SentencePieceProcessor(model_proto=path.read_bytes())


def _pieces(model: SentencePieceProcessor) -> list[str]:
    pieces: list[str] = model.id_to_piece([*range(model.get_piece_size())])
    return pieces


@cache
def _controls() -> list[str]:
    """Return the control characters that no word is spelled with."""
    unprintable = filterfalse(str.isprintable, map(chr, range(0x10000)))
    return [each for each in unprintable if unicodedata.category(each) in ("Cc", "Cf") and each not in _JOINERS]


def _check_pieces(pieces: Sequence[str], vocabulary: Mapping[str, int], file: str) -> None:
    """Raise ValueError if the vocabulary lacks most pieces of a SentencePiece model: they are of two models."""
    num_pieces, num_known = len(pieces), sum(map(vocabulary.__contains__, pieces))
    if not num_pieces or num_known < num_pieces * _MIN_KNOWN_SHARE:
        raise ValueError(f"{num_known} of {num_pieces} pieces of {file} are in the vocabulary; they are of two models")
