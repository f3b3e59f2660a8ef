"""Resolution of decoding options for one sentence: text becomes tokens, and relative lengths become limits."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from bundle.manifest import Shapes
from server.interface.decoding_options import MAX_REQUIRED_TOKENS, DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import SentenceParams, Tokens
from server.text.glossary import Targets, with_capital
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.tokenizers.word_tokens import endings_of

_BEAMS_FOR_TERMS = 4  # minimum: a single beam cannot search for required phrases

# No translation is longer than both; longer output is a loop, and delays the steps of all requests.
_MAX_TARGET_FACTOR = 3  # of the source's tokens, as Marian's max-length-factor
_SHORT_TARGET_TOKENS = 50


@lru_cache(maxsize=1024)
def _limited(params: SentenceParams, max_new_tokens: int) -> SentenceParams:
    return replace(params, max_new_tokens=max_new_tokens)


def num_required_tokens(params: SentenceParams) -> int:
    """Return the number of tokens of all required phrases and terms, all alternatives included."""
    return sum(len(phrase) for group in params.required_groups for phrase in group)


def _without_beginning(params: SentenceParams) -> SentenceParams:
    """Return the parameters for the rest of a sentence whose first part meets the options about the whole."""
    params = replace(params, target_prefix=(), required_phrases=(), min_new_tokens=0)
    if not params.options.return_alternatives:
        return params
    return replace(params, options=params.options.with_changes(return_alternatives=False), num_hypotheses=1)


class ParamsResolver:
    """Resolves the options of one request for each of its sentences.

    Without any option about lengths, the length of a sentence is limited by its source. Raises `InvalidRequest` if an
    option does not fit the model.
    """

    def __init__(
        self,
        params: SentenceParams,
        options: DecodingOptions,
        tokenizer: Tokenizer,
        shapes: Shapes,
        target: str = "",
    ) -> None:
        self._options = options
        self._endings = endings_of(target)
        # Required phrases may be longer than the source.
        self._names_length = bool(
            options.max_new_tokens or options.max_length_ratio or options.min_new_tokens or options.required_phrases
        )
        self._tokenizer = tokenizer
        self._shapes = shapes
        self._is_plain = not (options.target_prefix or options.max_length_ratio)
        self._prefixes: dict[str, Tokens] = {"": ()}
        self._by_length: dict[int, SentenceParams] = {}  # of sentences of which only the length is known
        self._params = params
        if options.suppress_phrases or options.required_phrases:
            self._params = replace(
                params,
                suppress_phrases=tuple(self._tokens(phrase, "suppress_phrases") for phrase in options.suppress_phrases),
                required_phrases=tuple(self._tokens(phrase, "required_phrases") for phrase in options.required_phrases),
            )
        num_required = sum(map(len, self._params.required_phrases))
        limit = min(MAX_REQUIRED_TOKENS, params.max_new_tokens - 1)
        if num_required > limit:
            raise InvalidRequest(f"`required_phrases` may have {limit} tokens together. Given: {num_required}")

    @property
    def params(self) -> SentenceParams:
        """The parameters before anything is known about a sentence."""
        return self._params

    def resolve(
        self, text: int, source_len: int, terms: Sequence[Targets] = (), goes_on: bool = False
    ) -> SentenceParams:
        """Return the parameters of a sentence of `source_len` tokens in the text with this number.

        `terms` are required terms of a glossary. With `goes_on` the sentence continues another one, and options about
        the whole do not apply.
        """
        if self._is_plain and not terms and not goes_on:
            if (params := self._by_length.get(source_len)) is None:
                params = self._params if self._names_length else self._of_length(self._params, source_len)
                self._by_length[source_len] = params
            return params
        params = self._params if self._is_plain else self._of_text(text, source_len)
        if goes_on:
            params = _without_beginning(params)
        if terms:
            params = self._with_terms(params, terms)
        return params if self._names_length else self._of_length(params, source_len)

    def _of_length(self, params: SentenceParams, source_len: int) -> SentenceParams:
        limit = max(_MAX_TARGET_FACTOR * source_len, _SHORT_TARGET_TOKENS) + num_required_tokens(params)
        return params if limit >= params.max_new_tokens else _limited(params, limit)

    def _of_text(self, text: int, source_len: int) -> SentenceParams:
        params, prefix = self._params, self._prefix(self._options.prefix_of(text))
        max_new_tokens = min(params.max_new_tokens, self._shapes.max_target_tokens - len(prefix))
        if self._options.max_length_ratio is not None:
            # The source's end counts on both sides.
            max_new_tokens = min(max_new_tokens, math.ceil(self._options.max_length_ratio * source_len))
        return replace(
            params,
            target_prefix=prefix,
            max_new_tokens=max_new_tokens,
            min_new_tokens=min(params.min_new_tokens, max_new_tokens - 1),
        )

    def _with_terms(self, params: SentenceParams, terms: Sequence[Targets]) -> SentenceParams:
        """Require as many of these terms as the limit allows, with enough beams to search for them."""
        required: list[list[Tokens]] = [[] for _ in terms]
        tokens_left = min(MAX_REQUIRED_TOKENS, params.max_new_tokens - 1) - num_required_tokens(params)
        for forms in (self._spellings, self._inflected):
            for targets, phrases in zip(terms, required, strict=True):
                for phrase in forms(targets):
                    if phrase not in phrases and len(phrase) <= tokens_left:
                        phrases.append(phrase)
                        tokens_left -= len(phrase)
        required_terms = tuple(tuple(phrases) for phrases in required if phrases)
        return replace(params, required_terms=required_terms, beam_size=max(params.beam_size, _BEAMS_FOR_TERMS))

    def _spellings(self, targets: Targets) -> Iterator[Tokens]:
        """Yield the tokens of each alternative, then those with a capital, which a sentence may begin with."""
        yield from (self._tokens(target, "glossary") for target in targets)
        for target in targets:
            tokens = tuple(self._tokenizer.encode_target(with_capital(target)))
            if tokens and self._tokenizer.unknown_token not in tokens:
                yield tokens

    def _inflected(self, targets: Targets) -> Iterator[Tokens]:
        """Yield the tokens of inflected forms that are words of the vocabulary; none of a term with alternatives.

        The search adds endings to the tokens of a term by itself.
        """
        if len(targets) > 1:
            return
        base = self._tokens(targets[0], "glossary")
        for ending in self._endings:
            tokens = tuple(self._tokenizer.encode_target(targets[0] + ending))
            if len(tokens) <= len(base) and self._tokenizer.unknown_token not in tokens:
                yield tokens

    def _prefix(self, prefix: str) -> Tokens:
        if prefix not in self._prefixes:
            tokens = self._tokens(prefix, "target_prefix") if prefix.strip() else ()
            limit = self._shapes.max_target_tokens - 1
            if len(tokens) > limit:
                raise TextTooLong(f"`target_prefix` may have {limit} tokens with this model. Given: {len(tokens)}")
            self._prefixes[prefix] = tokens
        return self._prefixes[prefix]

    def _tokens(self, text: str, name: str) -> Tokens:
        tokens = tuple(self._tokenizer.encode_target(text))
        if not tokens or self._tokenizer.unknown_token in tokens:
            raise InvalidRequest(f"`{name}`: {text!r} has characters that this model cannot write")
        return tokens
