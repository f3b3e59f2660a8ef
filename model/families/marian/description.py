"""Configuration of a model in Marian's own format, from the description among its weights.

Names, defaults and meanings are those of marian-dev (src/models/transformer.h, src/common/config_parser.cpp).
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import yaml

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.hugging_face_files import Settings
from model.config import Activation, NormPlacement

LAYER_NORM_EPSILON: Final = 1e-6
_MAX_LEVELS: Final = 32
_ACTIVATIONS: Final[Mapping[str, Activation]] = {"relu": "relu", "swish": "silu"}
# Steps before and after a sub-layer without dropout: a(dd), n(ormalise).
_PLACEMENTS: Final[Mapping[tuple[str, str], NormPlacement]] = {("", "an"): "post", ("n", "a"): "pre"}
_REQUIRED: Final[Mapping[str, tuple[object, ...]]] = {
    "type": ("transformer",),
    "input-types": ([],),
    "layer-normalization": (False,),
    "lemma-dim-emb": (0,),
    "factors-dim-emb": (0,),
    "right-left": (False,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-disable-position-embeddings": (False,),
    "transformer-ffn-depth": (2,),
    "transformer-no-affine": (False,),
    "transformer-no-bias": (False,),
    "transformer-no-projection": (False,),
    "transformer-pool": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-tied-layers": ([],),
    "transformer-train-position-embeddings": (False,),
    "transformer-train-positions": (False,),
    "ulr": (False,),
}


class Description:
    """Fields of a description that change the computation."""

    def __init__(self, text: str, file_name: str) -> None:
        values = read_yaml(text, file_name)
        settings = Settings(file_name, values)
        wrong = [
            f"`{name}` must be {' or '.join(map(repr, allowed))}. Given: {values[name]!r}"
            for name, allowed in _REQUIRED.items()
            if name in values and values[name] not in allowed
        ]
        if wrong:
            raise CheckpointError(f"{file_name} has an unsupported architecture: {'; '.join(wrong)}")
        self.d_model = settings.integer("dim-emb")
        self.num_heads = settings.integer("transformer-heads")
        self.num_encoder_layers = settings.integer("enc-depth")
        self.num_decoder_layers = settings.integer("dec-depth")
        self.feed_forward_width = settings.integer("transformer-dim-ffn")
        self.decoder_feed_forward_width = settings.integer("transformer-decoder-dim-ffn", 0) or None
        self.ties_all = settings.boolean("tied-embeddings-all", False)
        self.ties_source = self.ties_all or settings.boolean("tied-embeddings-src", False)
        self.ties_output = self.ties_all or settings.boolean("tied-embeddings", False)
        self.has_output_bias = not settings.boolean("output-omit-bias", False)
        self.has_recurrent_decoder = self._is_recurrent(settings)
        activation = settings.text("transformer-ffn-activation", "swish")
        if activation not in _ACTIVATIONS:
            settings.reject("transformer-ffn-activation", f"must be one of {', '.join(_ACTIVATIONS)}")
        self.activation = _ACTIVATIONS[activation]
        before, after = (
            settings.text(name, default).replace("d", "")
            for name, default in (("transformer-preprocess", ""), ("transformer-postprocess", "dan"))
        )
        if (before, after) not in _PLACEMENTS:
            raise CheckpointError(
                f"{file_name}: `transformer-preprocess` and `transformer-postprocess` must normalise after each "
                f"addition, or before each sub-layer. Given: {before!r} and {after!r} without dropout"
            )
        self.norm_placement = _PLACEMENTS[before, after]
        self.has_embedding_norm = self._has_norm(settings, "transformer-postprocess-emb", "d")
        self.has_final_norm = self._has_norm(settings, "transformer-postprocess-top", "")

    @staticmethod
    def _is_recurrent(settings: Settings) -> bool:
        kind = settings.text("transformer-decoder-autoreg", "self-attention")
        if kind == "self-attention":
            return False
        if kind != "rnn":
            settings.reject("transformer-decoder-autoreg", "must be self-attention or rnn")
        if settings.text("dec-cell", "gru") != "ssru":
            settings.reject("dec-cell", "must be ssru in a Transformer with a recurrent decoder")
        return True

    @staticmethod
    def _has_norm(settings: Settings, name: str, default: str) -> bool:
        steps = settings.text(name, default).replace("d", "")
        if steps not in ("", "n"):
            settings.reject(name, "must contain nothing but n and d")
        return steps == "n"


_SCALARS: Final[Mapping[str, Callable[[str], object]]] = {
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
    "tag:yaml.org,2002:str": str,
    "!": str,
}


class _Yaml(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads plain scalars as YAML 1.2 does: in a vocabulary, `no`, `12:30` and `<<` are tokens."""

    yaml_implicit_resolvers: Final[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


for _type, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Yaml.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", re.compile(rf"(?:{_pattern})\Z"), [*_first, ""])


def read_yaml(text: str, file_name: str) -> dict[str, object]:
    """Return the fields of a YAML text. Raises `CheckpointError` if it is not a mapping, and for hostile texts.

    Deep nesting ends the process of PyYAML's own composer, and aliases make small files large: both are errors.
    """
    try:
        loader = _Yaml(text)
        loader.get_event()  # of the stream
        if loader.check_event(yaml.StreamEndEvent):
            values = None
        else:
            loader.get_event()  # of the document
            values = _value(loader, loader.get_event(), 0)
            loader.get_event()  # the end of the document
            if not loader.check_event(yaml.StreamEndEvent):
                raise ValueError("it must have one document")
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a number with thousands of digits, too
        raise CheckpointError(f"{file_name} is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{file_name} must be a mapping of fields. Given: {type(values).__name__}")
    return values


def _value(loader: _Yaml, event: yaml.Event, num_levels: int) -> object:
    """Return the value that begins with an event, from this one and the next ones of the loader."""
    if num_levels > _MAX_LEVELS:
        raise ValueError(f"it must have at most {_MAX_LEVELS} levels of nesting")
    if isinstance(event, yaml.AliasEvent):
        raise ValueError(f"it must have no aliases. Given: *{event.anchor}")
    tag = event.tag
    if isinstance(event, yaml.ScalarEvent):
        if tag is None:
            tag = loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag not in _SCALARS:
            raise ValueError(f"it must have no tags of applications. Given: {tag}")
        return _SCALARS[tag](event.value)
    if isinstance(event, yaml.SequenceStartEvent):
        values = []
        while not isinstance(item := loader.get_event(), yaml.SequenceEndEvent):
            values.append(_value(loader, item, num_levels + 1))
        return values
    fields = {}
    while not isinstance(name := loader.get_event(), yaml.MappingEndEvent):
        if not isinstance(name, yaml.ScalarEvent):
            raise ValueError("the name of a field must be a text")
        # Without resolution: Marian writes the pieces 1.50 and true without quotes.
        fields[name.value] = _value(loader, loader.get_event(), num_levels + 1)
    return fields
