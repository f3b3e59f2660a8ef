"""Decoding options of a model's own settings, where a request does not name others."""

from collections.abc import Mapping

from pydantic import ValidationError

from bundle.manifest import Shapes
from server.interface.decoding_options import NO_OPTIONS, SAMPLING, DecodingOptions, applies
from server.translation.limits import TranslationLimits


def with_model_defaults(
    options: DecodingOptions, of_model: Mapping[str, object], limits: TranslationLimits, shapes: Shapes
) -> DecodingOptions:
    """Return the options of a request, completed by those of the model.

    An option of the model gives way to options of the request with which it has no effect or contradicts them: beams
    to sampling, sampling to beams, a minimum length to a maximum below it. By default a text may have as many tokens
    as the model writes.
    """
    given = {name: value for name in options.model_fields_set if (value := getattr(options, name)) is not None}
    defaults = {name: value for name, value in of_model.items() if name not in given and _is_valid(name, value)}
    if "beam_size" in given or options.return_alternatives:
        defaults = {name: value for name, value in defaults.items() if not _is_of_sampling(name)}
    merged = DecodingOptions.given(defaults | given)
    changes: dict[str, object] = {}
    if "beam_size" in defaults:
        beams = min(max(merged.beam_size or 1, options.num_hypotheses), limits.max_beam_size)
        changes["beam_size"] = None if merged.decodes_independently else beams
    beam_size = changes.get("beam_size", merged.beam_size) or limits.default_beam_size
    mode = merged.search_mode(int(str(beam_size)))
    for name in defaults:
        where = applies(name)
        if where is not None and not where.modes & mode:
            changes[name] = getattr(NO_OPTIONS, name)
    limit = merged.max_new_tokens or shapes.max_target_tokens
    if "max_new_tokens" not in given:
        limit = changes["max_new_tokens"] = min(limit, shapes.max_target_tokens)
    if "min_new_tokens" in defaults and merged.min_new_tokens >= limit:
        changes["min_new_tokens"] = limit - 1
    return merged.with_changes(**changes)


def _is_valid(name: str, value: object) -> bool:
    try:
        DecodingOptions.given({name: value})
    except ValidationError:
        return False
    return name in DecodingOptions.model_fields


def _is_of_sampling(name: str) -> bool:
    where = applies(name)
    return where is not None and where.modes == SAMPLING
