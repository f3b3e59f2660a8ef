"""Tokenizers of kinds `marian` and `sentencepiece`: SentencePiece, with a vocabulary that numbers the pieces."""

import codecs
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor

from bundle.loading import Bundle
from bundle.tokenizer_files import (
    SOURCE_SENTENCEPIECE_FILE,
    TARGET_SENTENCEPIECE_FILE,
    TARGET_VOCABULARY_FILE,
    VOCABULARY_FILE,
)
from server.text.tokenizers.source_template import SourceTemplate
from server.text.tokenizers.word_tokens import MIN_WORDS, cost_of_ranks
from server.text.unicode_text import replace_lone_surrogates

_MIN_KNOWN_SHARE = 0.5
_MIN_BATCH = 32  # texts for which one call of SentencePiece, which starts a thread of its own, takes less time
_MIN_LOG_PROBABILITY = -50
_WORD_START = "▁"
_LANGUAGE_CODE = re.compile(r">>.+<<")
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"  # a blank in their place would split a word


class MarianTokenizer:
    """SentencePiece pieces numbered by the bundle's vocabulary; implements `Tokenizer`.

    Equal to Hugging Face `MarianTokenizer` except for control tokens in a text: `</s>`, `<pad>` and `>>de<<` are
    encoded as characters. Thread-safe.
    """

    def __init__(self, bundle: Bundle) -> None:
        tokens = bundle.config.special_tokens
        vocabulary = _load_vocabulary(bundle.file(VOCABULARY_FILE))
        target_file = bundle.file(TARGET_VOCABULARY_FILE)
        target_vocabulary = _load_vocabulary(target_file) if target_file.is_file() else vocabulary
        shapes = bundle.config.shapes
        _check_ids(vocabulary, shapes.vocab_size, VOCABULARY_FILE)
        _check_ids(target_vocabulary, shapes.target_vocab_size, target_file.name)
        self._end_of_sequence = tokens.end_of_sequence
        self._unknown = tokens.unknown
        control = {tokens.end_of_sequence, tokens.padding, tokens.decoder_start, tokens.unknown}
        # The token of a language may contain another code than the bundle: >>deu<< for "de".
        language_tokens = bundle.config.target_language_tokens
        self._language_ids = {language: vocabulary[piece] for language, piece in language_tokens.items()}
        self._text_ids = {
            piece: id_
            for piece, id_ in vocabulary.items()
            if id_ not in control and not _LANGUAGE_CODE.fullmatch(piece)
        }
        self._source = _load_sentencepiece(bundle.file(SOURCE_SENTENCEPIECE_FILE))
        has_two = bundle.file(TARGET_SENTENCEPIECE_FILE).is_file()
        self._target = _load_sentencepiece(bundle.file(TARGET_SENTENCEPIECE_FILE)) if has_two else self._source
        self._template = SourceTemplate(bundle.config)
        _check_pieces(self._source, vocabulary, SOURCE_SENTENCEPIECE_FILE)
        if bundle.config.tokenizer.kind == "marian":
            target_model = TARGET_SENTENCEPIECE_FILE if has_two else SOURCE_SENTENCEPIECE_FILE
            _check_pieces(self._target, target_vocabulary, target_model)
        self._source_unknown = self._source.unk_id()
        # The token id of each piece of the source model. For single sentences a list is faster to index than an array.
        self._source_ids = [
            self._text_ids.get(self._source.id_to_piece(piece), self._unknown)
            for piece in range(self._source.get_piece_size())
        ]
        target_control = {tokens.end_of_sequence, tokens.padding, tokens.unknown}
        self._target_ids = {piece: id_ for piece, id_ in target_vocabulary.items() if id_ not in target_control}
        self._source_names = {id_: piece for piece, id_ in vocabulary.items()}
        self._target_names = {id_: piece for piece, id_ in target_vocabulary.items()}
        # Byte pieces: the target model writes characters without a piece of their own byte by byte.
        self._target_bytes = {
            id_: int(piece[1:-1], 16) for piece, id_ in target_vocabulary.items() if self._is_byte(piece)
        }
        self._target_pieces = {id_: piece for piece, id_ in target_vocabulary.items() if id_ not in target_control}
        self._target_texts = self._texts_of_tokens()

    def encode(
        self, text: str, target_language: str | None = None, source_language: str | None = None
    ) -> NDArray[np.int32]:
        """Return the token ids [source_len] of `text` with the control tokens of a source, usually the end.

        Lone surrogates are read as U+FFFD. A model with several languages has tokens, or a prompt, of the languages.
        """
        [tokens] = self.encode_all([text], target_language, source_language)
        return tokens

    def encode_all(
        self, texts: Sequence[str], target_language: str | None = None, source_language: str | None = None
    ) -> list[NDArray[np.int32]]:
        """Return what `encode` returns of each text; many texts take less time together."""
        prompt = self._template.prompt(target_language)
        language_id = None if target_language is None else self._language_ids.get(target_language)
        before = () if language_id is None else (language_id,)
        return [
            self._template.source([*before, *ids], source_language)
            for ids in self._piece_ids([replace_lone_surrogates(prompt + text) for text in texts])
        ]

    @property
    def end_token(self) -> int:
        """The end-of-sequence token."""
        return self._end_of_sequence

    @property
    def unknown_token(self) -> int:
        """The token of pieces that the vocabulary lacks."""
        return self._unknown

    def encode_target(self, text: str) -> list[int]:
        """Return the token ids of `text` as a translation, without the end-of-sequence token."""
        pieces = self._target.encode(replace_lone_surrogates(text), out_type=str)
        return [self._target_ids.get(piece, self._unknown) for piece in pieces]

    def source_pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Return the vocabulary entry of each source token."""
        return [self._source_names.get(id_, "") for id_ in token_ids]

    def target_pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Return the vocabulary entry of each target token."""
        return [self._target_names.get(id_, "") for id_ in token_ids]

    @cached_property
    def known_characters(self) -> frozenset[str]:
        """Characters of the source vocabulary, and control characters that the tokenizer drops or reads as a blank.

        A character that is only covered by byte tokens is not among them: models seldom reproduce it.
        """
        pieces = [
            self._source.id_to_piece(piece)
            for piece in range(self._source.get_piece_size())
            if not self._source.is_byte(piece)
        ]
        known = frozenset("".join(piece for piece in pieces if piece in self._text_ids))
        controls = (each for each in map(chr, range(0x10000)) if unicodedata.category(each) in ("Cc", "Cf"))
        return known.union(" \n\r\t", (each for each in controls if each not in _JOINERS and self._is_dropped(each)))

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character range of `text` that each token of `encode` covers, the end-of-sequence token included.

        Ranges are approximate where SentencePiece replaces characters before it splits (NFKC).
        """
        spans = _spans(self._source.encode(replace_lone_surrogates(text), out_type=str), text)
        num_before = self._template.num_before + bool(self._language_ids)
        num_after = self._template.num_added - self._template.num_before
        return [*[(0, 0)] * num_before, *spans, *[(len(text), len(text))] * num_after]

    def target_spans(self, token_ids: Sequence[int], text: str) -> list[tuple[int, int]]:
        """Return the character range of `text`, decoded from `token_ids`, that each token covers."""
        return _spans([self._target_pieces.get(id_, "") for id_ in token_ids], text)

    def word_cost(self, word: str, *, is_target: bool = False) -> float:
        """Return how unlikely a word is for the vocabulary, in nats; 0 if the vocabulary has no words."""
        model = self._target if is_target else self._source
        if model.get_piece_size() < MIN_WORDS:
            return 0.0
        pieces = model.encode(word)
        scores = [float(model.get_score(piece)) for piece in pieces]
        # The scores of byte-pair encoding are ranks.
        return cost_of_ranks(pieces) if min(scores, default=0) < _MIN_LOG_PROBABILITY else -sum(scores)

    def count_tokens(self, text: str) -> int:
        """Return the length of the longest `encode` in any language."""
        pieces = self._source.encode(replace_lone_surrogates(self._template.longest_prompt + text))
        return len(pieces) + self._template.num_added + bool(self._language_ids)

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

    def _is_byte(self, piece: str) -> bool:
        is_byte: bool = self._target.is_byte(self._target.piece_to_id(piece))
        return is_byte

    def _piece_ids(self, texts: list[str]) -> Iterator[list[int]]:
        """Yield the token ids of each text."""
        encode = self._source.encode
        encoded = encode(texts, num_threads=1) if len(texts) >= _MIN_BATCH else map(encode, texts)
        for text, pieces in zip(texts, encoded, strict=True):
            if self._source_unknown not in pieces:
                yield list(map(self._source_ids.__getitem__, pieces))
            else:
                # A vocabulary shared with the target can contain characters that the source model lacks.
                yield [self._text_ids.get(piece, self._unknown) for piece in self._source.encode(text, out_type=str)]

    def _texts_of_tokens(self) -> "_Texts":
        """Return the text of each target token inside a translation; None where only SentencePiece can join it."""
        model = self._target
        texts = _Texts()
        for id_, piece in self._target_pieces.items():
            number = model.piece_to_id(piece)
            is_text = id_ not in self._target_bytes and not model.is_control(number)
            is_text &= not model.is_unknown(number) or model.id_to_piece(number) != piece
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


def _check_ids(vocabulary: Mapping[str, int], vocab_size: int, file: str) -> None:
    """Raise ValueError for tokens outside the model's vocabulary: an int8 graph would read a wrong row for them."""
    if wrong := [id_ for id_ in vocabulary.values() if not 0 <= id_ < vocab_size]:
        raise ValueError(f"tokens of {file} must be from 0 to {vocab_size - 1}. Given: {wrong[0]}")


def _check_pieces(model: SentencePieceProcessor, vocabulary: Mapping[str, int], file: str) -> None:
    """Raise ValueError if the vocabulary lacks most pieces of a SentencePiece model: they are of two models."""
    num_pieces = model.get_piece_size()
    num_known = sum(model.id_to_piece(piece) in vocabulary for piece in range(num_pieces))
    if not num_pieces or num_known < num_pieces * _MIN_KNOWN_SHARE:
        raise ValueError(f"{num_known} of {num_pieces} pieces of {file} are in the vocabulary; they are of two models")


def _load_vocabulary(path: Path) -> dict[str, int]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{path.name} must be a JSON object of pieces and their tokens")
    return {str(piece): int(id_) for piece, id_ in content.items()}
