import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import MarianMTModel

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.weights import build_model
from model.families.marian.hugging_face import write_marian
from model.families.registry import read_checkpoint
from model.positions import sinusoidal_positions
from model.transformer import Transformer
from tests.model.random_models import Options, save_marian, small_model

ODD_CONFIGS: list[dict[str, object]] = [
    {},
    {"activation_function": "relu", "encoder_layers": 3, "decoder_layers": 2},
    {"activation_function": "gelu", "d_model": 30, "encoder_attention_heads": 5, "decoder_attention_heads": 5},
    {"activation_function": "silu", "encoder_attention_heads": 6, "decoder_attention_heads": 2},
    {"encoder_ffn_dim": 7, "decoder_ffn_dim": 33, "decoder_layers": 3},
    {"scale_embedding": False, "d_model": 14, "encoder_attention_heads": 1, "decoder_attention_heads": 7},
    {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 37},
    {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 53, "tie_word_embeddings": False},
    {"tie_word_embeddings": False, "encoder_layers": 1, "decoder_layers": 4},
    {"vocab_size": 101, "decoder_vocab_size": 101, "pad_token_id": 100, "decoder_start_token_id": 100, "d_model": 42},
    {
        "encoder_layers": 1,
        "d_model": 2,
        "encoder_attention_heads": 1,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 1,
    },
]
MARIAN = {
    "sinusoid_layout": "halves",
    "output_bias": True,
    "decoder_start_token_id": 0,
    "bos_token_id": 1,
    "suppressed_token_ids": (0,),
    "forced_eos": True,
    "max_source_tokens": 16,
    "max_target_tokens": 16,
    "decoder_num_heads": 3,
    "decoder_feed_forward_width": 20,
}


def ragged_batch(vocab_size: int, target_vocab_size: int, pad: int) -> tuple[Tensor, Tensor, Tensor]:
    source_lengths = torch.tensor([9, 1, 4, 13])
    source_mask = torch.arange(13) < source_lengths[:, None]
    source = torch.randint(0, vocab_size, (4, 13)).masked_fill(~source_mask, pad)
    target_inputs = torch.randint(0, target_vocab_size, (4, 11))
    target_inputs[:, 0] = pad
    return source, source_mask, target_inputs


def rewrite_json(path: Path, changes: Mapping[str, object]) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | dict(changes)))


def rewrite_weights(folder: Path, changes: Mapping[str, Tensor | None]) -> None:
    """Replace or, with None, remove weights of a saved checkpoint."""
    merged = load_file(folder / "model.safetensors") | dict(changes)
    kept = {name: tensor for name, tensor in merged.items() if tensor is not None}
    save_file(kept, folder / "model.safetensors")


@pytest.mark.parametrize("options", ODD_CONFIGS, ids=lambda options: "-".join(map(str, options.values())) or "plain")
def test_logits_equal_those_of_the_reference_implementation(tmp_path: Path, options: Options) -> None:
    saved = save_marian(tmp_path, options)
    checkpoint = read_checkpoint(saved.folder)
    target_vocab_size = checkpoint.config.decoder_shape.vocab_size
    source, source_mask, target_inputs = ragged_batch(
        checkpoint.config.vocab_size, target_vocab_size, checkpoint.config.pad_token_id
    )

    with torch.no_grad():
        ours = build_model(checkpoint)(source, source_mask, target_inputs)
    theirs = saved.logits(source, source_mask, target_inputs)

    assert ours.shape == (4, 11, target_vocab_size)
    assert theirs.std() > 0.1, "logits all alike would prove nothing"
    assert (ours - theirs).abs().max() <= 1e-5


def test_pickled_weights_give_the_same_model_as_safetensors(tmp_path: Path) -> None:
    saved = save_marian(tmp_path, {})
    from_safetensors = read_checkpoint(saved.folder)
    weights = load_file(saved.folder / "model.safetensors")
    shared = weights["model.shared.weight"]
    # What older checkpoints hold besides: every name of the tied weight, and the tables of positions.
    weights["model.encoder.embed_tokens.weight"] = weights["model.decoder.embed_tokens.weight"] = shared
    weights["lm_head.weight"] = shared
    weights["model.encoder.embed_positions.weight"] = sinusoidal_positions(24, 12, "halves")
    weights["model.decoder.embed_positions.weight"] = sinusoidal_positions(24, 12, "halves")
    torch.save(weights, saved.folder / "pytorch_model.bin")
    (saved.folder / "model.safetensors").unlink()

    from_pickle = read_checkpoint(saved.folder)

    assert from_safetensors.weights.keys() == from_pickle.weights.keys()
    for name, weight in from_safetensors.weights.items():
        assert torch.equal(weight, from_pickle.weights[name]), name


def test_everything_wrong_with_the_weights_is_named_in_one_error(tmp_path: Path) -> None:
    saved = save_marian(tmp_path, {})
    rewrite_weights(
        saved.folder,
        {
            "model.encoder.layers.1.fc1.weight": None,
            "model.decoder.layers.0.encoder_attn_layer_norm.bias": None,
            "model.encoder.layers.0.self_attn.q_proj.bias": torch.zeros(11),
            "model.encoder.layernorm_embedding.weight": torch.zeros(12),
            "lm_head.weight": torch.zeros(41, 12),
        },
    )
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(saved.folder)

    kinds = dict(line.strip().split(": ", 1) for line in str(caught.value).splitlines()[1:])
    assert kinds["missing"].split("; ") == [
        "model.encoder.layers.1.fc1.weight",
        "model.decoder.layers.0.encoder_attn_layer_norm.bias",
    ]
    assert kinds["unexpected"] == "model.encoder.layernorm_embedding.weight"
    assert kinds["wrong shape"] == "model.encoder.layers.0.self_attn.q_proj.bias is [11], its settings give [12]"
    assert kinds["contradictory"] == "lm_head.weight differs from model.shared.weight, to which it is tied"


@pytest.mark.parametrize(
    ("file_name", "changes", "message"),
    [
        ("config.json", {"norm_placement": "both"}, '`norm_placement` must be post or pre. Given: "both"'),
        (
            "config.json",
            {"activation_function": "quick_gelu"},
            "`activation_function` must be one of relu, gelu, gelu_new, gelu_pytorch_tanh, silu, swish. Given: ",
        ),
        ("config.json", {"d_model": "12"}, '`d_model` must be a whole number. Given: "12"'),
        ("config.json", {"encoder_layers": None}, "`encoder_layers` must be a whole number. Given: null"),
        (
            "config.json",
            {"decoder_attention_heads": 5},
            "config.json: invalid Transformer: `d_model` 12 must be divisible",
        ),
        (
            "generation_config.json",
            {"bad_words_ids": [[3, 4]]},
            "generation_config.json: `bad_words_ids` must contain single tokens, not [3, 4]",
        ),
        (
            "generation_config.json",
            {"forced_eos_token_id": 7},
            "`forced_eos_token_id` must be `eos_token_id` 0 or null. Given: 7",
        ),
        ("generation_config.json", {"forced_bos_token_id": 41}, "`forced_first_token_id` must be from 0 to 40"),
    ],
)
def test_a_setting_that_is_not_supported_is_rejected_by_name(
    tmp_path: Path, file_name: str, changes: Options, message: str
) -> None:
    saved = save_marian(tmp_path, {})
    rewrite_json(saved.folder / file_name, changes)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(saved.folder)
    assert message in str(caught.value)


def test_languages_and_tokenizer_files_are_found_beside_the_weights(tmp_path: Path) -> None:
    saved = save_marian(tmp_path, {})
    (saved.folder / "source.spm").write_bytes(b"")
    (saved.folder / "vocab.json").write_text('{"</s>": 0, "<unk>": 1}')
    (saved.folder / "tokenizer_config.json").write_text('{"source_lang": "eng", "target_lang": "deu"}')
    checkpoint = read_checkpoint(str(saved.folder))

    assert (checkpoint.languages.source, checkpoint.languages.target) == (("en",), ("de",))
    assert checkpoint.languages.source_prefix == {}
    assert dict(checkpoint.tokenizer.files) == {
        "source.spm": saved.folder / "source.spm",
        "vocab.json": saved.folder / "vocab.json",
    }
    assert checkpoint.tokenizer.kind == "marian"
    assert (checkpoint.provenance.source, checkpoint.provenance.family) == (tmp_path.name, "marian")
    assert checkpoint.provenance.weights_sha256 == sha256((saved.folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture
def model() -> Transformer:
    return small_model(MARIAN)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"tie_embeddings": False, "target_vocab_size": 29, "activation": "gelu_tanh"},
        {"norm_placement": "pre", "final_norm": True, "embedding_norm": True},
    ],
)
def test_what_was_written_is_read_again(changed: dict[str, object], tmp_path: Path) -> None:
    model = small_model(MARIAN | changed)
    write_marian(model, tmp_path, "en", "de")
    read = read_checkpoint(tmp_path)
    assert read.config == model.config
    assert (read.languages.source, read.languages.target) == (("en",), ("de",))
    for ours, theirs in zip(model.parameters(), build_model(read).parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_the_reference_implementation_reads_it_and_computes_the_same(model: Transformer, tmp_path: Path) -> None:
    write_marian(model, tmp_path, "en", "de")
    reference = MarianMTModel.from_pretrained(tmp_path).eval()
    source, target = torch.randint(1, 31, (3, 7)), torch.randint(1, 31, (3, 5))
    mask = torch.arange(7) < torch.tensor([[7], [4], [1]])
    with torch.no_grad():
        expected = reference(input_ids=source, attention_mask=mask.long(), decoder_input_ids=target).logits
        torch.testing.assert_close(model(source, mask, target), expected, atol=1e-5, rtol=1e-5)
    assert reference.generation_config.bad_words_ids == [[0]]
    assert reference.generation_config.decoder_start_token_id == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"norm": "rms"}, "`norm` must be 'layer'. Given: 'rms'"),
        ({"gated": True, "tie_output": False}, "`gated` must be False.*; `tie_output` must be True"),
    ],
)
def test_a_model_that_the_format_cannot_represent_is_rejected(
    changed: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        write_marian(small_model(MARIAN | changed), tmp_path, "en", "de")
    assert not any(tmp_path.iterdir())
