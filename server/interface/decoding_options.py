"""What may be asked of decoding beyond beams and lengths, in text, not in tokens; how much; what goes together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from server.interface.errors import InvalidRequest
from server.interface.request import DEFAULT_MAX_REPETITIONS, Sampling

MAX_REQUIRED_TOKENS = 64  # of all phrases of a request


@dataclass(frozen=True, slots=True)
class Range:
    """Values a number may have, both ends included."""

    least: float
    most: float

    def __str__(self) -> str:
        return f"from {self.least:.15g} to {self.most:.15g}"


MAX_PHRASES = 64  # of one request and kind
MAX_REQUIRED_PHRASES = 8
MAX_SUPPRESSED_TOKENS = 1000
MAX_PHRASE_CHARACTERS = 200
_SMALLEST = 0.001

RANGES: Final[Mapping[str, Range]] = {
    "coverage_penalty": Range(0, 10),
    "patience": Range(0.1, 10),
    "num_beam_groups": Range(1, 8),
    "diversity_penalty": Range(0, 100),
    "temperature": Range(_SMALLEST, 100),
    "top_k": Range(1, 1_000_000),
    "top_p": Range(_SMALLEST, 1),
    "min_p": Range(0, 1),
    "seed": Range(0, 2**53 - 1),  # whatever JSON reader is in between knows these exactly
    "no_repeat_ngram_size": Range(0, 64),
    "repetition_penalty": Range(0.1, 10),
    "min_new_tokens": Range(0, 1_000_000),
    "max_length_ratio": Range(0.1, 100),
    "max_repetitions": Range(0, 10_000),
    "num_token_alternatives": Range(0, 10),
}
_OF_BEAMS = ("patience", "coverage_penalty", "num_beam_groups", "diversity_penalty", "required_phrases")
_OF_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "seed")


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """Every one has no effect by default. README.md explains them; what is said of a sentence is of one whole text.

    Naming any of `temperature`, `top_k`, `top_p`, `min_p` and `seed` asks for sampling. `target_prefix` is one for all
    texts, or one for each. `max_length_ratio` limits new tokens by those of the source. Layers count from 0, or from
    the last one with -1.
    """

    coverage_penalty: float = 0.0
    patience: float = 1.0
    num_beam_groups: int = 1
    diversity_penalty: float = 0.0
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None
    target_prefix: str | tuple[str, ...] | None = None
    required_phrases: tuple[str, ...] = ()
    suppress_phrases: tuple[str, ...] = ()
    suppress_tokens: tuple[int, ...] = ()
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    min_new_tokens: int = 0
    max_length_ratio: float | None = None
    max_repetitions: int = DEFAULT_MAX_REPETITIONS
    return_alternatives: bool = False
    return_token_scores: bool = False
    num_token_alternatives: int = 0
    return_alignments: bool = False
    return_attention: bool = False
    alignment_layer: int = -1
    alignment_heads: tuple[int, ...] = ()

    @property
    def is_sampling(self) -> bool:
        """Whether tokens are drawn."""
        return any(getattr(self, name) is not None for name in _OF_SAMPLING)

    @property
    def decodes_independently(self) -> bool:
        """Whether answers are found one by one instead of by beams."""
        return self.is_sampling or self.return_alternatives

    @property
    def is_about_whole_texts(self) -> bool:
        """Whether each text is taken as one sentence: what is asked for could not be shared out among several."""
        return bool(self.target_prefix or self.required_phrases or self.return_alternatives)

    @property
    def wants_details(self) -> bool:
        """Whether anything is answered of each token."""
        return bool(
            self.return_token_scores or self.num_token_alternatives or self.return_alignments or self.return_attention
        )

    def sampling(self, draw_seed: Callable[[], int]) -> Sampling | None:
        """How tokens are drawn, with a seed of `draw_seed` where none was named."""
        if not self.is_sampling:
            return None
        return Sampling(
            temperature=1.0 if self.temperature is None else self.temperature,
            top_k=self.top_k or 0,
            top_p=1.0 if self.top_p is None else self.top_p,
            min_p=self.min_p or 0.0,
            seed=draw_seed() if self.seed is None else self.seed,
        )

    def prefix_of(self, text: int) -> str:
        """The target prefix of the text with this number."""
        if isinstance(self.target_prefix, tuple):
            return self.target_prefix[text]
        return self.target_prefix or ""


def decoding_options(named: Mapping[str, object]) -> DecodingOptions:
    """Those of `named` that are options of decoding; lists become tuples, and None is what it is by default."""
    options: dict[str, Any] = {
        field.name: tuple(value) if isinstance(value, list) else value
        for field in fields(DecodingOptions)
        if (value := named.get(field.name)) is not None
    }
    return DecodingOptions(**options)


NO_OPTIONS: Final = DecodingOptions()


@dataclass(frozen=True, slots=True)
class AskedOfBeams:
    """What a request asks of its search, beside its options, and how many texts it is for."""

    num_texts: int
    beam_size: int
    beam_size_was_named: bool
    num_hypotheses: int
    early_stopping: bool
    max_new_tokens: int


def check_options(options: DecodingOptions, asked: AskedOfBeams) -> None:
    """Raise `InvalidRequest` for a value beyond its range, and for two options that contradict each other."""
    for name, range_ in RANGES.items():
        value = getattr(options, name)
        if value is not None and not range_.least <= value <= range_.most:
            raise InvalidRequest(f"{name} is {value:.15g}; it must be {range_}")
    _check_sizes(options, asked)
    for reason in _contradictions(options, asked):
        raise InvalidRequest(reason)


def _check_sizes(options: DecodingOptions, asked: AskedOfBeams) -> None:
    for name, most in (
        ("required_phrases", MAX_REQUIRED_PHRASES),
        ("suppress_phrases", MAX_PHRASES),
        ("suppress_tokens", MAX_SUPPRESSED_TOKENS),
    ):
        if (number := len(getattr(options, name))) > most:
            raise InvalidRequest(f"{name} has {number} entries; it may have {most}")
    for name in ("required_phrases", "suppress_phrases"):
        for phrase in getattr(options, name):
            if not phrase.strip() or len(phrase) > MAX_PHRASE_CHARACTERS:
                raise InvalidRequest(
                    f"{name} holds a phrase of {len(phrase)} characters; it must have from 1 to "
                    f"{MAX_PHRASE_CHARACTERS}, and not only spaces"
                )
    if isinstance(options.target_prefix, tuple) and len(options.target_prefix) != asked.num_texts:
        raise InvalidRequest(
            f"target_prefix has {len(options.target_prefix)} entries for {asked.num_texts} texts: "
            "give one for each, or a single one for all"
        )


def _contradictions(options: DecodingOptions, asked: AskedOfBeams) -> list[str]:
    """What does not go together, each with both names."""
    found: list[str] = []
    changed = {field.name for field in fields(options) if getattr(options, field.name) != field.default}
    if options.decodes_independently:
        alone = next((name for name in _OF_SAMPLING if name in changed), "return_alternatives")
        against = [name for name in _OF_BEAMS if name in changed]
        if asked.beam_size_was_named and asked.beam_size > 1:
            against.insert(0, f"beam_size of {asked.beam_size}")
        if asked.early_stopping:
            against.append("early_stopping")
        if options.is_sampling and options.return_alternatives:
            against.append("return_alternatives")
        found += [f"{alone} does not go together with {name}: it follows no beams" for name in against]
    elif asked.beam_size == 1:
        found += [
            f"{name} needs a beam_size of 2 or more, not 1"
            for name in ("patience", "coverage_penalty", "required_phrases")
            if name in changed
        ]
    if not options.decodes_independently and asked.beam_size % options.num_beam_groups:
        found.append(
            f"num_beam_groups is {options.num_beam_groups} and beam_size {asked.beam_size}: "
            "groups must divide beam_size without a rest"
        )
    if options.diversity_penalty and options.num_beam_groups == 1:
        found.append(f"diversity_penalty is {options.diversity_penalty:g}, but num_beam_groups is 1: name 2 or more")
    if options.required_phrases and options.num_beam_groups > 1:
        found.append("required_phrases does not go together with num_beam_groups")
    if both := set(options.required_phrases) & set(options.suppress_phrases):
        found.append(f"required_phrases and suppress_phrases both have {min(both)!r}")
    if options.min_new_tokens >= asked.max_new_tokens:
        found.append(
            f"min_new_tokens is {options.min_new_tokens} and max_new_tokens {asked.max_new_tokens}, "
            "which counts the end as well: min_new_tokens must be less"
        )
    return found
