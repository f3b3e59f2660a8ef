"""Decoding options. Each is declared once: type, range, default, description, and the searches that it applies to.

Request bodies inherit these fields, `kvasir translate` has a flag for each, and docs/options.md is printed from them.
`check_options` checks options against each other and the request; their ranges are checked when they are created.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from server.interface.errors import InvalidRequest


class SearchMode(Flag):
    """How a request searches for its translations."""

    GREEDY = auto()
    BEAM = auto()
    SAMPLING = auto()
    ALTERNATIVES = auto()  # different first tokens, each continued greedily


GREEDY, BEAM, SAMPLING, ALTERNATIVES = SearchMode


@dataclass(frozen=True, slots=True)
class Applies:
    """The search modes that an option has an effect in, and the options that it cannot be combined with."""

    modes: SearchMode
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """Marks an option that reaches the engine as a field of `SentenceParams`.

    The options inside `SentenceParams` hold its default instead, so that equal sentences of different requests are
    equal to the sentence cache.
    """


RESOLVED: Final = Resolved()


MAX_LENGTH_PENALTY = 10.0  # of either sign


class DetailOptions(BaseModel):
    """Decoding options that apply to given translations as well: the score, and details of tokens."""

    # Strict: a client that sends true or "4" for a number has a bug, which a conversion would hide.
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    length_penalty: Annotated[
        float,
        Field(
            ge=-MAX_LENGTH_PENALTY,
            le=MAX_LENGTH_PENALTY,
            description="exponent of the length in the score of a hypothesis; above 0 favours longer translations",
        ),
    ] = 1.0
    return_token_scores: Annotated[bool, Field(description="return the log-probability of each token")] = False
    num_token_alternatives: Annotated[
        int, Field(ge=0, le=10, description="number of most likely tokens to return at each position")
    ] = 0
    return_alignments: Annotated[
        bool, RESOLVED, Field(description="return the source token that each target token attends to most")
    ] = False
    return_attention: Annotated[
        bool, RESOLVED, Field(description="return all cross-attention weights, target tokens by source tokens")
    ] = False
    alignment_layer: Annotated[
        int, RESOLVED, Field(description="decoder layer of alignments and attention, counted from 0; -1 is the last")
    ] = -1
    alignment_heads: Annotated[
        tuple[int, ...],
        Field(strict=False, max_length=64, description="heads of that layer to average; by default all"),
    ] = ()

    @property
    def wants_details(self) -> bool:
        """Whether the answer has anything for each token."""
        return bool(
            self.return_token_scores or self.num_token_alternatives or self.return_alignments or self.return_attention
        )


# What becomes of a text that is in the target language.
KeepOrTranslate = Literal["keep", "translate"]
OnLowQuality = Literal["flag", "keep_source"]


MAX_BEAM_SIZE = 8  # on any server
MAX_SEED = 2**53 - 1  # JSON readers that keep numbers as doubles read integers exactly up to here
MAX_REQUIRED_TOKENS = 64  # in all phrases of one sentence
MAX_PHRASE_CHARACTERS = 200
DEFAULT_MAX_REPETITIONS = 32  # no sane translation repeats anything this often in a row
_SMALLEST = 0.001


def _check_phrase(phrase: str) -> str:
    if not phrase.strip():
        raise PydanticCustomError("blank_phrase", "a phrase must have characters other than white space")
    return phrase


Phrase = Annotated[str, Field(min_length=1, max_length=MAX_PHRASE_CHARACTERS), AfterValidator(_check_phrase)]


class DecodingOptions(DetailOptions):
    """All decoding options of a request. Without any, the server's default search decodes each sentence."""

    localize_numbers: Annotated[
        bool,
        RESOLVED,
        Field(
            description="write grouped numbers that a model copied, such as 20,000, with the separators of the target "
            "language; false returns them as the model wrote them"
        ),
    ] = True
    split: Annotated[
        bool, RESOLVED, Field(description="divide texts into sentences; false decodes each text as one sentence")
    ] = True
    if_already_target: Annotated[
        KeepOrTranslate | None,
        RESOLVED,
        Field(description="texts that are in the target language already; by default as the server is set: `keep`"),
    ] = None
    repair: Annotated[
        bool | None,
        RESOLVED,
        Field(
            description="decode a sentence again if its translation lacks something, where the bundle has repairs; by "
            "default as the server is set: true"
        ),
    ] = None
    return_quality: Annotated[
        bool,
        RESOLVED,
        Field(description="return the quality of each translation and of its sentences, 0 to 1; see docs/quality.md"),
    ] = False
    min_quality: Annotated[
        float | None,
        RESOLVED,
        Field(ge=0, le=1, description="quality of a sentence below which on_low_quality applies; by default none"),
    ] = None
    on_low_quality: Annotated[
        OnLowQuality | None,
        RESOLVED,
        Field(
            description="sentences with a quality below min_quality: name them, or keep their source; by default as "
            "the server is set: `flag`"
        ),
    ] = None
    beam_size: Annotated[
        int | None,
        RESOLVED,
        Field(
            ge=1,
            le=MAX_BEAM_SIZE,
            description="number of hypotheses that the search keeps; 1 is greedy search; by default 4",
        ),
    ] = None
    num_hypotheses: Annotated[
        int,
        RESOLVED,
        Field(
            ge=1,
            le=MAX_BEAM_SIZE,
            description="number of translations of each text: the best one, and the others as alternatives",
        ),
    ] = 1
    max_new_tokens: Annotated[
        int | None,
        RESOLVED,
        Field(
            ge=1,
            description="maximum tokens of a sentence, its end included; by default three times the tokens of its "
            "source, and at least 50",
        ),
    ] = None
    min_new_tokens: Annotated[
        int,
        RESOLVED,
        Field(ge=0, description="minimum tokens of a sentence, its end not counted; max_length_ratio takes precedence"),
    ] = 0
    max_length_ratio: Annotated[
        float | None,
        RESOLVED,
        Field(ge=0.1, le=100, description="maximum tokens of a sentence for each token of its source"),
    ] = None
    return_scores: Annotated[
        bool, Field(description="return the score and the log-probability of each translation")
    ] = False
    return_alternatives: Annotated[
        bool,
        Applies(ALTERNATIVES),
        Field(
            description="return num_hypotheses translations with different first tokens after target_prefix, each "
            "continued greedily; each text is one sentence"
        ),
    ] = False
    early_stopping: Annotated[
        bool,
        Applies(GREEDY | BEAM),
        Field(description="end a beam search as soon as beam_size * patience hypotheses are complete"),
    ] = False
    patience: Annotated[
        float,
        Applies(BEAM),
        Field(
            ge=0.1,
            le=10,
            description="number of complete hypotheses that end a beam search, as a multiple of beam_size (Kasai et "
            "al. 2022)",
        ),
    ] = 1.0
    coverage_penalty: Annotated[
        float,
        Applies(BEAM),
        Field(ge=0, le=10, description="penalty on source tokens without attention (Wu et al. 2016)"),
    ] = 0.0
    num_beam_groups: Annotated[
        int,
        Applies(BEAM),
        Field(
            ge=1,
            le=8,
            description="number of beam groups, which choose one after the other and end each by itself; must divide "
            "beam_size",
        ),
    ] = 1
    diversity_penalty: Annotated[
        float,
        Applies(BEAM),
        Field(ge=0, le=100, description="penalty on a token for each earlier beam group that chose it at this step"),
    ] = 0.0
    temperature: Annotated[
        float | None,
        RESOLVED,
        Applies(SAMPLING),
        Field(ge=_SMALLEST, le=100, description="sample tokens; below 1 favours likely tokens, above 1 unlikely ones"),
    ] = None
    top_k: Annotated[
        int | None,
        RESOLVED,
        Applies(SAMPLING),
        Field(ge=1, le=1_000_000, description="sample from the k most likely tokens"),
    ] = None
    top_p: Annotated[
        float | None,
        RESOLVED,
        Applies(SAMPLING),
        Field(ge=_SMALLEST, le=1, description="sample from the most likely tokens that together have this probability"),
    ] = None
    min_p: Annotated[
        float | None,
        RESOLVED,
        Applies(SAMPLING),
        Field(ge=0, le=1, description="sample from tokens this likely at least, relative to the most likely one"),
    ] = None
    seed: Annotated[
        int | None,
        RESOLVED,
        Applies(SAMPLING),
        Field(ge=0, le=MAX_SEED, description="sample the same tokens for the same seed; by default a random one"),
    ] = None
    target_prefix: Annotated[
        str | Annotated[tuple[str, ...], Field(strict=False)] | None,
        RESOLVED,
        Field(description="beginning of every translation, or a list of one for each text; each text is one sentence"),
    ] = None
    required_phrases: Annotated[
        tuple[Phrase, ...],
        RESOLVED,
        Applies(BEAM, excludes=("num_beam_groups",)),
        Field(strict=False, max_length=8, description="phrases that each translation has; each text is one sentence"),
    ] = ()
    suppress_phrases: Annotated[
        tuple[Phrase, ...], RESOLVED, Field(strict=False, max_length=64, description="phrases that no translation has")
    ] = ()
    suppress_tokens: Annotated[
        tuple[int, ...], Field(strict=False, max_length=1000, description="ids of tokens that no translation has")
    ] = ()
    no_repeat_ngram_size: Annotated[
        int, Field(ge=0, le=64, description="number of tokens in sequences that cannot occur twice; 0 allows all")
    ] = 0
    repetition_penalty: Annotated[
        float, Field(ge=0.1, le=10, description="above 1 makes tokens less likely that were generated before")
    ] = 1.0
    max_repetitions: Annotated[
        int,
        Field(
            ge=0,
            le=10_000,
            description="end a sentence when 1 to 8 tokens occur more often than this in a row; 0 does not",
        ),
    ] = DEFAULT_MAX_REPETITIONS
    shortlist: Annotated[
        bool | None,
        RESOLVED,
        Field(
            description="restrict each sentence to the tokens that the model's shortlist has for it; by default as the "
            "server is set: true"
        ),
    ] = None

    @classmethod
    def given(cls, values: Mapping[str, object]) -> "DecodingOptions":
        """Return validated options of these values. Raises `ValidationError` of pydantic."""
        return cls.model_validate(values) if values else NO_OPTIONS

    @classmethod
    def of(cls, body: BaseModel) -> "DecodingOptions":
        """Return the decoding options among the fields of `body`."""
        return cls.given({name: getattr(body, name) for name in body.model_fields_set & _NAMES})

    def changed(self) -> dict[str, object]:
        """Return the options whose value differs from the default, in the order of declaration."""
        if not (named := self.model_fields_set):
            return {}
        values = self.__dict__
        return {
            name: values[name]
            for name, default in NO_OPTIONS.__dict__.items()
            if name in named and values[name] != default
        }

    def without_resolved(self) -> "DecodingOptions":
        """Return the options that the engine reads, without those that `SentenceParams` has fields for."""
        kept = {name: value for name, value in self.changed().items() if name not in _RESOLVED_NAMES}
        return DecodingOptions.given(kept)

    def with_changes(self, **changes: object) -> Self:
        """Return a copy with other values, which are not validated."""
        return self.model_copy(update=changes)

    @property
    def is_sampling(self) -> bool:
        """Whether tokens are sampled: any option of sampling asks for it."""
        values = self.__dict__
        return any(values[name] is not None for name in SAMPLING_NAMES)

    @property
    def decodes_independently(self) -> bool:
        """Whether each hypothesis is decoded by itself, without beams."""
        return self.return_alternatives or self.is_sampling

    @property
    def is_about_whole_texts(self) -> bool:
        """Whether each text is decoded as one sentence, because an option cannot be divided among several."""
        return bool(self.target_prefix or self.required_phrases or self.return_alternatives or not self.split)

    def search_mode(self, beam_size: int) -> SearchMode:
        """Return the search that these options ask for, with this many beams where they have an effect."""
        if self.is_sampling:
            return SAMPLING
        if self.return_alternatives:
            return ALTERNATIVES
        return GREEDY if beam_size == 1 else BEAM

    def prefix_of(self, text: int) -> str:
        """Return the target prefix of the text with this number."""
        if isinstance(self.target_prefix, tuple):
            return self.target_prefix[text]
        return self.target_prefix or ""


def applies(name: str) -> Applies | None:
    """Return where the option with this name applies; None if it applies everywhere."""
    return next((each for each in DecodingOptions.model_fields[name].metadata if isinstance(each, Applies)), None)


NO_OPTIONS: Final = DecodingOptions()
_NAMES: Final = frozenset(DecodingOptions.model_fields)
_RESOLVED_NAMES: Final = frozenset(
    name for name, field in DecodingOptions.model_fields.items() if RESOLVED in field.metadata
)
SAMPLING_NAMES: Final = tuple(name for name in DecodingOptions.model_fields if applies(name) == Applies(SAMPLING))


def check_options(options: DecodingOptions, beam_size: int, max_new_tokens: int, num_texts: int) -> None:
    """Raise `InvalidRequest` for two options that contradict each other, or one that contradicts the request.

    `beam_size` and `max_new_tokens` are the values in force, which may be defaults of the server or the model.
    """
    if options is NO_OPTIONS:
        return
    for problems in (_not_applicable, _contradictory_values):
        for problem in problems(options, beam_size):
            raise InvalidRequest(problem)
    if isinstance(options.target_prefix, tuple) and len(options.target_prefix) != num_texts:
        raise InvalidRequest(
            f"`target_prefix` has {len(options.target_prefix)} entries for {num_texts} texts; "
            "give one for each text, or one for all"
        )
    if options.min_new_tokens >= max_new_tokens:
        raise InvalidRequest(
            "`min_new_tokens` must be below `max_new_tokens`, which counts the end of the sentence. "
            f"Given: min_new_tokens is {options.min_new_tokens}, max_new_tokens is {max_new_tokens}"
        )


def _not_applicable(options: DecodingOptions, beam_size: int) -> Iterator[str]:
    """Yield a message for each option that has no effect in this search, or excludes another one."""
    changed = options.changed()
    mode = options.search_mode(beam_size)
    chosen_by = next((name for name in SAMPLING_NAMES if name in changed), "return_alternatives")
    if options.decodes_independently and (options.beam_size or 1) > 1:
        yield f"`{chosen_by}` cannot be combined with a beam_size of {options.beam_size}: it does not use beams"
    for name in changed:
        applicable = applies(name)
        if applicable is None:
            continue
        if not mode & applicable.modes:
            if mode is GREEDY:
                yield f"`{name}` needs a beam_size of 2 or more. Given: {beam_size}"
            else:
                yield f"`{chosen_by}` cannot be combined with `{name}`"
        for other in applicable.excludes:
            if other in changed:
                yield f"`{name}` cannot be combined with `{other}`"


def _contradictory_values(options: DecodingOptions, beam_size: int) -> Iterator[str]:
    """Yield a message for each two options whose values contradict each other."""
    groups = options.num_beam_groups
    if not options.decodes_independently and beam_size % groups:
        yield f"`num_beam_groups` must divide beam_size. Given: num_beam_groups is {groups}, beam_size is {beam_size}"
    if options.diversity_penalty and groups == 1:
        yield f"`diversity_penalty` is {options.diversity_penalty:g}; set `num_beam_groups` to 2 or more to use it"
    if both := set(options.required_phrases) & set(options.suppress_phrases):
        yield f"`required_phrases` and `suppress_phrases` both have {min(both)!r}; remove it from one of them"
