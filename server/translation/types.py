"""What is asked of a translator, what comes back, and how much may be asked."""

import math
from dataclasses import dataclass
from typing import Literal

from server.interface.decoding_options import NO_OPTIONS, DecodingOptions
from server.interface.request import FinishReason
from server.text.glossary import Glossary
from server.text.readers.pieces import NO_MARKUP_OPTIONS, MarkupOptions

# html and xml keep their tags; text keeps what is no words in it as well.
TextFormat = Literal["text", "html", "xml"]


@dataclass(frozen=True, slots=True)
class TranslationRequest:
    """Texts to translate and how; None leaves the choice to the server.

    `source` and `target` are languages of the model's bundle. Where a sentence has terms of the `glossary`, its
    translation has theirs, and is found with beams. `max_new_tokens` counts for each sentence; by default it is three
    times its source's tokens, and 50 in any case, as far as the model can write them. With `bypass_cache`
    every sentence is decoded; none comes from the cache or from another request.
    """

    texts: tuple[str, ...]
    source: str
    target: str
    options: DecodingOptions = NO_OPTIONS
    timeout_seconds: float | None = None
    glossary: Glossary | None = None
    size_is_checked: bool = False  # a part, or the second leg, of a request whose size was found good
    continues: bool = False  # the second leg of a request that was taken: it is not refused for want of room
    format: TextFormat = "text"
    markup: MarkupOptions = NO_MARKUP_OPTIONS
    bypass_cache: bool = False

    @property
    def num_characters(self) -> int:
        """Characters of all texts together."""
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
    """One whole translation of a text. `score` and `log_probability` are NaN unless scores were asked for."""

    text: str
    score: float
    log_probability: float = math.nan


@dataclass(frozen=True, slots=True)
class TokenScore:
    """A token that might have stood at a place, and its log-probability there."""

    token: str
    score: float


@dataclass(frozen=True, slots=True)
class SentenceDetails:
    """A sentence token by token, as pieces of text; what was not asked for is None.

    `target_tokens` has the end where the translation has one. `token_scores` are log-probabilities, of every target
    token; `token_alternatives` the most likely pieces at each place, best first, with theirs. `alignment` names the
    source token that each target token but the end looks at most; `attention` has all weights, target by source.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    token_scores: list[float] | None
    token_alternatives: list[list[TokenScore]] | None
    alignment: list[int] | None
    attention: list[list[float]] | None


@dataclass(frozen=True, slots=True)
class Translation:
    """What became of one text.

    Tokens count the end-of-sequence token of every sentence. `finish_reason` is that of the sentence that ended worst.
    `score` is the sentence's score; of several sentences the mean, weighted by their target tokens; `log_probability`
    is their sum. `alternatives` are the second and further hypotheses: the i-th joins the i-th hypothesis of every
    sentence (the last there is, where a sentence has fewer). `sentences` are the details of the best hypotheses.
    """

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason
    score: float
    alternatives: tuple[Alternative, ...] = ()
    log_probability: float = math.nan
    sentences: tuple[SentenceDetails, ...] = ()


@dataclass(frozen=True, slots=True)
class Phases:
    """Where the time of a request went. All but the first are the longest of its sentences, which share steps."""

    tokenize_seconds: float = 0.0
    queue_seconds: float = 0.0
    encode_seconds: float = 0.0
    decode_seconds: float = 0.0
    time_to_first_token_seconds: float = 0.0

    def by_name(self) -> dict[str, float]:
        """The four that answers and logs carry, in seconds, by the names they have there."""
        return {
            "tokenize": self.tokenize_seconds,
            "queue": self.queue_seconds,
            "encode": self.encode_seconds,
            "decode": self.decode_seconds,
        }


@dataclass(frozen=True, slots=True)
class TranslationResult:
    """The translations in the order of the texts, and the numbers that metrics and logs want."""

    translations: list[Translation]
    phases: Phases
    sentence_tokens: list[tuple[int, int]]  # source and target tokens of every sentence that was decoded
    num_splits: int  # places where a sentence was divided because the model takes no longer ones
    seed: int | None = None  # that tokens were drawn with
