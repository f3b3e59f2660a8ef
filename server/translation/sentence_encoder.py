"""From text and options to requests for the engine."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bundle.manifest import BundleConfig, Shapes
from server.interface.decoding_options import MAX_REQUIRED_TOKENS, NO_OPTIONS, DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.interruption import checkpoint
from server.interface.request import Request, SentenceParams, Timings, TokenIds, Tokens
from server.text.glossary import Targets
from server.text.protection.masked_sentence import MaskedSentence
from server.text.protection.word_alignment import Range
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.limits import TranslationLimits
from server.translation.sentence_params import ParamsResolver
from server.translation.sentences import Job
from server.translation.types import TranslationRequest

_USUAL_OPTIONS = frozenset(("beam_size",))
_MIN_BEAMS = 4  # of a search for a form of address or a number that the first one lacks
_BEAMS_FOR_PARTS = 2  # as good as four: docs/decisions/text.md has the numbers
_SENTENCES_AT_ONCE = 64  # half a millisecond


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
        listed = list(parts)
        unknown = [part for part in listed if part.source is None]
        for begin in range(0, len(unknown), _SENTENCES_AT_ONCE):
            checkpoint()
            some = unknown[begin : begin + _SENTENCES_AT_ONCE]
            texts = [part.sentence.text for part in some]
            for part, tokens in zip(some, self._tokenizer.encode_all(texts, self._target, self._source), strict=True):
                part.source = tokens
        return [self._job(part) for part in listed]

    def _job(self, part: Part) -> Job:
        checkpoint()
        source = part.source
        assert source is not None, "all parts have tokens by now"
        limit = self._shapes.max_source_tokens
        if len(source) > limit:
            what = "a text taken as one sentence" if self._is_whole else "a part of the text that cannot be divided"
            raise TextTooLong(f"{what} has {len(source)} tokens; this model takes {limit}")
        terms = () if self._glossary is None else self._glossary.target_terms(part.sentence.text)
        params = self._resolver.resolve(part.text, len(source), (*terms, *part.required), part.goes_on)
        if part.sentence.needs_attention and not params.return_attention:
            layer = max(self._shapes.num_decoder_layers - 2, 0)  # its attention is clearer than that of the last one
            params = replace(params, return_attention=True, alignment_layer=layer)
        if _returns_beams(params):
            if self._has_formality:
                params = _with_beams(params, min(max(params.beam_size, _MIN_BEAMS), self._max_beam_size))
            elif part.has_few_beams:
                params = _with_beams(params, min(params.beam_size, _BEAMS_FOR_PARTS))
            elif (part.needs_beams or part.sentence.shown) and params.num_hypotheses < params.beam_size:
                params = _with_beams(params, params.beam_size)
        if part.prefix:
            num_left = self._shapes.max_target_tokens - len(part.prefix)
            params = replace(
                params, target_prefix=part.prefix, max_new_tokens=max(min(params.max_new_tokens, num_left), 1)
            )
        if part.suppressed:
            params = replace(params, suppress_phrases=(*params.suppress_phrases, *part.suppressed))
        return Job(part.sentence, self.request(source, first_in_prefix(params, self._shapes)))

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
