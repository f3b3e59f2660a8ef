"""From text and options to requests for the engine."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from bundle.manifest import BundleConfig, Shapes
from server.interface.decoding_options import MAX_REQUIRED_TOKENS, NO_OPTIONS, DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.interruption import checkpoint
from server.interface.request import Request, SentenceParams, Timings, TokenIds, Tokens
from server.text.completeness import may_have_parts
from server.text.glossary import Targets
from server.text.protection.means import BEAMS_FOR_NEGATIONS
from server.text.protection.protected import Protected, Restored
from server.text.protection.protected_sentence import PlainSentence
from server.text.protection.word_alignment import Range
from server.text.spelled_out import spelled_out
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.limits import TranslationLimits
from server.translation.protection_strategies import Protection
from server.translation.sentence_params import ParamsResolver, num_required_tokens
from server.translation.sentences import Job, Sentence
from server.translation.source_checks import source_of
from server.translation.types import TranslationRequest

_USUAL_OPTIONS = frozenset(("beam_size",))
_BEAMS_FOR_SUBSTITUTES = 4
_BEAMS_FOR_SECOND_SEARCH = 2  # with items of the same kind or names; docs/decisions/text.md has the numbers


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
    """Builds the engine requests of one call."""

    def __init__(
        self, tokenizer: Tokenizer, source: str, target: str, deadline: float | None, *, cacheable: bool = True
    ) -> None:
        self._tokenizer = tokenizer
        self._source = source
        self._target = target
        self._spelled_out = spelled_out(source, target)
        self._deadline = deadline
        self._cacheable = cacheable

    def tokens(self, text: str) -> TokenIds:
        """Return the tokens of a source text."""
        return self._tokenizer.encode(self._spelled_out.in_full(text), self._target, self._source)

    def tokens_of_all(self, texts: Sequence[str]) -> Sequence[TokenIds]:
        """Return the tokens of several source texts."""
        in_full = self._spelled_out.in_full
        return self._tokenizer.encode_all([in_full(text) for text in texts], self._target, self._source)

    def source_spans(self, text: str) -> Sequence[Range]:
        """Return the range of a source text that each of its tokens covers."""
        return self._spelled_out.ranges_in(text, self._tokenizer.source_spans(self._spelled_out.in_full(text)))

    def request(self, source: TokenIds, params: SentenceParams) -> Request:
        """Return the engine request for one sentence."""
        return Request(source, params, Timings(arrived=0.0), self._deadline, cacheable=self._cacheable)


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
        self._returns_candidates = request.formality is not None
        self._estimates_quality = limits.estimates_quality(request.options)
        self._shapes = shapes
        self._max_beam_size = limits.max_beam_size
        self.seed = params.sampling.seed if params.sampling else None

    def check_texts(self, num_texts: int) -> None:
        """Raise `InvalidRequest` or `TextTooLong` for options that no sentence of a text can be decoded with."""
        for index in range(num_texts):
            self._resolver.resolve(index, 1)

    def sample(self, text: str) -> Request:
        """Return a request for a text as it is, with all its beams as hypotheses."""
        source = self.tokens(text)
        params = self._resolver.resolve(0, len(source))
        return self.request(source, first_in_prefix(replace(params, num_hypotheses=params.beam_size), self._shapes))

    def encode(
        self, sentences: Iterable[Sentence], protection: Protection, suppressed: tuple[Tokens, ...] = ()
    ) -> list[Request]:
        """Return requests for sentences, whose parts become those of this protection, without `suppressed` phrases.

        A sentence keeps its earlier parts if the protection is not applicable, or too long for the model. Raises
        `TextTooLong` for a part without substitutes that is too long, and `InvalidRequest` for glossary terms that the
        model cannot write.
        """
        requests: list[Request] = []
        for sentence in sentences:
            checkpoint()
            parts: list[Job | Restored] = []
            jobs: list[Job] = []
            kept = sentence.kept is not None
            for part in (source_of(sentence),) if kept else protection.protect(sentence) or ():
                if isinstance(part, Restored):
                    parts.append(part)
                elif (job := self._job(sentence, part, suppressed)) is not None:
                    parts.append(job)
                    jobs.append(job)
                else:
                    parts.clear()
                    # Too long as it is: what stands for an item is shorter.
                    sentence.lost = tuple(range(len(sentence.means)))
                    break
            if parts:
                sentence.parts, sentence.jobs = parts, jobs
                requests += [job.request for job in jobs]
        return requests

    def plain_request(self, text: int, sentence: str, source: TokenIds, *, returns_beams: bool = False) -> Request:
        """Return the request for a sentence of the text with this index.

        All beams are hypotheses of sentences of several parts, one of which may lack nothing, or if they are wanted.

        Raises `TextTooLong`.
        """
        if len(source) > self._shapes.max_source_tokens:
            raise self._too_long(PlainSentence(sentence), source)
        params = self._resolver.resolve(text, len(source))
        if (returns_beams or may_have_parts(sentence)) and _returns_beams(params):
            params = _with_all_beams(params)
        return self.request(source, first_in_prefix(params, self._shapes))

    def _too_long(self, part: Protected, source: TokenIds) -> TextTooLong:
        limit = self._shapes.max_source_tokens
        return TextTooLong(f"{part.description} has {len(source)} tokens; this model takes {limit}")

    def _job(self, sentence: Sentence, part: Protected, suppressed: tuple[Tokens, ...]) -> Job | None:
        """Return a part with its request; None if it is too long for the model or the search."""
        required = self._required(part) if part.must_have_substitutes else ()
        if required is None:
            return None
        source = self.tokens(part.text) if sentence.source is None else sentence.source
        if len(source) > self._shapes.max_source_tokens:
            if part.may_lose_items:
                return None
            raise self._too_long(part, source)
        terms = () if self._glossary is None else self._glossary.target_terms(part.text)
        terms = (*terms, *self._writable(part.required_terms))
        params = self._resolver.resolve(sentence.text, len(source), terms, part.is_continuation)
        needs_alignment = part.places_signs or (sentence.unit.tags and _has_tags_inside(sentence))
        if needs_alignment and not params.return_attention:
            layer = max(self._shapes.num_decoder_layers - 2, 0)  # its attention is clearer than that of the last one
            params = replace(params, return_attention=True, alignment_layer=layer)
        if part.needs_beams and _returns_beams(params):
            params = replace(params, beam_size=min(max(params.beam_size, BEAMS_FOR_NEGATIONS), self._max_beam_size))
        if required:
            params = self._requiring(params, required)
            if num_required_tokens(params) > min(MAX_REQUIRED_TOKENS, params.max_new_tokens - 1):
                return None
        elif self._returns_candidates and _returns_beams(params):
            beam_size = min(max(params.beam_size, _BEAMS_FOR_SUBSTITUTES), self._max_beam_size)
            params = replace(params, beam_size=beam_size, num_hypotheses=beam_size)
        elif (part.may_lose_items or may_have_parts(part.text)) and _returns_beams(params):
            if part.was_lost and not part.needs_beams and params.num_hypotheses == 1:
                params = replace(params, beam_size=min(params.beam_size, _BEAMS_FOR_SECOND_SEARCH))
            params = replace(params, num_hypotheses=params.beam_size)
        if part.is_fragment and not terms and params.beam_size > 1 and _returns_beams(params):
            # Beams do not improve fragments.
            params = replace(params, beam_size=1, num_hypotheses=1, options=self._fragment_options(params.options))
        if suppressed:
            params = replace(params, suppress_phrases=(*params.suppress_phrases, *suppressed))
        return Job(part, self.request(source, first_in_prefix(params, self._shapes)))

    def _fragment_options(self, options: DecodingOptions) -> DecodingOptions:
        """Return options for greedy search, with the scores from which the quality is estimated."""
        return options.with_changes(return_scores=True) if self._estimates_quality else options

    def _writable(self, terms: Sequence[Sequence[str]]) -> list[Targets]:
        """Return terms with the alternatives that the model can write, if it searches with beams."""
        params = self._resolver.params
        if not terms or self._max_beam_size <= 1 or params.decodes_independently or params.options.num_beam_groups > 1:
            return []
        unknown = self._tokenizer.unknown_token
        writable = [
            tuple(each for each in term if unknown not in self._tokenizer.encode_target(each)) for term in terms
        ]
        return [term for term in writable if term]

    def _required(self, part: Protected) -> Sequence[Tokens] | None:
        """Return the tokens of the substitutes; None if a search cannot require them."""
        required = [tuple(self._tokenizer.encode_target(name)) for name in part.substitutes]
        can_be_written = all(tokens and self._tokenizer.unknown_token not in tokens for tokens in required)
        limit = min(MAX_REQUIRED_TOKENS, self._shapes.max_target_tokens) // 2
        return required if self._max_beam_size > 1 and can_be_written and _total(required) <= limit else None

    def _requiring(self, params: SentenceParams, required: Sequence[Tokens]) -> SentenceParams:
        """Return the parameters of a beam search that must produce these phrases as well."""
        beam_size = min(max(params.beam_size, _BEAMS_FOR_SUBSTITUTES), self._max_beam_size)
        return replace(
            params,
            beam_size=beam_size,
            num_hypotheses=beam_size,
            options=params.options.with_changes(
                num_beam_groups=1, diversity_penalty=0.0, patience=1.0, return_alternatives=False
            ),
            sampling=None,
            required_phrases=tuple(dict.fromkeys((*params.required_phrases, *required))),
        )


@lru_cache(maxsize=256)
def _with_all_beams(params: SentenceParams) -> SentenceParams:
    return replace(params, num_hypotheses=params.beam_size)


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


def _has_tags_inside(sentence: Sentence) -> bool:
    start, end = sentence.start, sentence.end
    return any(start < cut < end for cut in sentence.unit.cuts(start, end))


def _total(phrases: Sequence[Tokens]) -> int:
    """Return the number of tokens of all phrases."""
    return sum(map(len, phrases))
