"""Weights and sizes of a CTranslate2 Transformer by the names of `Transformer`."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from model.checkpoints.errors import CheckpointError
from model.config import Activation
from model.families.ctranslate2.attributes import Attributes, layer_indices

_ACTIVATIONS: tuple[Activation | None, ...] = ("relu", "gelu_tanh", "silu", "gelu", None, None, None)
_STACKS = ("encoder", "decoder")


class WeightReader:
    """Collects tensors by our names, and settings that all layers must share."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self.tensors: dict[str, Tensor] = {}
        self._attention_scales: dict[float, str] = {}
        self._head_dims: dict[int, str] = {}
        self.num_layers = {stack: len(layer_indices(attributes, stack)) for stack in _STACKS}
        self.num_heads = {stack: attributes.integer(f"{stack}/num_heads", 8) for stack in _STACKS}
        for stack in _STACKS:
            if self.num_heads[stack] < 1:
                raise CheckpointError(f"model.bin: {stack}/num_heads must be at least 1")
            for index in range(self.num_layers[stack]):
                self._read_layer(stack, index)
            for norm, ours in (("layer_norm", "final_norm"), ("layernorm_embedding", "embedding_norm")):
                self._copy_norm(f"{stack}/{norm}", f"{stack}.{ours}")
        self._read_relative_bias()

    def shared(self, name: str, value: str) -> float:
        """Return a scalar that both stacks must have alike."""
        encoder, decoder = (self._attributes.number(f"{stack}/{name}", float(value)) for stack in _STACKS)
        if encoder != decoder:
            raise CheckpointError(f"model.bin: {name} differs: {encoder} in the encoder, {decoder} in the decoder")
        return encoder

    @property
    def activation(self) -> Activation:
        """Activation of the feed-forwards."""
        number = int(self.shared("activation", "0"))
        activation = _ACTIVATIONS[number] if 0 <= number < len(_ACTIVATIONS) else None
        if activation is None:
            raise CheckpointError(f"model.bin: activation {number} is not supported. Supported: 0, 1, 2, 3")
        return activation

    @property
    def attention_scale(self) -> float | None:
        """Factor of the products of queries and keys; None is the usual one."""
        default = self.head_dim**-0.5
        scales = list(self._attention_scales) or [default]
        if len(scales) > 1 or math.isclose(scales[0], default, rel_tol=1e-6):
            if len(scales) > 1:
                raise CheckpointError(f"model.bin: queries_scale differs between layers: {scales}")
            return None
        return scales[0]

    @property
    def head_dim(self) -> int:
        """Width of a head in all layers."""
        if len(self._head_dims) > 1:
            raise CheckpointError(f"model.bin: heads of layers differ in width: {sorted(self._head_dims)}")
        return next(iter(self._head_dims))

    @property
    def has_biases(self) -> bool:
        """Whether the projections have biases; where only some have, the others get zeros."""
        return any(name.endswith("_proj.bias") for name in self.tensors)

    def fill_biases(self) -> None:
        """Add zeros for missing biases of projections and normalisations."""
        if self.has_biases:
            for name in [name for name in self.tensors if name.endswith("_proj.weight")]:
                bias = name.removesuffix("weight") + "bias"
                self.tensors.setdefault(bias, torch.zeros(self.tensors[name].shape[0]))

    def scales_embeddings(self, d_model: int) -> bool:
        """Return whether embeddings are multiplied by the root of their width; another factor is an error."""
        factors = {stack: self._embedding_scale(stack, d_model) for stack in _STACKS}
        for stack, factor in factors.items():
            if not any(math.isclose(factor, usual, rel_tol=1e-3) for usual in (1.0, math.sqrt(d_model))):
                raise CheckpointError(
                    f"model.bin: {stack}/scale_embeddings must be 1 or {math.sqrt(d_model):.4f}. Given: {factor}"
                )
        scaled = {stack: not math.isclose(factor, 1.0, rel_tol=1e-3) for stack, factor in factors.items()}
        if scaled["encoder"] != scaled["decoder"]:
            raise CheckpointError("model.bin: scale_embeddings differs between encoder and decoder")
        return scaled["encoder"]

    def _embedding_scale(self, stack: str, d_model: int) -> float:
        attributes = self._attributes
        for name in (f"{stack}/scale_embeddings", f"{stack}/embeddings/multiply_by_sqrt_depth"):
            if name in attributes:
                value = attributes.number(name)
                return (math.sqrt(d_model) if value else 1.0) if attributes.is_flag(name) else value
        return math.sqrt(d_model)

    def _read_layer(self, stack: str, index: int) -> None:
        theirs, ours = f"{stack}/layer_{index}", f"{stack}.layers.{index}"
        self._read_attention(f"{theirs}/self_attention", f"{ours}.self_attention", stack, is_self=True)
        if stack == "decoder":
            self._read_attention(f"{theirs}/attention", f"{ours}.cross_attention", stack, is_self=False)
        for linear, projection in (
            ("linear_0", "inner_proj"),
            ("linear_0_noact", "gate_proj"),
            ("linear_1", "outer_proj"),
        ):
            if linear != "linear_0_noact" or f"{theirs}/ffn/{linear}/weight" in self._attributes:
                self._split(f"{theirs}/ffn/{linear}", [f"{ours}.feed_forward.{projection}"])
        self._copy_norm(f"{theirs}/ffn/layer_norm", f"{ours}.feed_forward_norm")

    def _read_attention(self, theirs: str, ours: str, stack: str, *, is_self: bool) -> None:
        projections = [f"{ours}.{name}" for name in ("query_proj", "key_proj", "value_proj")]
        if is_self:
            self._split(f"{theirs}/linear_0", projections)
            self._split(f"{theirs}/linear_1", [f"{ours}.out_proj"])
        else:
            self._split(f"{theirs}/linear_0", projections[:1])
            self._split(f"{theirs}/linear_1", projections[1:])
            self._split(f"{theirs}/linear_2", [f"{ours}.out_proj"])
        self._copy_norm(f"{theirs}/layer_norm", f"{ours}_norm")
        width = self.tensors[f"{ours}.out_proj.weight"].shape[-1]
        if width % self.num_heads[stack]:
            raise CheckpointError(f"model.bin: {theirs} of width {width} has {self.num_heads[stack]} heads")
        self._head_dims[width // self.num_heads[stack]] = theirs
        if f"{theirs}/queries_scale" in self._attributes:
            self._attention_scales[self._attributes.number(f"{theirs}/queries_scale")] = theirs

    def _split(self, theirs: str, ours: Sequence[str]) -> None:
        """Read a linear layer that contains one or several projections, one below the other."""
        for kind in ("weight", "bias"):
            if kind == "bias" and f"{theirs}/bias" not in self._attributes:
                continue
            tensor = self._attributes.tensor(f"{theirs}/{kind}")
            if tensor.dim() != (2 if kind == "weight" else 1) or tensor.shape[0] % len(ours):
                raise CheckpointError(
                    f"model.bin: {theirs}/{kind} of shape {list(tensor.shape)} does not contain {len(ours)} projections"
                )
            for name, part in zip(ours, tensor.chunk(len(ours)), strict=True):
                self.tensors[f"{name}.{kind}"] = part.contiguous()

    def _copy_norm(self, theirs: str, ours: str) -> None:
        for name, kind in (("gamma", "weight"), ("beta", "bias")):
            if f"{theirs}/{name}" in self._attributes:
                self.tensors[f"{ours}.{kind}"] = self._attributes.tensor(f"{theirs}/{name}")

    def _read_relative_bias(self) -> None:
        for stack in _STACKS:
            first: Tensor | None = None
            for index in range(self.num_layers[stack]):
                name = f"{stack}/layer_{index}/self_attention/relative_attention_bias"
                if name not in self._attributes:
                    continue
                bias = self._attributes.tensor(name)
                if first is not None and not torch.equal(first, bias):
                    raise CheckpointError(f"model.bin: {name} differs from that of the first layer")
                first = bias
            if first is not None:
                self.tensors[f"{stack}.relative_bias.weight"] = first

    def relative_distance(self) -> int:
        """Return the distance from which all tokens are in the last bucket."""
        distances = {
            self._attributes.integer(name)
            for stack in _STACKS
            for index in range(self.num_layers[stack])
            if (name := f"{stack}/layer_{index}/self_attention/relative_attention_max_distance") in self._attributes
        }
        if len(distances) != 1:
            raise CheckpointError(f"model.bin: relative_attention_max_distance must be one number: {sorted(distances)}")
        return distances.pop()
