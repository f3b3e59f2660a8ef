"""Random models of every family, of unusual sizes, and their comparison with Hugging Face.

    python -m benchmarks.quality.parity --family t5 [--count 5] [--sources 300] [--seed 1]

Each model is saved as a checkpoint, read back, exported without a tokenizer, and decodes random token ids of different
lengths in batches and alone, greedily and with beams. `reference_answers` defines mistakes and ties.
int8 and float16 must be within the bounds of `rounded_models`.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    MT5Config,
    MT5ForConditionalGeneration,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.utils.logging import disable_progress_bar

from benchmarks.in_process import InProcessEngine
from bundle.loading import Bundle
from bundle.tensors import Precision
from server.interface.request import SentenceParams, TokenIds
from tests.model.families.reference_answers import (
    SETTINGS,
    TOLERANCE,
    own_answer,
    reference_answers,
    report,
    within_limits,
)
from tests.model.families.rounded_models import export_graphs, open_engine, rounding_difference

Draw = Callable[[int, int], int]
NUM_ALONE = 20  # sources that are decoded alone, too
ENDING_SHARE = 0.2  # approximate share of positions at which an answer ends
# Whether source and target share their embeddings, and whether the output projection is the target's embedding.
_EMBEDDINGS = ((True, True), (False, True), (True, False), (False, False))
_ACTIVATIONS = ("gelu", "relu", "swish", "gelu_new")
_FEED_FORWARDS = ("gated-gelu", "relu", "gated-silu", "gated-relu", "gelu")


@dataclass(frozen=True, slots=True)
class RandomModel:
    """A random checkpoint: the reference implementation's model, and the folder it was saved to."""

    reference: PreTrainedModel
    folder: Path


def _bart_sizes(draw: Draw, index: int) -> dict[str, object]:
    heads, decoder_heads = draw(1, 4), draw(1, 3)
    return {
        "d_model": 2 * heads * decoder_heads * draw(2, 4),
        "encoder_layers": draw(1, 3),
        "decoder_layers": draw(1, 3),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": decoder_heads,
        "encoder_ffn_dim": 2 * draw(5, 40) + 1,
        "decoder_ffn_dim": 2 * draw(5, 40) + 1,
        "activation_function": _ACTIVATIONS[index % len(_ACTIVATIONS)],
        "scale_embedding": index % 3 != 1,
        "vocab_size": 2 * draw(15, 70) + 1,
        "max_position_embeddings": 2 * draw(12, 20) + 1,
        "forced_eos_token_id": 2 if index % 2 else None,
    }


def _t5_sizes(draw: Draw, index: int) -> dict[str, object]:
    # In transformers 5.23 the cache of `generate` has the layers of the encoder: a longer decoder is an IndexError.
    num_decoder_layers = draw(1, 3)
    return {
        "d_model": draw(9, 40),
        "d_kv": draw(3, 12),
        "num_heads": draw(1, 5),
        "num_layers": num_decoder_layers + draw(0, 2),
        "num_decoder_layers": num_decoder_layers,
        "d_ff": 2 * draw(5, 40) + 1,
        "relative_attention_num_buckets": 4 * draw(2, 8),
        "relative_attention_max_distance": draw(17, 40),
        "feed_forward_proj": _FEED_FORWARDS[index % len(_FEED_FORWARDS)],
        "vocab_size": 2 * draw(15, 70) + 1,
        "n_positions": 2 * draw(12, 20) + 1,
        "decoder_start_token_id": 0,
    }


def _marian(draw: Draw, index: int) -> PreTrainedModel:
    one_vocabulary, tied_output = _EMBEDDINGS[index % len(_EMBEDDINGS)]
    sizes = _bart_sizes(draw, index) | {"activation_function": ("swish", "relu", "gelu")[index % 3]}
    vocab_size = int(str(sizes["vocab_size"]))
    return MarianMTModel(
        MarianConfig(
            **sizes,
            decoder_vocab_size=vocab_size if one_vocabulary else vocab_size + 2 * draw(1, 40),
            share_encoder_decoder_embeddings=one_vocabulary,
            tie_word_embeddings=tied_output,
            pad_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        )
    )


def _bart(draw: Draw, index: int) -> PreTrainedModel:
    return BartForConditionalGeneration(BartConfig(**_bart_sizes(draw, index)))


def _mbart(draw: Draw, index: int) -> PreTrainedModel:
    return MBartForConditionalGeneration(MBartConfig(**_bart_sizes(draw, index), decoder_start_token_id=2))


def _m2m100(draw: Draw, index: int) -> PreTrainedModel:
    return M2M100ForConditionalGeneration(M2M100Config(**_bart_sizes(draw, index)))


def _pegasus(draw: Draw, index: int) -> PreTrainedModel:
    sizes = _bart_sizes(draw, index) | {"forced_eos_token_id": 1 if index % 2 else None}
    return PegasusForConditionalGeneration(PegasusConfig(**sizes))


def _t5(draw: Draw, index: int) -> PreTrainedModel:
    # The setting changes the scale of the output projection; transformers ties it all the same.
    return T5ForConditionalGeneration(T5Config(**_t5_sizes(draw, index), tie_word_embeddings=index % 2 == 0))


def _mt5(draw: Draw, index: int) -> PreTrainedModel:
    return MT5ForConditionalGeneration(MT5Config(**_t5_sizes(draw, index)))


# A new family comes last: the models of a family depend on its place.
FAMILIES: Mapping[str, Callable[[Draw, int], PreTrainedModel]] = {
    "bart": _bart,
    "m2m100": _m2m100,
    "mbart": _mbart,
    "mt5": _mt5,
    "pegasus": _pegasus,
    "t5": _t5,
    "marian": _marian,
}
# Other names of the same architectures.
ALIASES = {"nllb": "m2m100", "mbart50": "mbart", "flan-t5": "t5", "byt5": "mt5", "madlad": "mt5"}
ROUNDED: tuple[Precision, ...] = ("float16", "int8")
# They begin an output with the token of a language.
_FORCES_FIRST_TOKEN = ("mbart", "m2m100")


def random_model(family: str, index: int, seed: int, folder: Path) -> RandomModel:
    """Save random model number `index` of a family: choices depend on the number, sizes are drawn."""
    random = np.random.default_rng((seed, index, list(FAMILIES).index(family)))
    torch.manual_seed(int(random.integers(2**31)))
    reference = FAMILIES[family](lambda low, high: int(random.integers(low, high + 1)), index)
    reference.train(False)
    with torch.no_grad():
        for name, tensor in [*reference.named_parameters(), *_output_bias(reference)]:
            tensor.add_(torch.randn_like(tensor) * _noise(name, tensor))
        _end_sometimes(reference)
    config, generation = reference.config, reference.generation_config
    generation.bad_words_ids = [[config.pad_token_id]]
    generation.max_length = getattr(config, "max_position_embeddings", None) or config.n_positions
    generation.forced_eos_token_id = getattr(config, "forced_eos_token_id", None)
    if family in _FORCES_FIRST_TOKEN:
        generation.forced_bos_token_id = config.vocab_size - 2
    reference.save_pretrained(folder)
    return RandomModel(reference, folder)


def _output_bias(reference: PreTrainedModel) -> list[tuple[str, torch.Tensor]]:
    bias = getattr(reference, "final_logits_bias", None)
    return [] if bias is None else [("final_logits_bias", bias)]


def _noise(name: str, tensor: torch.Tensor) -> float:
    """Return the standard deviation of the noise on a weight, so that no weight keeps an initial value like 0 or 1."""
    if "embed_positions" in name:
        return 0.3 if tensor.requires_grad else 0.0
    if tensor.dim() == 1 or tensor.shape[0] == 1:
        return 0.2
    if "relative_attention_bias" in name:
        return 1.0
    is_sharp = any(part in name for part in ("q_proj", "k_proj", "embed", "shared", "lm_head"))
    # With more noise, float32 itself is off by more than the tolerance of scores. T5 does not scale its attention.
    is_t5 = name.startswith(("shared", "encoder.block", "decoder.block"))
    size = 3.0 if is_sharp else 1.0 if is_t5 else 1.5
    return float(size * tensor.shape[-1] ** -0.5)


def _end_sometimes(reference: PreTrainedModel) -> None:
    """Let the end's logit win at a few positions, so that answers end at different lengths."""
    config = reference.config
    tokens = torch.randint(3, config.vocab_size, (50, 10))
    states = reference(input_ids=tokens, decoder_input_ids=tokens, output_hidden_states=True)
    end = states.logits[..., config.eos_token_id].clone()
    states.logits[..., [config.eos_token_id, config.pad_token_id]] = -torch.inf
    missing = torch.quantile(states.logits.amax(dim=-1) - end, ENDING_SHARE)
    for _, bias in _output_bias(reference):
        bias[:, config.eos_token_id] += missing
        return
    # Without a bias: a vector that all hidden states have in common.
    mean = states.decoder_hidden_states[-1].mean(dim=(0, 1))
    scale = missing / mean.square().sum()
    if getattr(config, "scale_decoder_outputs", False):
        scale = scale * config.d_model**0.5
    reference.get_output_embeddings().weight[config.eos_token_id] += scale * mean


def compare_families(families: Sequence[str], count: int, num_sources: int, seed: int) -> int:
    """Compare random models of these families in all precisions. Print the results and return the number of mistakes.

    Raises ValueError for an unknown family.
    """
    disable_progress_bar()  # of saving
    known = {**FAMILIES, **ALIASES}
    if unknown := [name for name in families if name not in known]:
        raise ValueError(f"`family` must be one of {', '.join(known)}. Given: {', '.join(unknown)}")
    mistakes = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in families or FAMILIES:
            for index in range(count):
                print(f"\n{name} {index}", flush=True)
                mistakes += _compare_model(ALIASES.get(name, name), index, num_sources, seed, Path(temporary))
    print(f"\n{mistakes} mistakes in {count * len(families or FAMILIES)} models")
    return mistakes


def _compare_model(family: str, index: int, num_sources: int, seed: int, temporary: Path) -> int:
    folder = temporary / f"{family}-{index}"
    model = random_model(family, index, seed, folder)
    exact = export_graphs(folder, temporary / f"{family}-{index}-float32", "float32")
    sources = random_sources(exact, num_sources, seed)
    mistakes = compare(model, InProcessEngine(exact), sources, label="    ")
    special, shapes = exact.config.special_tokens, exact.config.shapes
    within = SentenceParams(max_new_tokens=shapes.max_target_tokens, first_token=special.forced_first)
    answers = [completion.hypotheses[0].token_ids for completion in open_engine(exact).decode(sources, within)]
    for precision in ROUNDED:
        rounded = export_graphs(folder, temporary / f"{family}-{index}-{precision}", precision)
        difference = rounding_difference(exact, rounded, sources, answers)
        mistakes += not difference.is_within_bounds
        print(f"    {difference}{'' if difference.is_within_bounds else ': BEYOND THE BOUNDS'}", flush=True)
    return mistakes


def random_sources(bundle: Bundle, number: int, seed: int) -> list[TokenIds]:
    """Return random token ids of all valid lengths in random order, each with the end-of-sequence token last."""
    special, shapes = bundle.config.special_tokens, bundle.config.shapes
    random = np.random.default_rng(seed)
    tokens = np.setdiff1d(np.arange(shapes.vocab_size), [special.padding, special.end_of_sequence])
    lengths = random.permutation(np.linspace(0, shapes.max_source_tokens - 1, number).round().astype(int))
    ends = np.array([special.end_of_sequence])
    return [np.concatenate([random.choice(tokens, length), ends]).astype(np.int32) for length in lengths]


def compare(model: RandomModel, engine: InProcessEngine, sources: Sequence[TokenIds], label: str = "") -> int:
    """Decode with both, print the result of every search, and return the number of mistakes.

    A few sources are decoded alone as well: an answer that depends on its batch is a mistake.
    """
    mistakes = 0
    model.reference.double()  # in single precision its own rounding would decide between beams
    sentences = [" ".join(map(str, source.tolist())) for source in sources]
    for name, params in SETTINGS.items():
        within = within_limits(params, model.reference)
        ours = [own_answer(completion) for completion in engine.decode(sources, within)]
        theirs = list(reference_answers(model.reference, [source.tolist() for source in sources], params))
        different = len({tuple(answer.token_ids) for answer in ours})
        mistakes += report(f"{label}{name:<22} | {different:>2} different answers", sentences, ours, theirs)
        alone = [own_answer(engine.decode([source], within)[0]) for source in sources[:NUM_ALONE]]
        for source, one, batched in zip(sources, alone, ours, strict=False):
            if one.token_ids != batched.token_ids or abs(one.score - batched.score) > TOLERANCE:
                mistakes += 1
                print(f"{label}DIFFERENT alone and batched: {source.tolist()}\n    {one}\n    {batched}")
    return mistakes
