"""Options of requests, under their names in the API; the server documents and checks them."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class DecodingOptions(TypedDict, total=False):
    """Options of decoding, and of the time for an answer."""

    alignment_heads: list[int]
    alignment_layer: int
    beam_size: int
    coverage_penalty: float
    diversity_penalty: float
    early_stopping: bool
    if_already_target: str
    length_penalty: float
    max_length_ratio: float
    max_new_tokens: int
    max_repetitions: int
    localize_numbers: bool
    min_new_tokens: int
    min_p: float
    min_quality: float
    no_repeat_ngram_size: int
    num_beam_groups: int
    num_hypotheses: int
    num_token_alternatives: int
    on_low_quality: str
    patience: float
    repair: bool
    repetition_penalty: float
    required_phrases: Sequence[str]
    return_alignments: bool
    return_alternatives: bool
    return_attention: bool
    return_quality: bool
    return_scores: bool
    return_token_scores: bool
    seed: int
    shortlist: bool
    split: bool
    suppress_phrases: Sequence[str]
    suppress_tokens: Sequence[int]
    target_prefix: str | Sequence[str]
    temperature: float
    timeout_seconds: float
    top_k: int
    top_p: float


class Options(DecodingOptions, total=False):
    """Options of a translation in `POST /v1/translate`."""

    context: str
    formal: bool
    format: str
    glossary: Mapping[str, str | Sequence[str]]
    glossary_id: str
    memory_id: str
    memory_threshold: int


class GenerationOptions(DecodingOptions, total=False):
    """Options of `POST /v1/generate`."""

    model: str
    prefix: str
    task: str
    truncate: bool


class EmbeddingOptions(TypedDict, total=False):
    """Options of `POST /v1/embed`."""

    model: str
    normalize: bool
    pooling: str
    prefix: str
    timeout_seconds: float
    truncate: bool


class ScoreOptions(TypedDict, total=False):
    """Options of `POST /v1/score`."""

    alignment_heads: list[int]
    alignment_layer: int
    length_penalty: float
    num_token_alternatives: int
    return_alignments: bool
    return_attention: bool
    return_token_scores: bool
    timeout_seconds: float


class DocumentOptions(TypedDict, total=False):
    """Options of a document; `format` names the format if the file name has another extension.

    `columns` of a .csv file are separated by commas: names in its first row, or numbers from 1. `delimiter` and
    `encoding` are detected by default.
    """

    beam_size: int
    length_penalty: float
    format: str
    delimiter: str
    columns: str
    encoding: str
    join_captions: bool
    reading_speed: float
    if_already_target: str
    memory_id: str
    memory_threshold: int
    min_quality: float
    on_low_quality: str
    repair: bool
    return_quality: bool
