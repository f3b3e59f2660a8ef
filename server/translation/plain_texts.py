"""The short path of texts that have nothing to protect: one request a sentence, and no object besides."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bundle.manifest import BundleConfig
from server.interface.engine_client import EngineClient
from server.interface.interruption import checkpoint
from server.interface.request import Completion, FinishReason, Request, TokenIds
from server.text.protection.capitals import is_surely_usual
from server.text.segmentation.sentences import split
from server.text.source_check import KeepReason
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.unicode_text import replace_lone_surrogates
from server.translation.deadline import Deadline
from server.translation.limits import TranslationLimits
from server.translation.reading import TextReader
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.source_checks import RequestCheck, SourceChecks, with_whole_text
from server.translation.submission import Submission, mean_score, num_tokens
from server.translation.types import KeptSentence, Phases, Translation, TranslationRequest, TranslationResult
from server.translation.worker_threads import runner_for

_TEXT_CHARACTERS = 40  # a text of one letter takes as long as this many in a long text


@dataclass(slots=True)
class _EncodedTexts:
    """Parts of each text: white space and text without words as they are, and a request for each sentence.

    `kept` has the sentences of each text that are not decoded, and `sources` the sentence of each request.
    """

    parts: list[list[str | Request]]
    kept: list[list[KeptSentence]]
    sources: dict[int, str]
    requests: list[Request]
    num_splits: int
    seed: int | None


class PlainTextPath:
    """Translates plain texts exactly as the general path does, in a fraction of its time."""

    def __init__(
        self,
        engine: EngineClient,
        limits: TranslationLimits,
        tokenizer: Tokenizer,
        config: BundleConfig,
        reader: TextReader,
        checks: SourceChecks | None = None,
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._tokenizer = tokenizer
        self._config = config
        self._reader = reader
        self._checks = checks

    async def translate(
        self, request: TranslationRequest, deadline: Deadline, arrived: float
    ) -> TranslationResult | None:
        """Return the translations, or None if a text or an option needs the general path."""
        if not _has_plain_options(request):
            return None
        size = request.num_characters + _TEXT_CHARACTERS * len(request.texts)
        run = runner_for(size, True, deadline, self._reader.inline_characters)
        check = None if self._checks is None else self._checks.of(request)
        encoded = await run(self._encode, request, deadline, check)
        if encoded is None:
            return None
        submission = Submission(self._engine, deadline, arrived, accepted_earlier=request.accepted_earlier)
        completions = await submission.submit(encoded.requests)
        return await run(self._assemble, request.texts, encoded, completions, submission.phases, check)

    def _encode(
        self, request: TranslationRequest, deadline: Deadline, check: RequestCheck | None
    ) -> _EncodedTexts | None:
        if any(map(self._reader.may_be_special, request.texts)):
            return None
        encoder = SentenceEncoder(request, self._limits, self._tokenizer, self._config, deadline.at)
        max_tokens = self._config.shapes.max_source_tokens
        sources: dict[str, TokenIds] = {}
        has_unusual_casing = self._reader.truecaser(request.source).has_unusual_casing

        def fits(part: str) -> bool:
            checkpoint()
            if not any(map(str.isalnum, part)):
                return True  # not decoded, so it may be of any length
            sources[part] = source = encoder.tokens(part)
            return len(source) <= max_tokens

        encoded = _EncodedTexts([], [], {}, [], 0, encoder.seed)
        for index, text in enumerate(request.texts):
            parts: list[str | Request] = []
            kept: list[KeptSentence] = []
            for segment in split(replace_lone_surrogates(text), request.source, fits):
                if segment.before:
                    parts.append(segment.before)
                reason = check.reason(segment.text) if check is not None and segment.has_words else None
                if reason is not None:
                    parts.append(segment.text)
                    kept.append(KeptSentence(segment.text, reason))
                elif segment.has_words:
                    if not is_surely_usual(segment.text) and has_unusual_casing(segment.text):
                        return None
                    sentence = encoder.plain_request(index, segment.text, sources[segment.text])
                    parts.append(sentence)
                    encoded.requests.append(sentence)
                    encoded.sources[sentence.id] = segment.text
                else:
                    parts.append(segment.text)
                if segment.after:
                    parts.append(segment.after)
                encoded.num_splits += segment.continues
            encoded.parts.append(parts)
            encoded.kept.append(kept)
        return encoded

    def _assemble(
        self,
        texts: Sequence[str],
        encoded: _EncodedTexts,
        completions: Mapping[int, Completion],
        phases: Phases,
        check: RequestCheck | None,
    ) -> TranslationResult:
        sentence_tokens = [
            (len(request.source), num_tokens(completions[request.id].hypotheses[0])) for request in encoded.requests
        ]
        if check is not None and check.doubts:
            _keep_doubtful(encoded, completions, check)
        translations = [self._translation(parts, completions) for parts in encoded.parts]
        if check is not None:
            translations = [
                _with_kept(*each) for each in zip(translations, texts, encoded.parts, encoded.kept, strict=True)
            ]
        return TranslationResult(translations, phases, sentence_tokens, encoded.num_splits, encoded.seed)

    def _translation(self, parts: Sequence[str | Request], completions: Mapping[int, Completion]) -> Translation:
        written: list[str] = []
        source_tokens = total = 0
        scores: list[float] = []
        lengths: list[int] = []
        log_probabilities: list[float] = []
        reasons: list[FinishReason] = []
        for part in parts:
            if isinstance(part, str):
                written.append(part)
                continue
            best = completions[part.id].hypotheses[0]
            written.append(self._tokenizer.decode(best.token_ids))
            length = num_tokens(best)
            source_tokens += len(part.source)
            total += length
            scores.append(best.score)
            lengths.append(length)
            log_probabilities.append(best.log_probability)
            reasons.append(best.finish_reason)
        return Translation(
            "".join(written),
            source_tokens,
            total,
            FinishReason.of_all(reasons),
            mean_score(scores, lengths),
            log_probability=math.fsum(log_probabilities) if log_probabilities else math.nan,
        )


def _keep_doubtful(encoded: _EncodedTexts, completions: Mapping[int, Completion], check: RequestCheck) -> None:
    """Put the sources of sentences that the model does not understand in place of their requests."""
    for parts, kept in zip(encoded.parts, encoded.kept, strict=True):
        for index, part in enumerate(parts):
            if isinstance(part, str):
                continue
            source = encoded.sources[part.id]
            if check.is_doubtful(source, completions[part.id].hypotheses[0]):
                parts[index] = source
                kept.append(KeptSentence(source, KeepReason.UNINTELLIGIBLE))


def _with_kept(
    translation: Translation, text: str, parts: Sequence[str | Request], kept: Sequence[KeptSentence]
) -> Translation:
    is_decoded = not all(isinstance(part, str) for part in parts)
    if is_decoded and not kept:
        return translation
    found = with_whole_text(kept, replace_lone_surrogates(text), translation.text, is_decoded=is_decoded)
    return replace(translation, kept=found) if found else translation


def _has_plain_options(request: TranslationRequest) -> bool:
    """Return whether no option needs more than the text of the best hypothesis, sentence by sentence."""
    options = request.options
    return (
        request.format == "text"
        and request.glossary is None
        and request.formality is None
        and options.num_hypotheses == 1
        and not options.wants_details
        and not options.is_about_whole_texts
    )
