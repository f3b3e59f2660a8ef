"""Tokenizer of kind `tokenizer_json`: the file `tokenizer.json` of the package `tokenizers`."""

import unicodedata
from collections.abc import Sequence
from functools import cached_property

from bundle.loading import Bundle
from bundle.manifest import TOKENIZER_JSON_FILE
from bundle.tokenizer_formats import open_json_tokenizer
from server.text.tokenizers.base import BaseTokenizer, spans_of_beginnings
from server.text.unicode_text import replace_lone_surrogates

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class JsonTokenizer(BaseTokenizer):
    """Tokenizer of the package `tokenizers`; implements `Tokenizer`.

    Equal to the tokenizers of Hugging Face except for control tokens in a text, which are encoded as characters, and
    for tokens of languages, which are no part of a decoded text. Thread-safe.
    """

    def __init__(self, bundle: Bundle) -> None:
        config = bundle.config
        super().__init__(config)
        special = config.special_tokens
        # Read here: the package's own reader fails with some valid paths.
        self._backend = open_json_tokenizer(bundle.file(TOKENIZER_JSON_FILE).read_bytes())
        self._backend.encode_special_tokens = True
        languages = {*config.first_language_tokens.values(), *config.tokenizer.source_language_tokens.values()}
        self._left_out = {special.end_of_sequence, special.padding, special.decoder_start, *languages}
        prompts = {self._backend.token_to_id(prompt.strip()) for prompt in config.tokenizer.prompts.values()}
        self._prompts = prompts - {None}
        # A vocabulary can contain the names of its control tokens as if they were words.
        self._control = (self._left_out | self._prompts) - {special.unknown}

    @cached_property
    def known_characters(self) -> frozenset[str]:
        """Characters of the vocabulary, and control characters that the tokenizer drops or reads as a blank."""
        known: set[str] = set(" \n\r\t")
        for id_ in range(self._backend.get_vocab_size()):
            known.update(self._backend.decode([id_]))
        known.discard(_REPLACEMENT)
        controls = [each for each in map(chr, range(0x10000)) if unicodedata.category(each) in ("Cc", "Cf")]
        return frozenset(known.union(each for each in controls if not self._text_ids(each)))

    def encode_target(self, text: str) -> list[int]:
        """Return the token ids of `text` as a translation, without the end-of-sequence token."""
        return self._text_ids(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of generated `token_ids`, without control tokens."""
        shown = [id_ for id_ in token_ids if id_ not in self._left_out]
        text: str = self._backend.decode(shown, skip_special_tokens=True)
        return text

    def decode_beginning(self, token_ids: Sequence[int]) -> str:
        """Return the text with which every translation that begins with `token_ids` begins.

        It lacks the bytes of a character whose other bytes are not generated yet.
        """
        return self.decode(token_ids).rstrip(_REPLACEMENT)

    def source_pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Return the vocabulary entry of each source token."""
        return [self._backend.id_to_token(id_) or "" for id_ in token_ids]

    target_pieces = source_pieces

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character range of `text` that each token of `encode` without a prompt covers."""
        offsets = self._backend.encode(replace_lone_surrogates(text), add_special_tokens=False).offsets
        spans = [(int(start), int(end)) for start, end in offsets]
        return self._within_template(spans, text)

    def target_spans(self, token_ids: Sequence[int], text: str) -> list[tuple[int, int]]:
        """Return the character range of `text`, decoded from `token_ids`, that each token covers."""
        return spans_of_beginnings(token_ids, text, self.decode_beginning)

    def _text_ids(self, text: str, *, has_prompt: bool = False) -> list[int]:
        """Return the ids of a text; the first token of a language is part of its prompt, if it has one."""
        ids: list[int] = self._backend.encode(replace_lone_surrogates(text), add_special_tokens=False).ids
        if self._control.isdisjoint(ids):
            return ids
        shown: list[int] = []
        for id_ in ids:
            if has_prompt and id_ in self._prompts:
                shown.append(id_)
                has_prompt = False
            elif id_ in self._control:
                characters = map(self._backend.token_to_id, self._backend.id_to_token(id_) or "")
                shown += [self._unknown if each is None else each for each in characters]
            else:
                shown.append(id_)
        return shown
