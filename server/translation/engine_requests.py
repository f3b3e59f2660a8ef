"""From text and options to requests for the engine."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from pydantic import ValidationError

from bundle.manifest import BundleConfig, Shapes
from server.interface.decoding_options import MAX_REQUIRED_TOKENS, NO_OPTIONS, SAMPLING, DecodingOptions, applies
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.interruption import checkpoint
from server.interface.request import Request, SentenceParams, Timings, TokenIds, Tokens
from server.text.glossary import Targets, with_capital
from server.text.protection.masked_sentence import MaskedSentence
from server.text.protection.word_alignment import Range
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.tokenizers.word_tokens import endings_of
from server.translation.limits import TranslationLimits
from server.translation.reading import Job
from server.translation.types import TranslationRequest


def with_model_defaults(
    options: DecodingOptions, of_model: Mapping[str, object], limits: TranslationLimits, shapes: Shapes
) -> DecodingOptions:
    """Return the options of a request, completed by those of the model.

    An option of the model gives way to options of the request with which it has no effect or contradicts them: beams
    to sampling, sampling to beams, a minimum length to a maximum below it. By default a text may have as many tokens
    as the model writes.
    """
    given = {name: value for name in options.model_fields_set if (value := getattr(options, name)) is not None}
    defaults = {name: value for name, value in of_model.items() if name not in given and _is_valid(name, value)}
    if "beam_size" in given or options.return_alternatives:
        defaults = {name: value for name, value in defaults.items() if not _is_of_sampling(name)}
    merged = DecodingOptions.given(defaults | given)
    changes: dict[str, object] = {}
    if "beam_size" in defaults:
        beams = min(max(merged.beam_size or 1, options.num_hypotheses), limits.max_beam_size)
        changes["beam_size"] = None if merged.decodes_independently else beams
    beam_size = changes.get("beam_size", merged.beam_size) or limits.default_beam_size
    mode = merged.search_mode(int(str(beam_size)))
    for name in defaults:
        where = applies(name)
        if where is not None and not where.modes & mode:
            changes[name] = getattr(NO_OPTIONS, name)
    limit = merged.max_new_tokens or shapes.max_target_tokens
    if "max_new_tokens" not in given:
        limit = changes["max_new_tokens"] = min(limit, shapes.max_target_tokens)
    if "min_new_tokens" in defaults and merged.min_new_tokens >= limit:
        changes["min_new_tokens"] = limit - 1
    return merged.with_changes(**changes)


def _is_valid(name: str, value: object) -> bool:
    try:
        DecodingOptions.given({name: value})
    except ValidationError:
        return False
    return name in DecodingOptions.model_fields


def _is_of_sampling(name: str) -> bool:
    where = applies(name)
    return where is not None and where.modes == SAMPLING


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


_USUAL_OPTIONS = frozenset(("beam_size",))
_MIN_BEAMS = 4  # of a search for a form of address or a number that the first one lacks
_BEAMS_FOR_PARTS = 2  # as good as four: docs/decisions/text.md has the numbers


def first_token(config: BundleConfig, target: str) -> int | None:
    """Return the first token of outputs in this language, or None if the model does not force one."""
    return config.first_language_tokens.get(target, config.special_tokens.forced_first)


@lru_cache(maxsize=1024)
def _usual_params(
    limits: TranslationLimits, shapes: Shapes, first: int | None, beam_size: int | None
) -> SentenceParams:
    """Return the parameters of a request without options but `beam_size`. Most requests share them, and their hash."""
    options = NO_OPTIONS if beam_size is None else DecodingOptions(beam_size=beam_size)
    return replace(limits.sentence_params(TranslationRequest((), "", "", options), shapes), first_token=first)


class RequestBuilder:
    """Builds the engine requests of one call. A model reads texts as they were sent."""

    def __init__(
        self, tokenizer: Tokenizer, source: str, target: str, deadline: float | None, *, cacheable: bool = True
    ) -> None:
        self._tokenizer = tokenizer
        self._source = source
        self._target = target
        self._deadline = deadline
        self._cacheable = cacheable

    def tokens(self, text: str) -> TokenIds:
        """Return the tokens of a source text."""
        return self._tokenizer.encode(text, self._target, self._source)

    def source_spans(self, text: str) -> Sequence[Range]:
        """Return the range of a source text that each of its tokens covers."""
        return self._tokenizer.source_spans(text)

    def request(self, source: TokenIds, params: SentenceParams) -> Request:
        """Return the engine request for one sentence."""
        return Request(source, params, Timings(arrived=0.0), self._deadline, cacheable=self._cacheable)


@dataclass(slots=True)
class Part:
    """A part of a sentence to decode, in the text with this index.

    `source` are its tokens where they are known. A part that `goes_on` continues another one of its sentence. All beams
    are hypotheses if `needs_beams`; a second attempt `has_few_beams`. A search has to write one of each of the
    `required` alternatives, and none of the `suppressed` phrases.
    """

    text: int
    sentence: MaskedSentence
    source: TokenIds | None = None
    goes_on: bool = False
    needs_beams: bool = False
    has_few_beams: bool = False
    required: Sequence[Targets] = ()
    suppressed: tuple[Tokens, ...] = ()
    prefix: Tokens = ()  # with which the translation begins


class SentenceEncoder(RequestBuilder):
    """Encodes the sentences of one call with its options.

    Raises `InvalidRequest` for options that the model or the format does not support.
    """

    def __init__(
        self,
        request: TranslationRequest,
        limits: TranslationLimits,
        tokenizer: Tokenizer,
        config: BundleConfig,
        deadline: float | None = None,
    ) -> None:
        super().__init__(tokenizer, request.source, request.target, deadline, cacheable=not request.bypass_cache)
        shapes = config.shapes
        first = first_token(config, request.target)
        if (
            request.options.changed().keys() <= _USUAL_OPTIONS
            and request.glossary is None
            and request.formality is None
        ):
            params = _usual_params(limits, shapes, first, request.options.beam_size)
        else:
            params = replace(limits.sentence_params(request, shapes), first_token=first)
        if request.format != "text" and request.options.is_about_whole_texts:
            raise InvalidRequest(
                "`target_prefix`, `required_phrases`, `return_alternatives` and `split` false are about whole texts; "
                f"they cannot be combined with format {request.format}"
            )
        self._resolver = ParamsResolver(params, request.options, tokenizer, shapes, request.target)
        self._glossary = request.glossary
        self._has_formality = request.formality is not None
        self._is_whole = request.options.is_about_whole_texts
        self._shapes = shapes
        self._max_beam_size = limits.max_beam_size
        self.seed = params.sampling.seed if params.sampling else None

    def check_texts(self, num_texts: int) -> None:
        """Raise `InvalidRequest` or `TextTooLong` for options that no sentence of a text can be decoded with."""
        for index in range(num_texts):
            self._resolver.resolve(index, 1)

    def fits(self, part: Part) -> bool:
        """Return whether the model takes a part; its tokens are known then."""
        if part.source is None:
            part.source = self.tokens(part.sentence.text)
        return len(part.source) <= self._shapes.max_source_tokens

    def jobs(self, parts: Iterable[Part]) -> list[Job]:
        """Return jobs for parts of sentences, with their requests.

        Raises `TextTooLong` for a part that is too long for the model, and `InvalidRequest` for glossary terms that the
        model cannot write.
        """
        return [self._job(part) for part in parts]

    def _job(self, part: Part) -> Job:
        checkpoint()
        source = self.tokens(part.sentence.text) if part.source is None else part.source
        limit = self._shapes.max_source_tokens
        if len(source) > limit:
            what = "a text taken as one sentence" if self._is_whole else "a part of the text that cannot be divided"
            raise TextTooLong(f"{what} has {len(source)} tokens; this model takes {limit}")
        terms = () if self._glossary is None else self._glossary.target_terms(part.sentence.text)
        params = self._resolver.resolve(part.text, len(source), (*terms, *part.required), part.goes_on)
        if part.sentence.needs_attention and not params.return_attention:
            params = self.attending(params)
        if _returns_beams(params):
            if self._has_formality:
                params = _with_beams(params, min(max(params.beam_size, _MIN_BEAMS), self._max_beam_size))
            elif part.has_few_beams:
                params = _with_beams(params, min(params.beam_size, _BEAMS_FOR_PARTS))
            elif (part.needs_beams or part.sentence.shown) and params.num_hypotheses < params.beam_size:
                params = _with_beams(params, params.beam_size)
        if part.needs_beams and not params.options.return_scores:
            params = _with_scores(params)
        if part.prefix:
            num_left = self._shapes.max_target_tokens - len(part.prefix)
            params = replace(
                params, target_prefix=part.prefix, max_new_tokens=max(min(params.max_new_tokens, num_left), 1)
            )
        if part.suppressed:
            params = replace(params, suppress_phrases=(*params.suppress_phrases, *part.suppressed))
        return Job(part.sentence, self.request(source, first_in_prefix(params, self._shapes)))

    def attending(self, params: SentenceParams) -> SentenceParams:
        """Return parameters with which attention is recorded."""
        layer = max(self._shapes.num_decoder_layers - 2, 0)  # its attention is clearer than that of the last one
        return replace(params, return_attention=True, alignment_layer=layer)

    def forced(self, text: str, target: Sequence[int], params: SentenceParams) -> Request | None:
        """Return the request that scores a translation of a text; None if one is too long for the model."""
        source, first = self.tokens(text), self._resolver.params.first_token
        tokens = (*(() if first is None else (first,)), *target, self._tokenizer.end_token)
        if len(source) > self._shapes.max_source_tokens or len(tokens) > self._shapes.max_target_tokens:
            return None
        params = replace(params, forced_target=tokens, first_token=first)
        return self.request(source, params)

    def writable(self, terms: Iterable[Sequence[str]]) -> list[Targets]:
        """Return terms with the alternatives that the model can write, if it searches with beams."""
        params = self._resolver.params
        if self._max_beam_size <= 1 or params.decodes_independently or params.options.num_beam_groups > 1:
            return []
        unknown, found, num_left = self._tokenizer.unknown_token, [], MAX_REQUIRED_TOKENS
        for term in terms:
            tokens = {each: self._tokenizer.encode_target(each) for each in term}
            writable = tuple(each for each in term if tokens[each] and unknown not in tokens[each])
            num_left -= sum(len(tokens[each]) for each in writable)
            if writable and num_left >= 0:
                found.append(writable)
        return found


@lru_cache(maxsize=256)
def _with_scores(params: SentenceParams) -> SentenceParams:
    """Return the parameters of a search with scores, without which a second attempt cannot be compared with it."""
    return replace(params, options=params.options.with_changes(return_scores=True))


@lru_cache(maxsize=256)
def _with_beams(params: SentenceParams, beam_size: int) -> SentenceParams:
    """Return the parameters of a search that returns all of its beams."""
    return replace(params, beam_size=beam_size, num_hypotheses=beam_size)


def first_in_prefix(params: SentenceParams, shapes: Shapes) -> SentenceParams:
    """Move the first token into the target prefix, if there is one or if hypotheses differ from their first token."""
    if params.first_token is None or not (params.target_prefix or params.decodes_independently):
        return params
    prefix = (params.first_token, *params.target_prefix)
    max_new_tokens = min(params.max_new_tokens, shapes.max_target_tokens - len(prefix))
    return replace(params, first_token=None, target_prefix=prefix, max_new_tokens=max_new_tokens)


def _returns_beams(params: SentenceParams) -> bool:
    """Return whether a search can return all its beams as hypotheses."""
    options = params.options
    return not params.decodes_independently and options.num_beam_groups == 1 and options.patience >= 1


def fitted(index: int, source: TokenIds, config: BundleConfig, *, truncate: bool) -> TokenIds:
    """Return the source of the text at `index`, shortened before its control tokens if the model takes no longer one.

    Raises `TextTooLong` for a longer source that must not be truncated.
    """
    limit, described = config.shapes.max_source_tokens, config.tokenizer
    if len(source) <= limit:
        return source
    if not truncate:
        raise TextTooLong(
            f"text {index} must have at most {limit} tokens with this model. Given: {len(source)}; "
            "shorten it, or set `truncate` to drop its end"
        )
    num_after = 1 if described.after is None else len(described.after)
    num_after += described.source_language_last and bool(described.source_language_tokens)
    return np.concatenate([source[: limit - num_after], source[len(source) - num_after :]])
