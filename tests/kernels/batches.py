"""Each operator with a batch of rows of which any one can also be computed alone."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from export.int8 import operators
from export.int8.operators import BEST_LISTED_TOKENS, BEST_TOKENS
from tests.kernels.arithmetic import STEP, Matrix, random_rows
from tests.kernels.operator_sessions import Arrays

_LINEAR = {"zero_point": 128, "levels": 127.0}


@dataclass(frozen=True, slots=True)
class Batch:
    """An operator and what it is given: `rows` of these inputs have a row each, the others belong to the model."""

    operator: str
    attributes: dict[str, float]
    inputs: Arrays
    rows: tuple[str, ...]

    def of(self, places: list[int]) -> Arrays:
        """The inputs of a batch of these rows, in this order."""
        return {name: array[places] if name in self.rows else array for name, array in self.inputs.items()}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a batch."""

    num_rows: int
    inputs: int
    outputs: int
    vocab: int
    heads: int
    head_dim: int
    positions: int

    @property
    def attention(self) -> dict[str, float]:
        """Attributes that all operators of attention have."""
        return {"num_heads": self.heads, "kv_num_heads": self.heads, "scale": self.head_dim**-0.5}


SMALL = Sizes(num_rows=70, inputs=36, outputs=75, vocab=1500, heads=4, head_dim=24, positions=19)
# Every operator shares the work out among threads.
LARGE = Sizes(num_rows=66, inputs=256, outputs=300, vocab=5000, heads=4, head_dim=32, positions=67)


def linear(sizes: Sizes) -> Batch:
    """A product and a normalisation."""
    random = np.random.default_rng(0)
    matrix = Matrix.random(random, sizes.inputs, sizes.outputs)
    inputs = matrix.inputs(random_rows(random, sizes.num_rows, sizes.inputs))
    inputs["residual"] = random_rows(random, sizes.num_rows, sizes.outputs)
    inputs["norm_weight"] = random.standard_normal(sizes.outputs).astype(np.float32)
    inputs["norm_bias"] = random.standard_normal(sizes.outputs).astype(np.float32)
    name = operators.LINEAR_ADD_NORMALIZATION
    return Batch(name, _LINEAR | {"epsilon": 1e-5}, inputs, ("hidden", "residual"))


def best_tokens(sizes: Sizes) -> Batch:
    """With scores, and more candidates than one beam takes."""
    random = np.random.default_rng(1)
    some = Matrix.random(random, sizes.inputs, 400)
    # Equal logits, near and far: which of them is named must not depend on who comes to its own first.
    columns = random.integers(0, 400, sizes.vocab)
    matrix = Matrix(some.numbers[:, columns], some.scales[columns], some.bias[columns])
    inputs = matrix.inputs(random_rows(random, sizes.num_rows, sizes.inputs))
    inputs["mask"] = np.where(random.random(sizes.vocab) < 0.1, -np.inf, 0.0).astype(np.float32)
    inputs |= {"num_candidates": np.array([9], np.int64), "with_scores": np.array([True])}
    attributes = _LINEAR | {"block_size": 1, "last_token": sizes.vocab - 1}
    return Batch(BEST_TOKENS, attributes, inputs, ("hidden",))


def best_listed_tokens(sizes: Sizes) -> Batch:
    """Rows with the tokens of a list, of several lengths, and rows with all of them."""
    random, every = np.random.default_rng(4), best_tokens(sizes)
    capacity, num_lists = min(sizes.vocab, 40 + 8 * sizes.positions), sizes.num_rows // 2 + 1
    chosen = [random.choice(sizes.vocab, capacity, replace=False) for _ in range(num_lists)]
    # Columns after the end of a list are not read.
    lengths = random.integers(capacity // 2, capacity + 1, num_lists).astype(np.int32)
    lists = np.full((num_lists, capacity), 10**8, np.int32)
    for row, (columns, length) in enumerate(zip(chosen, lengths, strict=True)):
        lists[row, :length] = np.sort(columns[:length])
    # Up to six neighbours have one list, as beams do.
    runs = random.integers(1, 7, sizes.num_rows)
    list_of_row = np.repeat(random.integers(-1, num_lists, sizes.num_rows), runs)[: sizes.num_rows].astype(np.int32)
    inputs = every.inputs | {"lists": lists, "lengths": lengths, "list_of_row": list_of_row}
    return Batch(BEST_LISTED_TOKENS, every.attributes, inputs, ("hidden", "list_of_row"))


def embed_tokens(sizes: Sizes) -> Batch:
    """Tokens anywhere in the panels, the last one too."""
    random = np.random.default_rng(5)
    matrix = random.integers(-127, 128, (sizes.inputs, sizes.vocab)).astype(np.int8)
    tokens = random.integers(0, sizes.vocab, (sizes.num_rows, 1)).astype(np.int32)
    tokens[-1] = sizes.vocab - 1
    inputs: Arrays = {
        "tokens": tokens,
        "weight": operators.in_panels(matrix),
        "scales": random.uniform(1e-3, 1e-1, sizes.vocab).astype(np.float32),
    }
    return Batch(operators.EMBED_TOKENS, {"width": sizes.inputs}, inputs, ("tokens",))


def self_attention(sizes: Sizes) -> Batch:
    """Rows that are at different positions."""
    random, width = np.random.default_rng(2), sizes.heads * sizes.head_dim
    shape = (sizes.num_rows, sizes.heads, sizes.positions, sizes.head_dim)
    inputs: Arrays = {
        "fused": random_rows(random, sizes.num_rows, 3 * width).reshape(-1, 1, 3 * width),
        "keys": random.integers(-128, 128, shape).astype(np.int8),
        "values": random.integers(-128, 128, shape).astype(np.int8),
        "positions": random.integers(0, sizes.positions, sizes.num_rows).astype(np.int32),
    }
    attributes = sizes.attention | {"step": STEP}
    return Batch(operators.SELF_ATTENTION, attributes, inputs, tuple(inputs))


def cross_attention(sizes: Sizes) -> Batch:
    """Cross-attention: caches without new keys and values."""
    of_itself, width = self_attention(sizes), sizes.heads * sizes.head_dim
    inputs = of_itself.inputs | {
        name: of_itself.inputs["fused"][:, :, place * width : (place + 1) * width].copy()
        for place, name in enumerate(("query", "last_key", "last_value"))
    }
    del inputs["fused"]
    return Batch(operators.CROSS_ATTENTION, of_itself.attributes, inputs, tuple(inputs))


def source_attention(sizes: Sizes) -> Batch:
    """Sentences of different lengths."""
    random, width = np.random.default_rng(3), 3 * sizes.heads * sizes.head_dim
    fused = random_rows(random, sizes.num_rows * sizes.positions, width)
    inputs: Arrays = {
        "fused": fused.reshape(sizes.num_rows, sizes.positions, width),
        "last_positions": random.integers(0, sizes.positions, sizes.num_rows).astype(np.int32),
    }
    return Batch(operators.SOURCE_ATTENTION, sizes.attention, inputs, tuple(inputs))


MAKERS: dict[str, Callable[[Sizes], Batch]] = {
    operators.LINEAR_ADD_NORMALIZATION: linear,
    BEST_TOKENS: best_tokens,
    BEST_LISTED_TOKENS: best_listed_tokens,
    operators.EMBED_TOKENS: embed_tokens,
    operators.SELF_ATTENTION: self_attention,
    operators.CROSS_ATTENTION: cross_attention,
    operators.SOURCE_ATTENTION: source_attention,
}
