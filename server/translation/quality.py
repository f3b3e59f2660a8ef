"""Estimated quality of translated sentences, and the sentences that are too doubtful to return."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bundle.manifest import BundleConfig, QualityCalibration
from server.interface.errors import InvalidRequest
from server.interface.interruption import checkpoint
from server.interface.request import Hypothesis
from server.text.protection.masked_sentence import unchanged
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.limits import TranslationLimits
from server.translation.reading import Sentence
from server.translation.submission import num_tokens
from server.translation.types import KeepReason, SentenceQuality, TranslationRequest, TranslationResult

_DIGITS = 4


class QualitySignals(NamedTuple):
    """Numbers about a sentence and its translation from which the quality is estimated.

    `log_probability` is the mean of the tokens of the translation, `source_tokens` the logarithm of their number,
    `characters_per_token` of the source is low if its words are rare, and `length_ratio` is the logarithm of the
    characters of the translation to those of the source.
    """

    log_probability: float
    source_tokens: float
    characters_per_token: float
    length_ratio: float

    @classmethod
    def of(cls, source: str, translation: str, num_source_tokens: int, log_probability: float) -> "QualitySignals":
        """Return the signals of a sentence. Its tokens include the end; `log_probability` is the mean."""
        return cls(
            log_probability,
            math.log(num_source_tokens),
            len(source) / num_source_tokens,
            math.log(max(len(translation), 1) / max(len(source), 1)),
        )


def estimate(signals: QualitySignals, calibration: QualityCalibration) -> float:
    """Return the probability that a translation with these signals is good; NaN without its log-probability."""
    length_deviation = abs(signals.length_ratio - calibration.usual_length_ratio)
    logit = (
        calibration.bias
        + calibration.log_probability * signals.log_probability
        + calibration.source_tokens * signals.source_tokens
        + calibration.characters_per_token * signals.characters_per_token
        + calibration.length_ratio * length_deviation
    )
    return 0.5 + 0.5 * math.tanh(logit / 2)  # the logistic function, without overflow


@dataclass(frozen=True, slots=True)
class QualityCheck:
    """Estimates the quality of the sentences of one request. Thread-safe.

    Sentences below `min_quality` are named, and with `keeps_source` not translated. All sentences are listed with
    `lists_sentences`.
    """

    calibration: QualityCalibration
    tokenizer: Tokenizer
    min_quality: float
    keeps_source: bool
    lists_sentences: bool

    @classmethod
    def of(
        cls,
        request: TranslationRequest,
        limits: TranslationLimits,
        config: BundleConfig,
        tokenizer: Tokenizer,
        *,
        is_streamed: bool = False,
    ) -> "QualityCheck | None":
        """Return the check of a request; None if it needs no quality.

        Raises `InvalidRequest` if a request asks for the quality of a model that is not calibrated. A limit of the
        server applies to calibrated models only.
        """
        options = request.options
        if not limits.estimates_quality(options):
            return None
        if (calibration := config.quality.get(pair_name(request.source, request.target))) is None:
            if options.return_quality or options.min_quality:
                name = "return_quality" if options.return_quality else "min_quality"
                raise InvalidRequest(
                    f"`{name}` needs a calibrated model, and {config.name} is not calibrated for {request.source} to "
                    f"{request.target}; run `kvasir calibrate` with its bundle"
                )
            return None
        # A stream retracts no text. A client that asks for several translations, for samples or for details gets them.
        may_keep = not (
            is_streamed or options.num_hypotheses > 1 or options.decodes_independently or options.wants_details
        )
        return cls(
            calibration,
            tokenizer,
            limits.min_quality_of(options) or 0.0,
            may_keep and limits.keeps_low_quality(options),
            options.return_quality,
        )

    def of_sentence(
        self, source: str, translation: str, num_source_tokens: int, hypotheses: Sequence[Hypothesis]
    ) -> float:
        """Return the quality of a sentence that was decoded in one part or several; NaN without log-probabilities."""
        total = math.fsum([each.log_probability for each in hypotheses])
        mean = total / max(sum(map(num_tokens, hypotheses)), 1)
        signals = QualitySignals.of(source, translation, num_source_tokens, mean)
        return round(estimate(signals, self.calibration), _DIGITS)

    def is_kept(self, assessed: SentenceQuality) -> bool:
        """Return whether the source of a sentence is kept in place of its translation."""
        return self.keeps_source and assessed.quality < self.min_quality

    def assess(self, sentences: Iterable[Sentence]) -> dict[int, list[SentenceQuality]]:
        """Return the quality of all decoded sentences by the index of their text, and keep the sources of some.

        The signals are those of the text that the model read and of the one that it wrote.
        """
        found: dict[int, list[SentenceQuality]] = {}
        for sentence in sentences:
            checkpoint()
            if sentence.kept is not None or not all(job.answers for job in sentence.jobs) or not sentence.jobs:
                continue
            hypotheses = sentence.hypotheses()
            source = " ".join([job.part.text for job in sentence.jobs])
            target = " ".join([self.tokenizer.decode(each.token_ids) for each in hypotheses])
            num_source_tokens = sum([len(job.request.source) for job in sentence.jobs])
            quality = self.of_sentence(source, target, num_source_tokens, hypotheses)
            if math.isnan(quality):
                continue
            assessed = SentenceQuality(sentence.written, sentence.translation, quality)
            found.setdefault(sentence.text, []).append(assessed)
            if self.is_kept(assessed):
                sentence.kept = KeepReason.LOW_QUALITY
                sentence.parts = (unchanged(sentence.unit, (sentence.start, sentence.end)),)
        return found

    def with_qualities(
        self, result: TranslationResult, found: Mapping[int, Sequence[SentenceQuality]]
    ) -> TranslationResult:
        """Return a result with the quality of its texts and their sentences."""
        translations = list(result.translations)
        for index, sentences in found.items():
            translations[index] = replace(
                translations[index],
                quality=_mean([each for each in sentences if not self.is_kept(each)]),
                sentence_quality=tuple(sentences) if self.lists_sentences else (),
                low_quality=tuple([each for each in sentences if each.quality < self.min_quality]),
            )
        return replace(result, translations=translations)


def pair_name(source: str, target: str) -> str:
    """Return the name of a pair of languages in `bundle.json`."""
    return f"{source}-{target}"


def _mean(sentences: Sequence[SentenceQuality]) -> float | None:
    """Return the mean quality of translated sentences, weighted by their characters; None without any."""
    if not sentences:
        return None
    weights = [max(len(each.text), 1) for each in sentences]
    total = math.fsum([each.quality * weight for each, weight in zip(sentences, weights, strict=True)])
    return round(total / sum(weights), _DIGITS)
