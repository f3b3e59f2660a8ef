"""Requests for translation, and their results."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bundle.manifest import Repair
from server.interface.decoding_options import NO_OPTIONS, DecodingOptions
from server.interface.request import FinishReason
from server.text.formality import Formality
from server.text.glossary import Glossary
from server.text.protection.masked_sentence import KeptSpan
from server.text.readers.pieces import NO_MARKUP_OPTIONS, MarkupOptions


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """The number of sentences with each number of source tokens, and with each number of target tokens."""

    source: Mapping[int, int]
    target: Mapping[int, int]

    @classmethod
    def of(cls, sentences: Sequence[tuple[int, int]]) -> Self:
        """Count sentences by their numbers of source and target tokens."""
        source, target = zip(*sentences, strict=True) if sentences else ((), ())
        return cls(Counter(source), Counter(target))

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        """Return the counts of the sentences of both."""
        return TokenCounts(Counter(self.source) + Counter(other.source), Counter(self.target) + Counter(other.target))

    @property
    def num_sentences(self) -> int:
        """The number of sentences."""
        return sum(self.source.values())

    @property
    def num_source_tokens(self) -> int:
        """The source tokens of all sentences."""
        return sum([length * number for length, number in self.source.items()])

    @property
    def num_target_tokens(self) -> int:
        """The target tokens of all sentences."""
        return sum([length * number for length, number in self.target.items()])


# html and xml keep their tags; text keeps everything that is not words.
TextFormat = Literal["text", "html", "xml"]
TextContext = Literal["none", "lines"]  # of each text: itself, or the texts around it


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """What a translation memory has for a sentence: `target`, the approved translation of its segment's `source`.

    The `score` is 0 to 100; at 100 `target` is the translation.
    """

    segment: str
    score: int
    target: str
    source: str

    @property
    def is_exact(self) -> bool:
        """Whether `target` is the translation of the sentence."""
        return self.score == 100


class MemoryLookup(Protocol):
    """A look-up in translation memories. It may block."""

    def find(self, text: str, source: str, target: str, *, is_sentence: bool = True) -> MemoryMatch | None:
        """Return the best match for a text between these languages; None if none is good enough.

        Only exact ones count for a text that is not a sentence.
        """
        ...


@dataclass(frozen=True, slots=True)
class TranslationRequest:
    """Texts to translate, and options; None selects the default of the server.

    `source` and `target` are languages of the model's bundle. Where a sentence has terms of the `glossary`, its
    translation has theirs, and is found with beams; `glossary_source` is the language of the terms, None if they are
    for texts of any. `max_new_tokens` counts for each sentence; by default it is three
    times its source's tokens, and 50 in any case, as far as the model can write them. The form of
    address is `formality` where the translation has one; `formality_is_optional` for target languages without rules.
    With `bypass_cache`
    every sentence is decoded; none comes from the cache or from another request. Sentences that the `memory` has are
    not decoded, and similar ones begin as it has them; it is not used for several hypotheses, nor for options about
    whole texts.
    """

    texts: tuple[str, ...]
    source: str
    target: str
    options: DecodingOptions = NO_OPTIONS
    timeout_seconds: float | None = None
    glossary: Glossary | None = None
    glossary_source: str | None = None
    formality: Formality | None = None
    formality_is_optional: bool = False
    size_is_checked: bool = False  # a part, or the second step, of a request whose size was checked
    language_is_detected: bool = False  # no text is in the target language
    accepted_earlier: bool = False  # the second step of an accepted request: a full queue does not reject it
    format: TextFormat = "text"
    markup: MarkupOptions = NO_MARKUP_OPTIONS
    bypass_cache: bool = False
    joins_lines: bool | None = None  # translate texts together that one sentence runs over; None: as the server does
    memory: MemoryLookup | None = None
    in_background: bool = False  # part of a document: however short, it is processed in threads

    @property
    def num_characters(self) -> int:
        """The number of characters in all texts."""
        return sum(map(len, self.texts))

    @property
    def num_input_characters(self) -> int:
        """Characters of all texts and of all options that are texts."""
        options = self.options
        prefix = options.target_prefix or ""
        prefixes = (prefix,) if isinstance(prefix, str) else prefix
        given = (*prefixes, *options.required_phrases, *options.suppress_phrases)
        return self.num_characters + sum(map(len, given))


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another translation of a text. `score` and `log_probability` are NaN unless the request returns scores."""

    text: str
    score: float
    log_probability: float = math.nan


@dataclass(frozen=True, slots=True)
class TokenScore:
    """A possible token at a position, and its log-probability."""

    token: str
    score: float


@dataclass(frozen=True, slots=True)
class SentenceDetails:
    """Details of a sentence, token by token, as pieces of text; None if not requested.

    `target_tokens` has the end where the translation has one. `token_scores` are log-probabilities, of every target
    token; `token_alternatives` the most likely pieces at each place, best first, with theirs. `alignment` names the
    source token that each target token but the end looks at most; `attention` has all weights, target by source.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    token_scores: list[float] | None
    token_alternatives: list[list[TokenScore]] | None
    alignment: list[int] | None
    attention: NDArray[np.float32] | None = field(compare=False)


# Of a sentence whose first translation lacked something.
Outcome = Literal["repaired", "incomplete", "numbers_differ"]


class KeepReason(StrEnum):
    """The reason why a source was kept."""

    NO_WORDS = "no_words"
    ALREADY_IN_TARGET_LANGUAGE = "already_in_target_language"
    LOW_QUALITY = "low_quality"


@dataclass(frozen=True, slots=True)
class KeptSentence:
    """A text, or a sentence of low quality, whose source is its translation, and the reason."""

    text: str
    reason: KeepReason


@dataclass(frozen=True, slots=True)
class RepairedSentence:
    """A sentence whose first translation lacked something, and what improved it."""

    text: str
    repair: Repair


@dataclass(frozen=True, slots=True)
class SentenceQuality:
    """A decoded sentence, its translation, and the probability that the translation is good."""

    text: str
    translation: str
    quality: float


MemoryUse = Literal["exact", "fuzzy", "none"]


@dataclass(frozen=True, slots=True)
class SentenceMemory:
    """What a translation memory had for a sentence: its translation, one of a similar sentence, or nothing.

    `translation` is that of the answer.
    """

    text: str
    translation: str
    match: MemoryMatch | None

    @property
    def use(self) -> MemoryUse:
        """The kind of the match."""
        return "none" if self.match is None else "exact" if self.match.is_exact else "fuzzy"

    @property
    def similar(self) -> MemoryMatch | None:
        """The match, if it is that of another sentence."""
        return self.match if self.use == "fuzzy" else None


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of one text.

    Tokens count the end-of-sequence token of every sentence. `finish_reason` is that of the sentence that ended worst.
    `score` is the sentence's score; of several sentences the mean, weighted by their target tokens; `log_probability`
    is their sum. `alternatives` are the second and further hypotheses: the i-th joins the i-th hypothesis of every
    sentence (the last there is, where a sentence has fewer). `sentences` are the details of the best hypotheses,
    `protected` the spans that had to survive, and the means that kept each. `kept` is what was not translated,
    `formality_mismatches` are translated sentences with another form of address than the requested one. `repaired` are
    sentences whose first translation lacked something, `incomplete` those whose translation still does;
    `missing_numbers` are numbers of the source without a counterpart, `invented_numbers` those that only the
    translation has. `quality` is the mean of
    its sentences, weighted by their characters, and None if none was estimated; `sentence_quality` has the decoded
    sentences if requested, `low_quality` those below the limit.
    """

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason
    score: float
    alternatives: tuple[Alternative, ...] = ()
    log_probability: float = math.nan
    sentences: tuple[SentenceDetails, ...] = ()
    protected: tuple[KeptSpan, ...] = ()
    kept: tuple[KeptSentence, ...] = ()
    formality_mismatches: tuple[str, ...] = ()
    repaired: tuple[RepairedSentence, ...] = ()
    incomplete: tuple[str, ...] = ()
    missing_numbers: tuple[str, ...] = ()
    invented_numbers: tuple[str, ...] = ()
    quality: float | None = None
    sentence_quality: tuple[SentenceQuality, ...] = ()
    low_quality: tuple[SentenceQuality, ...] = ()
    memory: tuple[SentenceMemory, ...] = ()  # of all sentences, if one was looked in


@dataclass(frozen=True, slots=True)
class Phases:
    """The times of a request. All but the first are the longest of its sentences, which share steps."""

    tokenize_seconds: float = 0.0
    queue_seconds: float = 0.0
    encode_seconds: float = 0.0
    decode_seconds: float = 0.0
    time_to_first_token_seconds: float = 0.0

    def by_name(self) -> dict[str, float]:
        """The four times in answers and logs, in seconds, by their names there."""
        return {
            "tokenize": self.tokenize_seconds,
            "queue": self.queue_seconds,
            "encode": self.encode_seconds,
            "decode": self.decode_seconds,
        }

    def then(self, later: "Phases") -> "Phases":
        """Return these phases and those of a later round. The first token is that of the first round with one."""
        return Phases(
            self.tokenize_seconds + later.tokenize_seconds,
            self.queue_seconds + later.queue_seconds,
            self.encode_seconds + later.encode_seconds,
            self.decode_seconds + later.decode_seconds,
            self.time_to_first_token_seconds or later.time_to_first_token_seconds,
        )


def longest(first: Phases, second: Phases) -> Phases:
    """Return the phases of simultaneous rounds: the longer time of each phase."""
    return Phases(*map(max, astuple(first), astuple(second)))


@dataclass(frozen=True, slots=True)
class TranslationResult:
    """The translations in the order of the texts, and the numbers for metrics and logs."""

    translations: list[Translation]
    phases: Phases
    sentence_tokens: TokenCounts
    num_splits: int  # divisions of sentences that are longer than the model takes
    seed: int | None = None  # of sampling
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)

    @property
    def kept_spans(self) -> list[KeptSpan]:
        """The spans of all translations."""
        return [span for each in self.translations for span in each.protected]

    @property
    def kept_sentences(self) -> list[KeptSentence]:
        """The texts and sentences of all translations that were kept."""
        return [kept for each in self.translations for kept in each.kept]

    @property
    def num_low_quality(self) -> int:
        """The number of sentences with a quality below the limit."""
        return sum([len(each.low_quality) for each in self.translations])
