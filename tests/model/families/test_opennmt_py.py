import argparse
import re
from pathlib import Path

import ctranslate2
import pytest
import torch
from ctranslate2.converters import OpenNMTPyConverter

from export.checks import require_tokenizer
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from model.positions import sinusoidal_positions
from tests.export.tiny_checkpoint import train_sentencepiece
from tests.model.families.ctranslate2.conversions import greedy
from tests.model.random_models import small_model

SPECIAL = ["<unk>", "<blank>", "<s>", "</s>"]
D_MODEL, NUM_STEPS = 24, 12
OURS_TO_THEIRS = (
    (r"^encoder\.layers\.(\d+)\.self_attention_norm\.", r"encoder.transformer.\1.layer_norm."),
    (r"^encoder\.layers\.", "encoder.transformer."),
    (r"^decoder\.layers\.", "decoder.transformer_layers."),
    (r"\.self_attention_norm\.", ".layer_norm_1."),
    (r"\.cross_attention_norm\.", ".layer_norm_2."),
    (r"\.feed_forward_norm\.", ".feed_forward.layer_norm."),
    (r"\.final_norm\.", ".layer_norm."),
    (r"\.self_attention\.", ".self_attn."),
    (r"\.cross_attention\.", ".context_attn."),
    (r"query_proj", "linear_query"),
    (r"key_proj", "linear_keys"),
    (r"value_proj", "linear_values"),
    (r"out_proj", "final_linear"),
    (r"inner_proj", "w_1"),
    (r"outer_proj", "w_2"),
    (r"\.embedding\.", ".embeddings.make_embedding.emb_luts.0."),
)


def _write(folder: Path, *, ties: bool, qkv_biases: bool, activation: str) -> tuple[Path, dict[str, object]]:
    """Write a random checkpoint of OpenNMT-py 3 and a tokenizer, and return its options, too."""
    vocabulary = [*SPECIAL, *train_sentencepiece(folder)]
    (folder / "target.spm").unlink()
    torch.manual_seed(3)
    model = small_model(
        {
            "vocab_size": len(vocabulary),
            "d_model": D_MODEL,
            "num_heads": 4,
            "norm_placement": "pre",
            "final_norm": True,
            "tie_embeddings": ties,
            "tie_output": ties,
            "output_bias": True,
            "activation": {"fast_gelu": "gelu_tanh"}.get(activation, activation),
            "pad_token_id": 1,
            "eos_token_id": 3,
            "decoder_start_token_id": 2,
        }
    )
    stored, generator = {}, {}
    for name, parameter in model.state_dict().items():
        if name.startswith("output_"):
            generator["bias" if name == "output_bias" else "weight"] = parameter
            continue
        if not qkv_biases and re.search(r"(query|key|value)_proj\.bias$", name):
            continue
        for ours, theirs in OURS_TO_THEIRS:
            name = re.sub(ours, theirs, name)
        stored[name] = parameter
    positions = sinusoidal_positions(5000, D_MODEL, "interleaved")[:, None]
    stored |= {f"{stack}.embeddings.make_embedding.pe.pe": positions for stack in ("encoder", "decoder")}
    options: dict[str, object] = {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "enc_layers": 2,
        "dec_layers": 2,
        "heads": 4,
        "position_encoding": True,
        "max_relative_positions": 0,
        "pos_ffn_activation_fn": activation,
        "norm_eps": 1e-6,
        "lambda_align": 0,
    }
    content = {
        "model": stored,
        "generator": generator,
        "vocab": {"src": vocabulary, "tgt": vocabulary, "data_task": "seq2seq"},
        "opt": argparse.Namespace(**options),
        "optim": {"training_step": 7},
    }
    torch.save(content, folder / "model.pt")
    return folder / "model.pt", content


@pytest.mark.parametrize(
    ("ties", "qkv_biases", "activation"), [(True, True, "relu"), (False, False, "gelu"), (True, False, "fast_gelu")]
)
def test_a_checkpoint_gives_the_tokens_that_ctranslate2_gives(
    tmp_path: Path, ties: bool, qkv_biases: bool, activation: str
) -> None:
    torch.set_num_threads(1)
    file, content = _write(tmp_path / "trained", ties=ties, qkv_biases=qkv_biases, activation=activation)
    checkpoint = read_checkpoint(file)
    require_tokenizer(checkpoint, pytest.fail)
    assert checkpoint.tokenizer.template.after == ()
    assert checkpoint.config.tie_output == ties
    OpenNMTPyConverter(str(file), unsafe_deserialization=True).convert(str(tmp_path / "converted"))
    reference = ctranslate2.Translator(str(tmp_path / "converted"), compute_type="float32", intra_threads=1)
    vocabulary: list[str] = content["vocab"]["src"]  # type: ignore[index]
    generator = torch.Generator().manual_seed(4)
    sources = [
        torch.randint(4, len(vocabulary), (int(length),), generator=generator).tolist()
        for length in torch.randint(1, 12, (100,), generator=generator)
    ]
    answers = reference.translate_batch(
        [[vocabulary[token] for token in source] for source in sources],
        beam_size=1,
        max_decoding_length=NUM_STEPS,
        min_decoding_length=0,
    )
    ours = greedy(build_model(checkpoint), sources, None, NUM_STEPS)
    found = [[vocabulary[token] for token in tokens] for tokens in ours]
    assert len({tuple(tokens) for tokens in found}) > 5
    assert found == [answer.hypotheses[0] for answer in answers]


class RunsOnLoading:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("it_ran"),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"optim": RunsOnLoading()}, "objects other than weights and options, which are not loaded .*GLOBAL getattr"),
        ({"vocab": {"src": {"a": 1}, "tgt": []}}, "`vocab` must have the tokens of `src` and `tgt`"),
        ({"opt": "no options"}, "the options must be a namespace. Given: str"),
        ({"generator": {"weight": 3}}, "`generator` must contain weights by name"),
        ({"model": {}}, "has no embeddings or no layers"),
        ({"heads": 5}, "`d_model` 24 must be divisible by `num_heads` 5"),
        ({"encoder_type": "rnn"}, '`encoder_type` must be transformer. Given: "rnn"'),
        ({"max_relative_positions": 20}, "`max_relative_positions` must be 0. Given: 20"),
        ({"pos_ffn_activation_fn": "tanh"}, "`pos_ffn_activation_fn` must be one of relu"),
        ({"enc_layers": 3}, "missing: encoder.layers.2"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file, content = _write(tmp_path / "trained", ties=True, qkv_biases=True, activation="relu")
    for name, value in change.items():
        if name in content:
            content[name] = value
        else:
            setattr(content["opt"], name, value)
    torch.save(content, file)
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(file)
    assert not (tmp_path / "it_ran").exists()


def test_a_file_of_pytorch_before_1_6_is_read(tmp_path: Path) -> None:
    file, content = _write(tmp_path / "trained", ties=True, qkv_biases=True, activation="relu")
    expected = read_checkpoint(file).weights
    old = file.with_name("old.pt")  # the first file is mapped
    torch.save(content, old, _use_new_zipfile_serialization=False)
    weights = read_checkpoint(old).weights
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


def test_one_of_several_files_must_be_named_and_those_of_macos_are_none(tmp_path: Path) -> None:
    file, _ = _write(tmp_path / "trained", ties=True, qkv_biases=True, activation="relu")
    file.with_name("._model.pt").write_bytes(b"\0\x05\x16\x07")
    assert read_checkpoint(file.parent).provenance.family == "opennmt-py"
    file.with_name("step_5000.pt").write_bytes(file.read_bytes())
    with pytest.raises(CheckpointError, match=r"has 2 checkpoints: model\.pt step_5000\.pt; name one .*/model\.pt$"):
        read_checkpoint(file.parent)
    assert read_checkpoint(file).provenance.family == "opennmt-py"
