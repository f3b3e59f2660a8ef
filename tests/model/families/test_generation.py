"""Settings of a checkpoint mean what they mean to transformers: greedy answers equal, or the setting is refused."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM

from model.checkpoints.checkpoint import CheckpointError
from model.families.registry import read_checkpoint
from tests.model.families.greedy_answers import greedy_answers
from tests.model.families.random_families import FAMILIES, random_model

NUM_TOKENS = 6
NUM_DRAWN = 5
Changes = Mapping[str, object]
REMOVED = "removed"
"""A setting that is taken out of its file."""

EVERY_FAMILY = tuple(FAMILIES)
TYPICAL = ("bart", "t5")
# Values for any family; "end" stands for the number of its end-of-sequence token.
OF_GENERATION: Mapping[str, tuple[object, ...]] = {
    "forced_bos_token_id": (REMOVED, None, 5, 7),
    "forced_eos_token_id": (REMOVED, None, "end"),
    "bad_words_ids": (REMOVED, None, [[4]], [[4], [6]], [["end"]]),
    "suppress_tokens": (REMOVED, None, [5], []),
    "decoder_start_token_id": (REMOVED, 3, 6),
    "bos_token_id": (REMOVED, 3, 5),
    "pad_token_id": (REMOVED, 1),
    "begin_suppress_tokens": (None, [], [4]),
}
OF_THE_MODEL: Mapping[str, tuple[object, ...]] = {
    "normalize_before": (True, False),
    "add_final_layer_norm": (True, False),
    "normalize_embedding": (True, False),
    "static_position_embeddings": (True, False),
    "force_bos_token_to_be_generated": (True, False),
    "scale_embedding": (REMOVED, True, False),
    "tie_word_embeddings": (REMOVED, True, False),
    "share_encoder_decoder_embeddings": (REMOVED, True),
    "activation_function": (REMOVED, "relu", "silu", "gelu_new", "tanh"),
    "feed_forward_proj": (REMOVED, "relu", "gated-gelu", "gated-silu"),
    "layer_norm_epsilon": (REMOVED, 1e-3),
    "relative_attention_max_distance": (REMOVED, 20),
    "is_gated_act": (REMOVED, True, False),
    "dense_act_fn": (REMOVED, "relu", "gelu"),
    "encoder_attention_heads": (REMOVED,),
    "max_position_embeddings": (REMOVED,),
}


def _write(family: str, folder: Path, seed: int) -> None:
    random_model(family, seed, seed, folder)
    _change(folder / "generation_config.json", {"_from_model_config": REMOVED, "max_length": REMOVED})


def _change(path: Path, changes: Changes) -> None:
    settings = json.loads(path.read_text("utf-8")) | dict(changes)
    path.write_text(json.dumps({name: value for name, value in settings.items() if value is not REMOVED}), "utf-8")


def _outcome(folder: Path) -> str:
    """Return "equal" or "different" of the answers to random sources, or who refused the checkpoint."""
    end = json.loads((folder / "config.json").read_text("utf-8")).get("eos_token_id", 2)
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(8, 25, (2, 6), generator=generator)
    source[:, -1] = end
    mask = torch.ones_like(source)
    try:
        checkpoint = read_checkpoint(folder)
    except CheckpointError:
        return "refused"
    try:
        reference = AutoModelForSeq2SeqLM.from_pretrained(folder).double().eval()
        theirs = [
            reference.generate(
                input_ids=source[row : row + 1], attention_mask=mask[row : row + 1], max_new_tokens=NUM_TOKENS
            )[0].tolist()
            for row in range(len(source))
        ]
    except (ValueError, TypeError, RuntimeError) as error:  # what transformers raises for settings
        return f"transformers: {error}"
    ours = greedy_answers(checkpoint, source, mask.bool(), NUM_TOKENS)
    started = [[checkpoint.config.decoder_start_token_id, *answer] for answer in ours]
    return "equal" if theirs == started else f"different: {started} for {theirs}"


CASES: list[tuple[str, Changes, Changes | None]] = [
    *[("marian", {name: True}, {}) for name in ("normalize_before", "add_final_layer_norm", "normalize_embedding")],
    ("marian", {"static_position_embeddings": False}, {}),
    *[(name, {"forced_bos_token_id": 5, "forced_eos_token_id": 2, "bad_words_ids": [[6]]}, {}) for name in TYPICAL],
    *[(name, {"forced_bos_token_id": 5}, None) for name in TYPICAL],
    *[(name, {"decoder_start_token_id": REMOVED}, {}) for name in ("marian", *TYPICAL)],
    *[(name, {}, {"decoder_start_token_id": REMOVED, "bos_token_id": 6}) for name in ("marian", *TYPICAL)],
    ("m2m100", {"scale_embedding": REMOVED, "activation_function": REMOVED}, {}),
    ("bart", {"force_bos_token_to_be_generated": True}, None),
    ("bart", {"force_bos_token_to_be_generated": True}, {}),
    ("pegasus", {"pad_token_id": REMOVED}, {}),
    ("t5", {"dense_act_fn": "silu"}, {}),
    ("mt5", {"dense_act_fn": REMOVED, "is_gated_act": REMOVED}, {}),
]


@pytest.mark.parametrize(("family", "of_model", "of_generation"), CASES, ids=str)
def test_a_setting_is_read_as_transformers_reads_it(
    family: str, of_model: Changes, of_generation: Changes | None, tmp_path: Path
) -> None:
    """Without settings of generation, their file is missing."""
    folder = tmp_path / "model"
    _write(family, folder, seed=3)
    _change(folder / "config.json", of_model)
    if of_generation is None:
        (folder / "generation_config.json").unlink()
    else:
        _change(folder / "generation_config.json", of_generation)
    assert _outcome(folder) == "equal"


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_drawn_settings_are_read_as_transformers_reads_them_or_refused(family: str, tmp_path: Path) -> None:
    draw = random.Random(family)
    outcomes = []
    for number in range(NUM_DRAWN):
        folder = tmp_path / str(number)
        _write(family, folder, seed=number)
        end = json.loads((folder / "config.json").read_text("utf-8"))["eos_token_id"]
        of_generation, of_model = (
            {n: draw.choice(values[n]) for n in draw.sample(sorted(values), 2)}
            for values in (OF_GENERATION, OF_THE_MODEL)
        )
        of_generation = {
            name: value if value is REMOVED else json.loads(json.dumps(value).replace('"end"', str(end)))
            for name, value in of_generation.items()
        }
        _change(folder / "config.json", of_model)
        if draw.random() < 0.3:
            (folder / "generation_config.json").unlink()
            _change(folder / "config.json", of_generation)
        else:
            _change(folder / "generation_config.json", of_generation)
        outcomes.append(_outcome(folder))
        assert not outcomes[-1].startswith("different"), (of_model, of_generation)
    assert outcomes.count("equal") >= NUM_DRAWN // 3, outcomes


@pytest.mark.parametrize("family", ["marian", "pegasus"])
@pytest.mark.parametrize("is_trained", [False, True])
def test_a_stored_table_of_positions_counts(family: str, is_trained: bool, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    _write(family, folder, seed=1)
    reference = AutoModelForSeq2SeqLM.from_pretrained(folder)
    tables = {
        f"model.{name}.embed_positions.weight": stack.embed_positions.weight.detach().clone()
        for name, stack in (("encoder", reference.model.encoder), ("decoder", reference.model.decoder))
    }
    if is_trained:
        tables = {name: torch.randn(table.shape) for name, table in tables.items()}
    weights = load_file(folder / "model.safetensors") | tables
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert read_checkpoint(folder).config.positions == ("learned" if is_trained else "sinusoidal")
    assert _outcome(folder) == "equal"


def test_without_any_start_token_the_decoder_starts_with_padding(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    _write("marian", folder, seed=1)
    for name in ("config.json", "generation_config.json"):
        _change(folder / name, {"decoder_start_token_id": REMOVED, "bos_token_id": REMOVED})
    config = read_checkpoint(folder).config
    assert config.decoder_start_token_id == config.pad_token_id
