"""Values that calls return. Fields that a newer server adds are ignored."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TokenAlternative:
    """A token that the model considered in place of the one it chose, with its log-probability."""

    token: str
    score: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """Token details of one sentence. Details that the request did not ask for are None.

    `alignment` has an index into `source_tokens`, and `attention` a row of weights over them, for each target token but
    the end.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    token_scores: list[float | None] | None = None
    token_alternatives: list[list[TokenAlternative]] | None = None
    alignment: list[int] | None = None
    attention: list[list[float]] | None = None


@dataclass(frozen=True, slots=True)
class ProtectedSpan:
    """A span that had to survive the translation, such as an address, and the means that kept it."""

    text: str
    kind: str
    means: str


@dataclass(frozen=True, slots=True)
class KeptSentence:
    """A text, or a sentence of low quality, that was not translated, and the reason."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class RepairedSentence:
    """A source sentence that was decoded again, and what its first translation lacked."""

    text: str
    repair: str


@dataclass(frozen=True, slots=True)
class NumberDifferences:
    """Numbers of a text without a counterpart in its translation, and numbers that only the translation has."""

    missing: list[str] | None = None
    invented: list[str] | None = None


@dataclass(frozen=True, slots=True)
class SentenceQuality:
    """A translated sentence, and the probability that its translation is good."""

    text: str
    translation: str
    quality: float


@dataclass(frozen=True, slots=True)
class TranslationDetails:
    """Reports on how a translation came about; None where there is nothing to report.

    `formality_mismatches` and `incomplete` list source sentences: those with another form of address than the requested
    one, and those whose translation lacks something.
    """

    protected: list[ProtectedSpan] | None = None
    kept: list[KeptSentence] | None = None
    formality_mismatches: list[str] | None = None
    repaired: list[RepairedSentence] | None = None
    incomplete: list[str] | None = None
    numbers: NumberDifferences | None = None
    quality: list[SentenceQuality] | None = None
    low_quality: list[SentenceQuality] | None = None


@dataclass(frozen=True, slots=True)
class DetectedLanguage:
    """The likeliest source language of a text. `confidence` is a probability, 0 to 1."""

    language: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Detections:
    """Response to a call of `detect`: for each text the languages that it may be in, the most likely first."""

    detections: list[list[DetectedLanguage]]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another translation of the same text. Scores are there with `return_scores`."""

    text: str
    score: float | None = None
    log_probability: float | None = None


@dataclass(frozen=True, slots=True)
class Translation:
    """Translation of one text.

    `finish_reason` is "stop", "length" or "repetition"; the last two mean that a sentence was cut. `score` and
    `log_probability` are there with `return_scores`, `alternatives` with `num_hypotheses`, and `sentences` with any
    option for token details. With source "auto", `translated` is False if `text` is the unchanged source, because that
    is in the target language already or has no letters. `quality`, from 0 to 1, is there with `return_quality` or
    `min_quality`. `details` is None if there is nothing to report.
    """

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: str
    detected_language: DetectedLanguage | None = None
    score: float | None = None
    log_probability: float | None = None
    alternatives: list[Alternative] | None = None
    sentences: list[Sentence] | None = None
    translated: bool | None = None
    quality: float | None = None
    details: TranslationDetails | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TranslationResult:
    """Response to one call, with its translations in the order of the texts.

    `model` names the bundle; two names joined by "+" mean that the second one translated the output of the first one,
    in the language `pivot`. `seed` reproduces sampled translations.
    """

    translations: list[Translation]
    model: str | None = None
    pivot: str | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """Text generated from one text.

    `finish_reason` is "stop", "length" or "repetition". `truncated` is True if the model read only the beginning of the
    text. `score` and `log_probability` are there with `return_scores`, `alternatives` with `num_hypotheses`, and
    `sentence` with any option for token details.
    """

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: str
    truncated: bool | None = None
    score: float | None = None
    log_probability: float | None = None
    alternatives: list[Alternative] | None = None
    sentence: Sentence | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """Response to one call of `generate`, with its texts in the order of the call."""

    generations: list[Generation]
    model: str
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Embedding:
    """Embedding of one text. `truncated` is True if the model read only its beginning."""

    embedding: list[float]
    source_tokens: int
    truncated: bool | None = None


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Response to a call of `embed`."""

    embeddings: list[Embedding]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Next final part of a streamed translation. `index` is the index of its text in the call."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class MeasuredQuality:
    """Quality of a model on one test set, from its model card. `bleu` and `chrf` are from 0 to 100."""

    data: str
    bleu: float
    lines: int | None = None
    search: str | None = None
    chrf: float | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the server. `demonstration`, `purpose` and `quality` are statements of its model card.

    `tasks` are "translate", "generate" and "embed"; `task_names` are values of `task` in `generate`.
    A `calibrated` model estimates the quality of its translations.
    """

    name: str
    source_languages: list[str]
    target_languages: list[str]
    precision: str
    num_parameters: int
    max_source_tokens: int
    max_target_tokens: int
    demonstration: bool = False
    purpose: str | None = None
    quality: list[MeasuredQuality] | None = None
    tasks: list[str] | None = None
    task_names: list[str] | None = None
    calibrated: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """Two languages between which the server translates, directly or through the language `pivot`."""

    source: str
    target: str
    models: list[str]
    pivot: str | None = None


@dataclass(frozen=True, slots=True)
class Models:
    """Models and language pairs of the server."""

    models: list[Model]
    pairs: list[Pair]


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the server, with its name in the requested language and in itself.

    `source` and `target` are whether texts in it are translated, and whether texts are translated into it.
    """

    language: str
    name: str
    own_name: str | None
    source: bool
    target: bool


@dataclass(frozen=True, slots=True)
class Languages:
    """All languages of the server."""

    languages: list[Language]


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest request that the server accepts, and its defaults."""

    max_text_characters: int
    max_texts: int
    max_body_bytes: int
    max_beam_size: int
    default_beam_size: int
    request_timeout_seconds: float
    translation_memories: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """Probability that a model gives to a translation. `sentence` is there with any option for token details."""

    log_probability: float | None
    score: float | None
    target_tokens: int
    sentence: Sentence | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """Response to a call of `score`."""

    scores: list[Score]


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """Why a document failed."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class DocumentDetails:
    """Numbers of sentences of a document that need attention: `kept` by reason. `quality` is the mean of the texts.

    `numbers_differ` counts sentences with a lost or an invented number.
    """

    kept: dict[str, int] | None = None
    repaired: int | None = None
    incomplete: int | None = None
    numbers_differ: int | None = None
    low_quality: int | None = None
    quality: float | None = None


@dataclass(frozen=True, slots=True)
class CaptionCounts:
    """Captions of subtitles that were joined, the cuts that divided them again, and captions too fast to read."""

    joined: int
    cuts: int
    too_fast: int


@dataclass(frozen=True, slots=True)
class Document:
    """State of a document. `status` is "queued", "translating", "done" or "error"; `progress` is 0 to 1.

    `num_texts` texts were found, and `num_translated` of them differ from their source (None until it is done).
    `details` is None if there is nothing to report.
    """

    id: str
    name: str
    status: str
    progress: float
    units_done: int
    num_units: int
    num_characters: int
    num_texts: int = 0
    num_translated: int | None = None
    captions: CaptionCounts | None = None
    seconds_remaining: float | None = None
    error: ErrorInfo | None = None
    details: DocumentDetails | None = None


def parse(kind: type[T], data: Mapping[str, object]) -> T:
    """Build a dataclass from decoded JSON, nested ones included. Raises `KeyError` if a required field is missing."""
    hints = typing.get_type_hints(kind)
    values: dict[str, object] = {}
    for field in dataclasses.fields(typing.cast(Any, kind)):
        if field.name in data:
            values[field.name] = _value(hints[field.name], data[field.name])
        elif field.default is dataclasses.MISSING:
            raise KeyError(field.name)
    return kind(**values)


def _value(hint: Any, value: Any) -> object:  # noqa: ANN401 - annotations and JSON values have no narrower type
    if isinstance(hint, types.UnionType):
        [hint] = [each for each in typing.get_args(hint) if each is not type(None)] or [hint]
    if value is None:
        return None
    if typing.get_origin(hint) is list:
        [item] = typing.get_args(hint)
        return [_value(item, each) for each in value]
    return parse(hint, value) if dataclasses.is_dataclass(hint) and isinstance(hint, type) else value
