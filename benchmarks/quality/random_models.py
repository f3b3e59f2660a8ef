"""Parity with Hugging Face on ten random Marian models of unusual sizes.

    python -m benchmarks.quality.random_models [--count 10] [--sources 40] [--seed 1]

Each model is saved as a checkpoint, read back, exported in float32 without a tokenizer, and decodes random token ids of
different lengths in batches. benchmarks.quality.reference_answers defines mistakes and ties.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from transformers import MarianConfig, MarianMTModel, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from benchmarks.in_process import InProcessEngine
from benchmarks.quality.reference_answers import (
    SETTINGS,
    TOLERANCE,
    own_answer,
    reference_answers,
    report,
    within_limits,
)
from benchmarks.quality.rounded_models import export_graphs
from bundle.loading import Bundle
from server.interface.request import TokenIds

ACTIVATIONS = ("swish", "relu", "gelu")
# Whether source and target share their embeddings, and whether the output projection is the target's embedding.
EMBEDDINGS = ((True, True), (False, True), (True, False), (False, False))
NUM_ALONE = 20  # sources that are decoded alone, too
ENDING_SHARE = 0.2  # approximate share of positions at which an answer ends


@dataclass(frozen=True, slots=True)
class RandomModel:
    """A random checkpoint: the reference implementation's model, and the folder it was saved to."""

    reference: PreTrainedModel
    folder: Path


class RandomMarian(RandomModel):
    """A random Marian checkpoint."""

    def __str__(self) -> str:
        config = self.reference.config
        return (
            f"d_model {config.d_model}, layers {config.encoder_layers}+{config.decoder_layers}, "
            f"heads {config.encoder_attention_heads}+{config.decoder_attention_heads}, "
            f"feed-forward {config.encoder_ffn_dim}+{config.decoder_ffn_dim}, {config.activation_function}, "
            f"vocabulary {config.vocab_size}+{config.decoder_vocab_size}, "
            f"one vocabulary: {config.share_encoder_decoder_embeddings}, tied output: {config.tie_word_embeddings}, "
            f"scaled: {config.scale_embedding}, "
            f"forced end: {self.reference.generation_config.forced_eos_token_id is not None}"
        )


def random_marian(index: int, seed: int, folder: Path) -> RandomMarian:
    """Save random model number `index` to `folder`: choices depend on the number, sizes are drawn."""
    random = np.random.default_rng((seed, index))
    torch.manual_seed(int(random.integers(2**31)))

    def draw(low: int, high: int) -> int:
        return int(random.integers(low, high + 1))

    one_vocabulary, tied_output = EMBEDDINGS[index % len(EMBEDDINGS)]
    heads, decoder_heads = draw(1, 5), draw(1, 3)
    # Even, since sines and cosines come in pairs; divisible by both numbers of heads.
    d_model = 2 * heads * decoder_heads * draw(2, 4)
    vocab_size = 2 * draw(15, 70) + 1
    decoder_vocab_size = vocab_size if one_vocabulary else 2 * draw(15, 70) + 1
    pad, end = (int(token) for token in random.choice(min(vocab_size, decoder_vocab_size), 2, replace=False))
    config = MarianConfig(
        vocab_size=vocab_size,
        decoder_vocab_size=decoder_vocab_size,
        share_encoder_decoder_embeddings=one_vocabulary,
        tie_word_embeddings=tied_output,
        d_model=d_model,
        encoder_layers=draw(1, 3),
        decoder_layers=draw(1, 3),
        encoder_attention_heads=heads,
        decoder_attention_heads=decoder_heads,
        encoder_ffn_dim=2 * draw(5, 40) + 1,
        decoder_ffn_dim=2 * draw(5, 40) + 1,
        activation_function=ACTIVATIONS[index % len(ACTIVATIONS)],
        scale_embedding=index % 5 != 1,
        max_position_embeddings=2 * draw(12, 20) + 1,
        pad_token_id=pad,
        eos_token_id=end,
        decoder_start_token_id=pad,
        forced_eos_token_id=end if index % 2 else None,
    )
    reference = MarianMTModel(config)
    reference.train(False)
    with torch.no_grad():
        for name, tensor in [*reference.named_parameters(), ("final_logits_bias", reference.final_logits_bias)]:
            if "embed_positions" not in name:
                tensor.add_(torch.randn_like(tensor) * _noise(name, tensor))
        reference.final_logits_bias[:, end] += _how_far_from_ending(reference)
    generation = reference.generation_config
    generation.bad_words_ids = [[pad]]
    generation.max_length = config.max_position_embeddings
    generation.forced_eos_token_id = config.forced_eos_token_id
    reference.save_pretrained(folder)
    return RandomMarian(reference, folder)


def _noise(name: str, tensor: torch.Tensor) -> float:
    """Return the standard deviation of the noise on a weight, so that no weight keeps an initial value like 0 or 1.

    Attention must be sharp, and sub-layers must not dominate their residuals; otherwise all answers are alike.
    """
    if tensor.dim() == 1 or tensor.shape[0] == 1:
        return 0.2
    is_sharp = any(part in name for part in ("q_proj", "k_proj", "embed", "shared", "lm_head"))
    return float((2.5 if is_sharp else 1.0) * tensor.shape[-1] ** -0.5)


def _how_far_from_ending(reference: MarianMTModel) -> torch.Tensor:
    """Return the bias with which the end's logit wins at a few positions, so that answers end at different lengths."""
    config = reference.config
    source = torch.randint(config.vocab_size, (50, 10))
    logits = reference(
        input_ids=source, decoder_input_ids=torch.randint(config.decoder_vocab_size, source.shape)
    ).logits
    end = logits[..., config.eos_token_id].clone()
    logits[..., [config.eos_token_id, config.pad_token_id]] = -torch.inf
    return torch.quantile(logits.amax(dim=-1) - end, ENDING_SHARE)


def random_sources(bundle: Bundle, number: int, seed: int) -> list[TokenIds]:
    """Return random token ids of all valid lengths in random order, each with the end-of-sequence token last."""
    special, shapes = bundle.config.special_tokens, bundle.config.shapes
    random = np.random.default_rng(seed)
    tokens = np.setdiff1d(np.arange(shapes.vocab_size), [special.padding, special.end_of_sequence])
    lengths = random.permutation(np.linspace(0, shapes.max_source_tokens - 1, number).round().astype(int))
    ends = np.array([special.end_of_sequence])
    return [np.concatenate([random.choice(tokens, length), ends]).astype(np.int32) for length in lengths]


def compare(model: RandomModel, bundle: Bundle, sources: Sequence[TokenIds], label: str = "") -> int:
    """Decode with both, print the result of every search, and return the number of mistakes.

    A few sources are decoded alone as well: an answer that depends on its batch is a mistake.
    """
    engine, mistakes = InProcessEngine(bundle), 0
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


def main(
    count: Annotated[int, typer.Option(min=1, help="Models.")] = 10,
    sources: Annotated[int, typer.Option(min=1, help="Sources for each model.")] = 40,
    seed: Annotated[int, typer.Option(help="Of sizes, weights and sources.")] = 1,
) -> None:
    """Compare Kvasir's answers with Hugging Face `generate` on random models."""
    disable_progress_bar()  # of saving
    mistakes = 0
    with tempfile.TemporaryDirectory() as temporary:
        for index in range(count):
            marian = random_marian(index, seed, Path(temporary) / f"random-{index}")
            bundle = export_graphs(marian.folder, Path(temporary) / f"bundle-{index}", "float32")
            print(f"\n{index:>2}  {marian}")
            mistakes += compare(marian, bundle, random_sources(bundle, sources, seed), label="    ")
    print(f"\n{mistakes} mistakes in {count} models")
    raise typer.Exit(1 if mistakes else 0)


if __name__ == "__main__":
    typer.run(main)
