"""Parameters of a sentence by the names of their values, whether these are options or resolved from options."""

from dataclasses import fields

from server.interface.decoding_options import DecodingOptions
from server.interface.request import SentenceParams

_RESOLVED = {field.name for field in fields(SentenceParams) if field.init} - {"options"}
_POSITIONAL = ("beam_size", "length_penalty", "max_new_tokens", "num_hypotheses", "early_stopping")


def sentence_params(*positional: float, **named: object) -> SentenceParams:
    """Return parameters with these values; the first ones may come without their names."""
    values = {**dict(zip(_POSITIONAL, positional, strict=False)), **named}
    options = DecodingOptions.given({name: value for name, value in values.items() if name not in _RESOLVED})
    resolved = {name: value for name, value in values.items() if name in _RESOLVED}
    return SentenceParams(options, **resolved)  # type: ignore[arg-type]  # the caller names values of these types


def changed(params: SentenceParams, **values: object) -> SentenceParams:
    """Return the parameters with other values."""
    resolved = {name: getattr(params, name) for name in _RESOLVED}
    return sentence_params(**{**params.options.changed(), **resolved, **values})
