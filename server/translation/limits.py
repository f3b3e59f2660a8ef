"""Limits of one server on translation requests: beams, lengths and deadlines, checked before decoding."""

import secrets
from dataclasses import dataclass

from bundle.manifest import Shapes
from server.interface.decoding_options import RANGES, AskedOfBeams, DecodingOptions, check_options
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import GenerationParams, num_hypotheses_held
from server.translation.types import TranslationRequest

MAX_BEAM_SIZE = 8  # of any server
MAX_LENGTH_PENALTY = 10.0  # of either sign


@dataclass(frozen=True, slots=True)
class TranslationLimits:
    """How much one request may ask for, and what it gets where it does not ask. None is no limit."""

    max_texts: int | None = None
    max_text_characters: int | None = None
    max_beam_size: int = MAX_BEAM_SIZE
    default_beam_size: int = 4
    max_timeout_seconds: float | None = None

    def check_size(self, request: TranslationRequest) -> None:
        """Raise `InvalidRequest` or `TextTooLong` for more text than one request may hold."""
        if request.size_is_checked:
            return
        if self.max_texts is not None and len(request.texts) > self.max_texts:
            raise InvalidRequest(
                f"{len(request.texts)} texts in one request; this server takes {self.max_texts}: send them in parts"
            )
        self.check_characters(request)

    def check_characters(self, request: TranslationRequest) -> None:
        """Raise `TextTooLong` for more characters than one request may hold."""
        if self.max_text_characters is not None and request.num_characters > self.max_text_characters:
            raise TextTooLong(
                f"{request.num_characters} characters in one request; this server takes {self.max_text_characters}: "
                "send them in parts"
            )

    def generation_params(self, request: TranslationRequest, shapes: Shapes) -> GenerationParams:
        """How to decode each sentence; raises `InvalidRequest` for what this server or this model does not do."""
        options = request.options
        beam_size = request.beam_size
        if options.decodes_independently:
            beam_size = beam_size or 1
        elif beam_size is None:
            # Whoever wants several hypotheses and says nothing of beams wants as many beams as that takes.
            beam_size = max(self.default_beam_size, min(request.num_hypotheses, self.max_beam_size))
        max_new_tokens = shapes.max_target_tokens if request.max_new_tokens is None else request.max_new_tokens
        _check_range("beam_size", beam_size, self.max_beam_size, "on this server")
        _check_range("max_new_tokens", max_new_tokens, shapes.max_target_tokens, "with this model")
        check_options(
            options,
            AskedOfBeams(
                len(request.texts),
                beam_size,
                request.beam_size is not None,
                request.num_hypotheses,
                request.early_stopping,
                max_new_tokens,
            ),
        )
        if request.glossary is not None and (options.decodes_independently or options.num_beam_groups > 1):
            raise InvalidRequest("a glossary does not go together with sampling, return_alternatives or beam groups")
        groups = options.num_beam_groups
        if options.decodes_independently:
            _check_range("num_hypotheses", request.num_hypotheses, self.max_beam_size, "on this server")
        else:
            _check_range("num_hypotheses", request.num_hypotheses, beam_size, f"with a beam_size of {beam_size}")
            held = groups * num_hypotheses_held(options.patience, beam_size // groups)
            _check_range("num_hypotheses", request.num_hypotheses, held, f"with a patience of {options.patience:g}")
        if not abs(request.length_penalty) <= MAX_LENGTH_PENALTY:
            raise InvalidRequest(
                f"length_penalty is {request.length_penalty:g}; "
                f"it must be from {-MAX_LENGTH_PENALTY:g} to {MAX_LENGTH_PENALTY:g}"
            )
        if unknown := [token for token in options.suppress_tokens if not 0 <= token < shapes.target_vocab_size]:
            raise InvalidRequest(
                f"suppress_tokens has {unknown[0]}; it must be from 0 to {shapes.target_vocab_size - 1} with this model"
            )
        self.check_details(options, shapes)
        return GenerationParams(
            beam_size=beam_size,
            length_penalty=request.length_penalty,
            max_new_tokens=max_new_tokens,
            num_hypotheses=request.num_hypotheses,
            early_stopping=request.early_stopping,
            return_scores=request.return_scores,
            coverage_penalty=options.coverage_penalty,
            patience=options.patience,
            num_beam_groups=options.num_beam_groups,
            diversity_penalty=options.diversity_penalty,
            sampling=options.sampling(lambda: secrets.randbelow(int(RANGES["seed"].most) + 1)),
            return_alternatives=options.return_alternatives,
            suppress_tokens=options.suppress_tokens,
            no_repeat_ngram_size=options.no_repeat_ngram_size,
            repetition_penalty=options.repetition_penalty,
            min_new_tokens=options.min_new_tokens,
            max_repetitions=options.max_repetitions,
            return_token_scores=options.return_token_scores,
            num_token_alternatives=options.num_token_alternatives,
            return_attention=options.return_attention or options.return_alignments,
            alignment_layer=options.alignment_layer,
            alignment_heads=options.alignment_heads,
        )

    @staticmethod
    def check_details(options: DecodingOptions, shapes: Shapes) -> None:
        """Raise `InvalidRequest` for details that this model has not."""
        layers, heads = shapes.num_decoder_layers, shapes.num_heads
        if not -layers <= options.alignment_layer < layers:
            raise InvalidRequest(
                f"alignment_layer is {options.alignment_layer}; it must be from {-layers} to {layers - 1} "
                "with this model"
            )
        if wrong := [head for head in options.alignment_heads if not 0 <= head < heads]:
            raise InvalidRequest(f"alignment_heads has {wrong[0]}; it must be from 0 to {heads - 1} with this model")
        range_ = RANGES["num_token_alternatives"]
        if not range_.least <= options.num_token_alternatives <= range_.most:
            raise InvalidRequest(f"num_token_alternatives is {options.num_token_alternatives}; it must be {range_}")

    def deadline(self, request: TranslationRequest, arrived: float) -> float | None:
        """When the request's time is up, on the clock of `arrived`; None without any limit."""
        limit = self.max_timeout_seconds
        timeout_seconds = limit if request.timeout_seconds is None else request.timeout_seconds
        if timeout_seconds is None:
            return None
        if not timeout_seconds > 0 or (limit is not None and timeout_seconds > limit):
            upper = "" if limit is None else f" and at most {limit:g} on this server"
            raise InvalidRequest(f"timeout_seconds is {timeout_seconds:g}; it must be more than 0{upper}")
        return arrived + timeout_seconds


def _check_range(name: str, value: int, limit: int, where: str) -> None:
    if not 1 <= value <= limit:
        raise InvalidRequest(f"{name} is {value}; it must be from 1 to {limit} {where}")
