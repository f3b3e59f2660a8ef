"""The short path of texts that have nothing to protect: one request a sentence, and no object besides."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from bundle.manifest import BundleConfig
from server.interface.engine_client import EngineClient
from server.interface.interruption import checkpoint
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.text.protection.means import NegationMeans, next_negation_means
from server.text.source_check import KeepReason
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.deadline import Deadline
from server.translation.limits import TranslationLimits
from server.translation.plain_encoding import EncodedTexts, PlainTextEncoder
from server.translation.quality import QualityCheck
from server.translation.reading import TextReader
from server.translation.recovery import Recovery, Suspect, with_outcomes
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.source_checks import RequestCheck, SourceChecks, kept_counts
from server.translation.submission import Submission, mean_score, num_tokens
from server.translation.token_counts import TokenCounts
from server.translation.types import (
    KeptSentence,
    Phases,
    SentenceQuality,
    Translation,
    TranslationRequest,
    TranslationResult,
)

# The means to try for the negation of each sentence, by the index of its text and the sentence.
LostNegations = Mapping[tuple[int, str], NegationMeans]

NO_NEGATIONS: LostNegations = MappingProxyType({})

_TEXT_CHARACTERS = 40  # a text of one letter takes as long as this many in a long text


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
    ) -> tuple[TranslationResult, LostNegations] | None:
        """Return the translations, and the sentences that lost a negation: their texts need the general path.

        Returns None if a text needs the general path. `request` must have plain options.
        """
        quality = QualityCheck.of(request, self._limits, self._config, self._tokenizer)
        size = request.num_characters + _TEXT_CHARACTERS * len(request.texts)
        run = self._reader.runner(request, size, True, deadline)
        check = None if self._checks is None else self._checks.of(request)
        encoded = await run(self._encode, request, deadline, check)
        if encoded is None:
            return None
        submission = Submission(self._engine, deadline, arrived, accepted_earlier=request.accepted_earlier)
        completions = await submission.submit(encoded.requests)
        best, lost = await run(self._choose, encoded, completions)
        suspects = await run(_suspects, encoded, completions, best, lost, self._tokenizer)
        if suspects:
            await encoded.recovery.recover(list(suspects.values()), submission)
            encoded.recovery.settle(suspects.values())
        result = await run(self._assemble, encoded, best, submission.phases, check, suspects, quality)
        return result, _lost_negations(encoded, lost) if lost else NO_NEGATIONS

    def _encode(
        self, request: TranslationRequest, deadline: Deadline, check: RequestCheck | None
    ) -> EncodedTexts | None:
        if any(map(self._reader.may_be_special, request.texts)):
            return None
        encoder = SentenceEncoder(request, self._limits, self._tokenizer, self._config, deadline.at)
        max_tokens = self._config.shapes.max_source_tokens
        target_words = self._reader.truecaser(request.target, is_target=True)
        recovery = Recovery(request, self._limits, self._tokenizer, encoder, target_words)
        truecaser = self._reader.truecaser(request.source)
        return PlainTextEncoder(request, encoder, truecaser, max_tokens, check, recovery).encode()

    def _choose(
        self, encoded: EncodedTexts, completions: Mapping[int, Completion]
    ) -> tuple[dict[int, Hypothesis], set[int]]:
        """Return the best hypotheses, those with the negation of their source, and the ids of requests without any."""
        best = {id_: completion.hypotheses[0] for id_, completion in completions.items()}
        lost: set[int] = set()
        for id_, negation in encoded.negations.items():
            for hypothesis in completions[id_].hypotheses:
                if negation.is_in(self._tokenizer.decode(hypothesis.token_ids)):
                    best[id_] = hypothesis
                    break
            else:
                lost.add(id_)
        return best, lost

    def _assemble(
        self,
        encoded: EncodedTexts,
        best: Mapping[int, Hypothesis],
        phases: Phases,
        check: RequestCheck | None,
        suspects: Mapping[int, Suspect],
        quality: QualityCheck | None,
    ) -> TranslationResult:
        sentence_tokens = TokenCounts.of(
            [(len(request.source), num_tokens(best[request.id])) for request in encoded.requests]
        )
        if check is not None and check.doubts:
            _keep_doubtful(encoded, best, check)
        qualities = {} if quality is None else self._assess(encoded, best, suspects, quality)
        translations = [self._translation(parts, best, suspects) for parts in encoded.parts]
        for index, kept in encoded.kept.items():
            translations[index] = replace(translations[index], kept=tuple(kept))
        result = TranslationResult(
            translations,
            phases,
            sentence_tokens,
            encoded.num_splits,
            encoded.seed,
            kept_sentences=kept_counts(encoded.kept.values()),
        )
        result = with_outcomes(result, list(suspects.values()))
        return result if quality is None else quality.with_qualities(result, qualities)

    def _assess(
        self,
        encoded: EncodedTexts,
        best: Mapping[int, Hypothesis],
        suspects: Mapping[int, Suspect],
        quality: QualityCheck,
    ) -> dict[int, list[SentenceQuality]]:
        """Return the quality of the sentences of each text, and put sources in the place of some requests."""
        sources = {request.id: text for request, (_, text) in zip(encoded.requests, encoded.sources, strict=True)}
        found: dict[int, list[SentenceQuality]] = {}
        for index, parts in enumerate(encoded.parts):
            checkpoint()
            for position, part in enumerate(parts):
                if isinstance(part, str):
                    continue
                source, suspect = sources[part.id], suspects.get(part.id)
                hypothesis = best[part.id] if suspect is None else suspect.hypothesis
                translation = self._tokenizer.decode(hypothesis.token_ids) if suspect is None else suspect.translation
                estimated = quality.of_sentence(source, translation, len(part.source), [hypothesis])
                if math.isnan(estimated):
                    continue
                assessed = SentenceQuality(source, translation, estimated)
                found.setdefault(index, []).append(assessed)
                if quality.is_kept(assessed):
                    parts[position] = source
                    encoded.kept.setdefault(index, []).append(KeptSentence(source, KeepReason.LOW_QUALITY))
        return found

    def _translation(
        self, parts: Sequence[str | Request], hypotheses: Mapping[int, Hypothesis], suspects: Mapping[int, Suspect]
    ) -> Translation:
        written: list[str] = []
        if len(parts) == 1 and not isinstance(part := parts[0], str) and part.id not in suspects:
            best = hypotheses[part.id]
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
            if (suspect := suspects.get(part.id)) is None:
                best = hypotheses[part.id]
                written.append(self._tokenizer.decode(best.token_ids))
            else:
                best = suspect.hypothesis
                written.append(suspect.translation)
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
    encoded: EncodedTexts,
    completions: Mapping[int, Completion],
    best: Mapping[int, Hypothesis],
    lost: Collection[int],
    tokenizer: Tokenizer,
) -> dict[int, Suspect]:
    """Return the sentences whose translations may lack something, by their requests' ids.

    Those that lost a negation are translated again in any case.
    """
    recovery = encoded.recovery
    if not recovery.checks:
        return {}
    found: dict[int, Suspect] = {}
    for request, (index, source) in zip(encoded.requests, encoded.sources, strict=True):
        hypothesis = best[request.id]
        if recovery.may_be_suspect(source, hypothesis) and request.id not in lost:
            others = completions[request.id].hypotheses[1:] if request.id not in encoded.negations else ()
            suspect = Suspect(index, source, tokenizer.decode(hypothesis.token_ids), hypothesis, others)
            if recovery.is_suspect(suspect):
                found[request.id] = suspect
    return found


def _keep_doubtful(encoded: EncodedTexts, best: Mapping[int, Hypothesis], check: RequestCheck) -> None:
    """Put the sources of sentences that the model does not understand in place of their requests."""
    for request, (index, source) in zip(encoded.requests, encoded.sources, strict=True):
        if check.is_doubtful(source, best[request.id]):
            parts = encoded.parts[index]
            parts[parts.index(request)] = source
            encoded.kept.setdefault(index, []).append(KeptSentence(source, KeepReason.UNINTELLIGIBLE))


def _lost_negations(encoded: EncodedTexts, lost: Collection[int]) -> LostNegations:
    return {
        source: next_negation_means(NegationMeans.HYPOTHESES, request.params.beam_size)
        for request, source in zip(encoded.requests, encoded.sources, strict=True)
        if request.id in lost
    }


def has_plain_options(request: TranslationRequest) -> bool:
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
