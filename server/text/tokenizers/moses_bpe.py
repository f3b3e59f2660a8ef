"""Tokenizer of kind `moses_bpe`: Moses' rules for words and punctuation, then byte-pair encoding of each word."""

import unicodedata
from collections.abc import Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Final

from tokenizers import models

from bundle.loading import Bundle
from bundle.manifest import BPE_CODES_FILE
from bundle.tokenizer_formats import END_OF_WORD, BpeCodes, read_bpe_codes
from server.text.tokenizers.base import VocabularyTokenizer, read_vocabularies, spans_of_beginnings
from server.text.unicode_text import replace_lone_surrogates

_CONTINUED: Final = "@@"  # ends a token that the next one continues
_UNKNOWN: Final = "\N{NULL}"
_LAST: Final = "\ue000"  # `</w>` as a symbol of its own
_NUM_CACHED_WORDS: Final = 1 << 16
# Moses' rules for these languages depend on the words at the end of a text.
_READS_THE_END: Final = ("cs", "fi")


class MosesBpeTokenizer(VocabularyTokenizer):
    """Tokenizer of Argos packages with `bpe.model`; implements `Tokenizer`. Thread-safe.

    Raises ValueError if the package `sacremoses` is missing.
    """

    def __init__(self, bundle: Bundle) -> None:
        config = bundle.config
        source, target = read_vocabularies(bundle)
        super().__init__(config, source, target)
        self._source, self._target = (
            _Words(languages[0] if languages else "en")
            for languages in (config.source_languages, config.target_languages)
        )
        self._split = lru_cache(_NUM_CACHED_WORDS)(
            _Splitter(read_bpe_codes(bundle.file(BPE_CODES_FILE).read_bytes(), BPE_CODES_FILE)).split
        )
        special = config.special_tokens
        languages = {*config.first_language_tokens.values(), *config.tokenizer.source_language_tokens.values()}
        control = {special.end_of_sequence, special.padding, special.decoder_start, special.unknown, *languages}
        self._source_ids, self._target_ids = (
            {piece: id_ for piece, id_ in vocabulary.items() if id_ not in control} for vocabulary in (source, target)
        )
        self._target_pieces = {id_: piece for piece, id_ in self._target_ids.items()}

    @cached_property
    def known_characters(self) -> frozenset[str]:
        """Characters of the source vocabulary, and others that Moses' rules drop or replace by known ones."""
        known = set(" \n\r\t").union(*self._source_ids)
        # Only marks and control characters have rules.
        marks = (each for each in map(chr, range(0x10000)) if unicodedata.category(each)[0] in "PSZC")
        named = (each for each in marks if unicodedata.category(each) not in ("Cn", "Co", "Cs") and each not in known)
        return frozenset(known.union(each for each in named if self._unknown not in self._text_ids(each)))

    def encode_target(self, text: str) -> list[int]:
        """Return the token ids of `text` as a translation, without the end-of-sequence token."""
        words = self._target.of(text)
        return [self._target_ids.get(piece, self._unknown) for word in words for piece in self._split(word)]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of generated `token_ids`, without control tokens and unknown tokens."""
        return self._target.joined(self._target_words(token_ids))

    def decode_beginning(self, token_ids: Sequence[int]) -> str:
        """Return the text with which every translation that begins with `token_ids` begins: its last word waits."""
        if self._target.language in _READS_THE_END:
            return ""
        return self._target.joined(self._target_words(token_ids)[:-1])

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character range of `text` that each token of `encode` without a prompt covers.

        Ranges are approximate where Moses' rules replace characters.
        """
        spans: list[tuple[int, int]] = []
        position = 0
        for word in self._source.of(text):
            shown = self._source.joined([word])
            found = text.find(shown, position)
            start = position if found < 0 else found
            position = min(start + len(shown), len(text))
            pieces = self._split(word)
            lengths = accumulate((len(piece.removesuffix(_CONTINUED)) for piece in pieces), initial=0)
            borders = [min(start + length, position) for length in lengths]
            spans += pairwise([*borders[:-1], position])
        return self._within_template(spans, text)

    def target_spans(self, token_ids: Sequence[int], text: str) -> list[tuple[int, int]]:
        """Return the character range of `text`, decoded from `token_ids`, that each token covers."""
        return spans_of_beginnings(token_ids, text, self.decode)

    def _text_ids(self, text: str, *, has_prompt: bool = False) -> Sequence[int]:
        words = self._source.of(text)
        return [self._source_ids.get(piece, self._unknown) for word in words for piece in self._split(word)]

    def _target_words(self, token_ids: Sequence[int]) -> list[str]:
        pieces = (piece for id_ in token_ids if (piece := self._target_pieces.get(id_)) is not None)
        # A translation that was cut can end with a part of a word.
        return " ".join(pieces).replace(f"{_CONTINUED} ", "").removesuffix(_CONTINUED).split()


class _Words:
    """Moses' rules of one language: a text as words, with some characters as entities of XML, and back."""

    def __init__(self, language: str) -> None:
        self.language = language.partition("-")[0]
        try:
            rules = import_module("sacremoses")
        except ImportError:
            raise ValueError(
                "models with Moses' rules need the package sacremoses; pip install 'kvasir-server[moses]'"
            ) from None
        self._normalizer = rules.MosesPunctNormalizer(self.language)
        self._tokenizer = rules.MosesTokenizer(self.language)
        self._detokenizer = rules.MosesDetokenizer(self.language)
        self._fallback = rules.MosesDetokenizer("")

    def of(self, text: str) -> list[str]:
        words: list[str] = self._tokenizer.tokenize(self._normalizer.normalize(replace_lone_surrogates(text)))
        return words

    def joined(self, words: Sequence[str]) -> str:
        try:
            text: str = self._detokenizer.detokenize(words)
        except TypeError:  # sacremoses 0.2 fails with Czech words such as "byl' - li"
            text = self._fallback.detokenize(words)
        return text


class _Splitter:
    """Byte-pair encoding of a word as subword-nmt splits it."""

    def __init__(self, codes: BpeCodes) -> None:
        self._last = "" if codes.ends_join_symbols else _LAST
        merges = [(a, b) if codes.ends_join_symbols else (_with_last(a), _with_last(b)) for a, b in codes.merges]
        symbols = dict.fromkeys(symbol for a, b in merges for symbol in (a, b, a + b))
        self._model = models.BPE(
            vocab={symbol: number for number, symbol in enumerate([_UNKNOWN, *symbols])},
            merges=merges,
            unk_token=_UNKNOWN,
            end_of_word_suffix=END_OF_WORD if codes.ends_join_symbols else "",
        )

    def split(self, word: str) -> list[str]:
        """Return the tokens of a word, all but the last with the mark of a continued one."""
        offsets = [token.offsets for token in self._model.tokenize(word + self._last)]
        encoded = word.encode()
        # The symbol after the last character is beyond the end.
        pieces = [piece for start, end in offsets if (piece := encoded[start:end].decode())]
        return [*(piece + _CONTINUED for piece in pieces[:-1]), pieces[-1]]


def _with_last(symbol: str) -> str:
    return symbol.removesuffix(END_OF_WORD) + _LAST if symbol.endswith(END_OF_WORD) else symbol
