"""Limits of one server on translation requests: beams, lengths and deadlines, checked before decoding."""

from dataclasses import dataclass

from bundle.manifest import Shapes
from server.interface.client_identity import limits_of_client
from server.interface.decoding_options import (
    MAX_BEAM_SIZE,
    DecodingOptions,
    DetailOptions,
    KeepOrTranslate,
    OnLowQuality,
    check_options,
)
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import Sampling, SentenceParams, num_hypotheses_held
from server.translation.types import TranslationRequest


@dataclass(frozen=True, slots=True)
class TranslationLimits:
    """The limits and defaults of one server. None is no limit."""

    max_texts: int | None = None
    max_text_characters: int | None = None
    max_beam_size: int = MAX_BEAM_SIZE
    default_beam_size: int = 4
    max_timeout_seconds: float | None = None
    if_already_target: KeepOrTranslate = "keep"
    repair: bool = True
    min_quality: float | None = None
    on_low_quality: OnLowQuality = "flag"
    shortlist: bool = True
    joins_lines: bool = False

    def keeps_target(self, options: DecodingOptions) -> bool:
        """Return whether texts in the target language stay as they are."""
        return (options.if_already_target or self.if_already_target) == "keep"

    def repairs(self, options: DecodingOptions) -> bool:
        """Return whether sentences whose translations lack something are decoded again."""
        return self.repair if options.repair is None else options.repair

    def min_quality_of(self, options: DecodingOptions) -> float | None:
        """Return the quality below which a sentence is doubted; None if no sentence is."""
        return self.min_quality if options.min_quality is None else options.min_quality

    def keeps_low_quality(self, options: DecodingOptions) -> bool:
        """Return whether sentences below the minimum quality stay as they are."""
        return (options.on_low_quality or self.on_low_quality) == "keep_source"

    def estimates_quality(self, options: DecodingOptions) -> bool:
        """Return whether a request needs the quality of its sentences."""
        return options.return_quality or self.min_quality_of(options) is not None

    def uses_shortlist(self, options: DecodingOptions) -> bool:
        """Return whether a shortlist restricts translations. Scores and qualities are those of all tokens."""
        if options.return_scores or options.return_token_scores or options.num_token_alternatives:
            return False
        if self.estimates_quality(options):
            return False
        return self.shortlist if options.shortlist is None else options.shortlist

    def joins(self, request: TranslationRequest) -> bool:
        """Return whether texts are lines of one text, in which a sentence may go on. Raises `InvalidRequest`."""
        can_join = request.format != "xml" and not request.options.is_about_whole_texts
        if request.joins_lines and not can_join:
            raise InvalidRequest(
                "`context` lines cannot be combined with format xml, `target_prefix`, `required_phrases`, "
                "`return_alternatives` and `split` false"
            )
        wanted = self.joins_lines or limits_of_client.get().joins_lines
        return can_join and (wanted if request.joins_lines is None else request.joins_lines)

    def check_size(self, request: TranslationRequest) -> None:
        """Raise `InvalidRequest` or `TextTooLong` if a request has too many texts or characters."""
        if request.size_is_checked:
            return
        if self.max_texts is not None and len(request.texts) > self.max_texts:
            raise InvalidRequest(
                f"a request must have at most {self.max_texts} texts. Given: {len(request.texts)}; send them in parts"
            )
        self.check_characters(request)

    def check_characters(self, request: TranslationRequest) -> None:
        """Raise `TextTooLong` if a request has too many characters."""
        if self.max_text_characters is not None and request.num_input_characters > self.max_text_characters:
            raise TextTooLong(
                f"a request must have at most {self.max_text_characters} characters. "
                f"Given: {request.num_input_characters}; send them in parts"
            )

    def sentence_params(self, request: TranslationRequest, shapes: Shapes) -> SentenceParams:
        """Resolve the options of a request for all its sentences.

        Raises `InvalidRequest` for options that this server or this model does not support.
        """
        options = request.options
        num_hypotheses = options.num_hypotheses
        beam_size = options.beam_size
        if options.decodes_independently:
            beam_size = beam_size or 1
        elif beam_size is None:
            # A request for several hypotheses without a beam size gets as many beams as they need.
            beam_size = max(self.default_beam_size, min(num_hypotheses, self.max_beam_size))
        max_new_tokens = shapes.max_target_tokens if options.max_new_tokens is None else options.max_new_tokens
        _check_range("beam_size", beam_size, self.max_beam_size, "on this server")
        _check_range("max_new_tokens", max_new_tokens, shapes.max_target_tokens, "with this model")
        check_options(options, beam_size, max_new_tokens, len(request.texts))
        groups = options.num_beam_groups
        if request.glossary is not None and (options.decodes_independently or groups > 1):
            raise InvalidRequest(
                "a glossary cannot be combined with sampling, `return_alternatives` or `num_beam_groups`"
            )
        if request.formality is not None and (options.decodes_independently or groups > 1):
            raise InvalidRequest(
                "`formal` cannot be combined with sampling, `return_alternatives` or `num_beam_groups`"
            )
        if options.decodes_independently:
            _check_range("num_hypotheses", num_hypotheses, self.max_beam_size, "on this server")
        else:
            _check_range("num_hypotheses", num_hypotheses, beam_size, f"with a beam_size of {beam_size}")
            held = groups * num_hypotheses_held(options.patience, beam_size // groups)
            _check_range("num_hypotheses", num_hypotheses, held, f"with a patience of {options.patience:g}")
        if unknown := [token for token in options.suppress_tokens if not 0 <= token < shapes.target_vocab_size]:
            raise InvalidRequest(
                f"`suppress_tokens` must be from 0 to {shapes.target_vocab_size - 1} with this model. "
                f"Given: {unknown[0]}"
            )
        self.check_details(options, shapes)
        resolved = options.without_resolved()
        if beam_size == 1 and self.estimates_quality(options):
            resolved = resolved.with_changes(return_scores=True)  # greedy search computes no probabilities without it
        return SentenceParams(
            resolved,
            beam_size=beam_size,
            num_hypotheses=num_hypotheses,
            max_new_tokens=max_new_tokens,
            min_new_tokens=options.min_new_tokens,
            sampling=Sampling.of(options),
            return_attention=options.return_attention or options.return_alignments,
            alignment_layer=options.alignment_layer,
            uses_shortlist=self.uses_shortlist(options),
        )

    @staticmethod
    def check_details(options: DetailOptions, shapes: Shapes) -> None:
        """Raise `InvalidRequest` for a layer or a head that this model does not have."""
        layers, heads = shapes.num_decoder_layers, shapes.num_heads
        if not -layers <= options.alignment_layer < layers:
            raise InvalidRequest(
                f"`alignment_layer` must be from {-layers} to {layers - 1} with this model. "
                f"Given: {options.alignment_layer}"
            )
        if wrong := [head for head in options.alignment_heads if not 0 <= head < heads]:
            raise InvalidRequest(f"`alignment_heads` must be from 0 to {heads - 1} with this model. Given: {wrong[0]}")

    def deadline(self, request: TranslationRequest, arrived: float) -> float | None:
        """Return the deadline of a request, on the clock of `arrived`; None without a limit."""
        limit = self.max_timeout_seconds
        timeout_seconds = limit if request.timeout_seconds is None else request.timeout_seconds
        if timeout_seconds is None:
            return None
        if not timeout_seconds > 0 or (limit is not None and timeout_seconds > limit):
            upper = "" if limit is None else f" and at most {limit:g} on this server"
            raise InvalidRequest(f"`timeout_seconds` must be above 0{upper}. Given: {timeout_seconds:g}")
        return arrived + timeout_seconds


def _check_range(name: str, value: int, limit: int, where: str) -> None:
    if not 1 <= value <= limit:
        raise InvalidRequest(f"`{name}` must be from 1 to {limit} {where}. Given: {value}")
