"""The short path of texts that have nothing to protect: one request a sentence, and no object besides."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bundle.manifest import BundleConfig
from server.interface.engine_client import EngineClient
from server.interface.interruption import checkpoint
from server.interface.request import Completion, FinishReason, Request, TokenIds
from server.text.protection.capitals import is_surely_usual
from server.text.segmentation.sentences import Segment, divided, sentences
from server.text.source_check import KeepReason
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.unicode_text import replace_lone_surrogates
from server.translation.deadline import Deadline
from server.translation.limits import TranslationLimits
from server.translation.reading import TextReader
from server.translation.recovery import Recovery, Suspect, outcome_counts, outcomes_by_text
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.source_checks import RequestCheck, SourceChecks, kept_counts
from server.translation.submission import Submission, mean_score, num_tokens
from server.translation.token_counts import TokenCounts
from server.translation.types import KeptSentence, Phases, Translation, TranslationRequest, TranslationResult

_SENTENCES_AT_ONCE = 64  # half a millisecond
_TEXT_CHARACTERS = 40  # a text of one letter takes as long as this many in a long text


@dataclass(slots=True)
class _EncodedTexts:
    """Parts of each text: white space and text without words as they are, and a request for each sentence.

    `sources` has the text's index and the sentence of each of the `requests`, `kept` the sentences of each text that
    are not decoded.
    """

    parts: list[list[str | Request]]
    requests: list[Request]
    num_splits: int
    seed: int | None
    sources: list[tuple[int, str]]
    kept: dict[int, list[KeptSentence]]
    recovery: Recovery


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
        run = self._reader.runner(request, size, True, deadline)
        check = None if self._checks is None else self._checks.of(request)
        encoded = await run(self._encode, request, deadline, check)
        if encoded is None:
            return None
        submission = Submission(self._engine, deadline, arrived, accepted_earlier=request.accepted_earlier)
        completions = await submission.submit(encoded.requests)
        suspects = await run(_suspects, encoded, completions, self._tokenizer)
        if suspects:
            await encoded.recovery.recover(list(suspects.values()), submission)
            encoded.recovery.settle(suspects.values())
        return await run(self._assemble, encoded, completions, submission.phases, check, suspects)

    def _encode(
        self, request: TranslationRequest, deadline: Deadline, check: RequestCheck | None
    ) -> _EncodedTexts | None:
        if any(map(self._reader.may_be_special, request.texts)):
            return None
        encoder = SentenceEncoder(request, self._limits, self._tokenizer, self._config, deadline.at)
        texts = [sentences(replace_lone_surrogates(text), request.source) for text in request.texts]
        words = [segment.text for segments in texts for segment in segments if segment.has_words]
        reasons = {} if check is None else check.reasons(words)
        if reasons:
            words = [text for text in words if text not in reasons]
        if not self._have_usual_casing(words, request.source):
            return None
        tokens = self._tokens(words, encoder)
        recovery = Recovery(request, self._limits, self._tokenizer, encoder)
        encoded = _EncodedTexts([], [], 0, encoder.seed, [], {}, recovery)
        for index, segments in enumerate(texts):
            num_requests = len(encoded.requests)
            parts: list[str | Request] = []
            for segment in segments:
                source = tokens.get(segment.text)
                if source is None or len(source) <= self._config.shapes.max_source_tokens:
                    self._add(segment, source, index, encoder, parts, encoded)
                elif not self._add_pieces(segment, index, encoder, parts, encoded, request.source):
                    return None
            encoded.parts.append(parts)
            if reasons and any(segment.text in reasons for segment in segments):
                encoded.kept[index] = [
                    KeptSentence(segment.text, reasons[segment.text]) for segment in segments if segment.text in reasons
                ]
            elif (
                check is not None
                and len(encoded.requests) == num_requests
                and (visible := request.texts[index].strip())
            ):
                encoded.kept[index] = [KeptSentence(replace_lone_surrogates(visible), KeepReason.NO_WORDS)]
        return encoded

    def _have_usual_casing(self, texts: Sequence[str], language: str) -> bool:
        has_unusual_casing = self._reader.truecaser(language).has_unusual_casing
        return not any(not is_surely_usual(text) and has_unusual_casing(text) for text in texts)

    def _tokens(self, texts: Sequence[str], encoder: SentenceEncoder) -> dict[str, TokenIds]:
        """Return the tokens of sentences, encoded as many at a time as delay no interruption."""
        tokens: dict[str, TokenIds] = {}
        for begin in range(0, len(texts), _SENTENCES_AT_ONCE):
            checkpoint()
            some = texts[begin : begin + _SENTENCES_AT_ONCE]
            tokens.update(zip(some, encoder.tokens_of_all(some), strict=True))
        return tokens

    def _add(
        self,
        segment: Segment,
        source: TokenIds | None,
        index: int,
        encoder: SentenceEncoder,
        parts: list[str | Request],
        encoded: _EncodedTexts,
    ) -> None:
        """Add a segment of the text with this index, with its tokens if it has words."""
        if segment.before:
            parts.append(segment.before)
        if source is None:
            parts.append(segment.text)
        else:
            sentence = encoder.plain_request(index, segment.text, source)
            parts.append(sentence)
            encoded.requests.append(sentence)
            encoded.sources.append((index, segment.text))
        if segment.after:
            parts.append(segment.after)

    def _add_pieces(
        self,
        sentence: Segment,
        index: int,
        encoder: SentenceEncoder,
        parts: list[str | Request],
        encoded: _EncodedTexts,
        language: str,
    ) -> bool:
        """Add the pieces of a sentence that is too long for the model; False if one has unusual capitals."""
        sources: dict[str, TokenIds] = {}

        def fits(part: str) -> bool:
            checkpoint()
            if not any(map(str.isalnum, part)):
                return True  # not decoded, so it may be of any length
            sources[part] = source = encoder.tokens(part)
            return len(source) <= self._config.shapes.max_source_tokens

        for piece in divided(sentence, fits):
            if piece.has_words and not self._have_usual_casing((piece.text,), language):
                return False
            self._add(piece, sources[piece.text] if piece.has_words else None, index, encoder, parts, encoded)
            encoded.num_splits += piece.continues
        return True

    def _assemble(
        self,
        encoded: _EncodedTexts,
        completions: Mapping[int, Completion],
        phases: Phases,
        check: RequestCheck | None,
        suspects: Mapping[int, Suspect],
    ) -> TranslationResult:
        sentence_tokens = TokenCounts.of(
            [(len(request.source), num_tokens(completions[request.id].hypotheses[0])) for request in encoded.requests]
        )
        if check is not None and check.doubts:
            _keep_doubtful(encoded, completions, check)
        translations = [self._translation(parts, completions, suspects) for parts in encoded.parts]
        for index, outcomes in outcomes_by_text(suspects.values()).items():
            translations[index] = replace(
                translations[index],
                recovered=tuple(outcomes["recovered"]),
                incomplete=tuple(outcomes["incomplete"]),
            )
        for index, kept in encoded.kept.items():
            translations[index] = replace(translations[index], kept=tuple(kept))
        return TranslationResult(
            translations,
            phases,
            sentence_tokens,
            encoded.num_splits,
            encoded.seed,
            kept_sentences=kept_counts(encoded.kept.values()),
            outcomes=outcome_counts(suspects.values()),
        )

    def _translation(
        self, parts: Sequence[str | Request], completions: Mapping[int, Completion], suspects: Mapping[int, Suspect]
    ) -> Translation:
        written: list[str] = []
        if len(parts) == 1 and not isinstance(part := parts[0], str) and part.id not in suspects:
            best = completions[part.id].hypotheses[0]
            length = num_tokens(best)
            return Translation(
                self._tokenizer.decode(best.token_ids),
                len(part.source),
                length,
                FinishReason.of_all((best.finish_reason,)),
                mean_score((best.score,), (length,)),
                log_probability=best.log_probability,
            )
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
            if (suspect := suspects.get(part.id)) is not None:
                best = suspect.hypothesis
                written.append(suspect.translation)
            else:
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


def _suspects(
    encoded: _EncodedTexts, completions: Mapping[int, Completion], tokenizer: Tokenizer
) -> dict[int, Suspect]:
    """Return the sentences whose translations may lack something, by their requests' ids."""
    recovery = encoded.recovery
    if not recovery.checks:
        return {}
    found: dict[int, Suspect] = {}
    for request, (index, source) in zip(encoded.requests, encoded.sources, strict=True):
        best = completions[request.id].hypotheses[0]
        if recovery.may_be_suspect(source, best):
            suspect = Suspect(index, source, tokenizer.decode(best.token_ids), best)
            if recovery.is_suspect(suspect):
                found[request.id] = suspect
    return found


def _keep_doubtful(encoded: _EncodedTexts, completions: Mapping[int, Completion], check: RequestCheck) -> None:
    """Put the sources of sentences that the model does not understand in place of their requests."""
    for request, (index, source) in zip(encoded.requests, encoded.sources, strict=True):
        if check.is_doubtful(source, completions[request.id].hypotheses[0]):
            parts = encoded.parts[index]
            parts[parts.index(request)] = source
            encoded.kept.setdefault(index, []).append(KeptSentence(source, KeepReason.UNINTELLIGIBLE))


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
