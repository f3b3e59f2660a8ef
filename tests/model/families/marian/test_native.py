import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoints.checkpoint import Checkpoint, CheckpointError
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from tests.model.families.marian.numpy_marian import NumpyMarian
from tests.model.families.marian.random_files import (
    MarianShape,
    intgemm8,
    random_arrays,
    write_binary,
    write_random_model,
)

SHAPES = {
    "a student with a recurrent decoder": MarianShape(),
    "self-attention": MarianShape(is_recurrent=False, activation="swish"),
    "two vocabularies, pre-norm": MarianShape(
        is_pre_norm=True, tied="output", has_two_vocabularies=True, decoder_feed_forward_width=40
    ),
    "nothing tied": MarianShape(is_recurrent=False, tied="none", has_two_vocabularies=True, is_pre_norm=True),
    "tied inputs, no bias": MarianShape(tied="source", has_output_bias=False, embedding_steps="dn"),
}
DEFAULT = SHAPES["a student with a recurrent decoder"]


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to copy."""
    return write_random_model(tmp_path_factory.mktemp("student") / "student", DEFAULT)


@pytest.fixture
def copied(student: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(student, tmp_path / "copied"))


def _stored(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "model.npz", allow_pickle=False) as stored:
        return dict(stored)


def _with_description(folder: Path, **changes: object) -> None:
    stored = _stored(folder)
    description = json.loads(stored["special:model.yml"].tobytes().rstrip(b"\0"))
    changed = json.dumps(description | {name.replace("_", "-"): value for name, value in changes.items()})
    stored["special:model.yml"] = np.frombuffer(changed.encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", allow_pickle=False, **stored)


def _assert_equal(checkpoint: Checkpoint, reference: NumpyMarian, vocab_sizes: tuple[int, int]) -> None:
    model, random = build_model(checkpoint), np.random.default_rng(0)
    for length in (1, 4, 9):
        source, target = (random.integers(0, size, length).tolist() for size in vocab_sizes)
        inputs = torch.tensor([[checkpoint.config.decoder_start_token_id, *target]])
        tokens = torch.tensor([source])
        with torch.no_grad():
            found = model(tokens, torch.ones_like(tokens, dtype=torch.bool), inputs)[0].numpy()
        expected = reference.logits(source, target)
        np.testing.assert_allclose(found[:, : expected.shape[1]], expected, atol=2e-4)
        # The token that Marian does not have takes no probability.
        assert (found[:, expected.shape[1] :] < -5000).all()


@pytest.mark.parametrize("name", SHAPES)
def test_logits_equal_those_of_marians_formulas(name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    folder = write_random_model(tmp_path / "model", shape, seed=3)
    checkpoint = read_checkpoint(folder)
    sizes = [len(json.loads(content)) for content in checkpoint.tokenizer.converted.values()]
    arrays = random_arrays(shape, (sizes[0], sizes[-1]), np.random.default_rng(3))
    assert checkpoint.config.has_recurrent_decoder == shape.is_recurrent
    assert checkpoint.tokenizer.kind == ("marian" if shape.has_two_vocabularies else "sentencepiece")
    _assert_equal(checkpoint, NumpyMarian(arrays, shape), (sizes[0], sizes[-1]))


def test_a_vocabulary_of_pieces_is_read_with_the_models_beside_it(copied: Path) -> None:
    expected = read_checkpoint(copied)
    pieces = json.loads(expected.tokenizer.converted["vocab.json"])
    lines = (f"{json.dumps(piece)}: {number}\n" for piece, number in pieces.items())
    (copied / "opus.vocab.yml").write_text("".join(lines), "utf-8")
    (copied / "vocab.ende.spm").rename(copied / "source.spm")
    with pytest.raises(CheckpointError, match=r"opus.vocab.yml lists the pieces .* copy its source.spm and target.spm"):
        read_checkpoint(copied)
    shutil.copyfile(copied / "source.spm", copied / "target.spm")
    found = read_checkpoint(copied)
    assert found.tokenizer.kind == "marian"
    assert json.loads(found.tokenizer.converted["vocab.json"]) == pieces


@pytest.mark.parametrize(
    ("name", "content", "languages"),
    [
        ("metadata.json", {"sourceLanguage": "en", "targetLanguage": "pt"}, ("en", "pt")),
        ("model_info.json", {"srcTags": {"en": "English"}, "trgTag": "de"}, ("en", "de")),
        ("other.json", {}, ("en", "et")),
        ("", {}, ("en", "de")),
    ],
)
def test_languages_come_from_the_metadata_or_from_names(
    copied: Path, name: str, content: object, languages: tuple[str, str]
) -> None:
    if name:  # otherwise model.npz and vocab.ende.spm
        (copied / "model.npz").rename(copied / "model.enet.npz")
        (copied / name).write_text(json.dumps(content))
    found = read_checkpoint(copied).languages
    assert (*found.source, *found.target) == languages


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transformer_rnn_projection": True}, "`transformer-rnn-projection` must be False. Given: True"),
        ({"dec_cell": "gru"}, "`dec-cell`.*must be ssru"),
        ({"transformer_decoder_autoreg": "average-attention"}, "`transformer-decoder-autoreg`.*self-attention or rnn"),
        ({"transformer_preprocess": "n"}, "`transformer-preprocess` and `transformer-postprocess`"),
        ({"transformer_ffn_activation": "gelu"}, "`transformer-ffn-activation`.*relu, swish"),
        ({"transformer_heads": 5}, "`d_model` 32 must be divisible by `num_heads` 5"),
        ({"enc_depth": 3}, "missing: encoder_l3_self_Wq"),
        ({"dec_depth": 1}, "unexpected: decoder_l2_context_Wk"),
        ({"tied_embeddings_all": False}, "no table encoder_Wemb"),
    ],
)
def test_a_model_of_another_architecture_is_rejected_with_the_field(
    copied: Path, changes: dict[str, object], message: str
) -> None:
    _with_description(copied, **changes)
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(copied)


def _as_binary(folder: Path, *, is_int8: bool, alphas: dict[str, float] | None = None) -> Path:
    stored = _stored(folder)
    description = stored.pop("special:model.yml").tobytes().rstrip(b"\0").decode()
    (folder / "model.npz").unlink()
    path = folder / "model.ende.intgemm.alphas.bin"
    write_binary(path, stored, description, is_int8=is_int8, alphas=alphas)
    return path


def test_a_binary_file_in_float32_is_read_like_an_archive(copied: Path) -> None:
    expected = read_checkpoint(copied)
    _as_binary(copied, is_int8=False)
    found = read_checkpoint(copied)
    assert found.config == expected.config
    assert not found.is_quantized
    assert (found.languages.source, found.languages.target) == (("en",), ("de",))
    for name, weight in expected.weights.items():
        assert torch.equal(found.weights[name], weight), name


@pytest.mark.parametrize("alphas", [None, {"encoder_l1_self_Wq": 20.0, "none": 31.5}])
def test_int8_weights_are_multiples_of_their_step(copied: Path, alphas: dict[str, float] | None) -> None:
    arrays = _stored(copied)
    _as_binary(copied, is_int8=True, alphas=alphas)
    found = read_checkpoint(copied)
    assert found.is_quantized
    quantized, multiplier = intgemm8(arrays["encoder_l2_ffn_W1"])
    weight = found.weights["encoder.layers.1.feed_forward.inner_proj.weight"]
    np.testing.assert_array_equal(np.rint(weight.numpy().T * multiplier), quantized)
    np.testing.assert_allclose(weight.numpy().T, arrays["encoder_l2_ffn_W1"], atol=0.51 / multiplier)
    quantized, multiplier = intgemm8(arrays["Wemb"])
    table = found.weights["encoder.embedding.weight"].numpy()
    np.testing.assert_array_equal(np.rint(table[:-1] * multiplier), quantized)
    bias = found.weights["decoder.layers.0.recurrence.forget_proj.bias"]
    np.testing.assert_array_equal(bias.numpy(), arrays["decoder_l1_rnn_bf"][0])


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, 2, "the binary version must be 1. Given: 2"),
        (8, 90, "is damaged"),
        (24, 0x1801, "has the type 0x1801; supported are"),
        (32, 3, "is damaged"),
        (40, 1 << 50, "is damaged: it ends after"),
    ],
)
def test_a_damaged_binary_file_is_rejected_with_the_finding(
    copied: Path, position: int, value: int, message: str
) -> None:
    path = _as_binary(copied, is_int8=True)
    content = bytearray(path.read_bytes())
    content[position : position + 8] = value.to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(copied)


def test_a_file_cut_anywhere_is_rejected(copied: Path) -> None:
    path = _as_binary(copied, is_int8=True)
    content = path.read_bytes()
    for share in range(1, 20):
        path.write_bytes(content[: len(content) * share // 20])
        with pytest.raises(CheckpointError):
            read_checkpoint(copied)


@pytest.mark.parametrize("name", ["metadata.json", "model_info.json", "decoder.yml", "vocab.yml"])
@pytest.mark.parametrize("content", ['{"a":' + "[" * 100_000, "- " * 100_000, "9" * 5000])
def test_deep_nesting_and_endless_numbers_are_rejected(copied: Path, name: str, content: str) -> None:
    if name == "vocab.yml":  # instead of the SentencePiece model
        for path in copied.glob("*.spm"):
            path.unlink()
    (copied / name).write_text(content)
    with pytest.raises(CheckpointError):
        read_checkpoint(copied)


def test_arrays_that_expand_without_measure_are_rejected(copied: Path) -> None:
    stored = _stored(copied)
    stored["zeros"] = np.zeros(150_000_000, np.int8)
    np.savez_compressed(copied / "model.npz", allow_pickle=False, **stored)
    with pytest.raises(CheckpointError, match=r"its arrays have 15\d+ bytes, too many for a file of"):
        read_checkpoint(copied)
    stored["zeros"] = np.array(["a word"])
    np.savez(copied / "model.npz", allow_pickle=False, **stored)
    with pytest.raises(CheckpointError, match=r"model.npz is damaged: could not convert string"):
        read_checkpoint(copied)


def test_a_folder_of_bergamot_is_read_as_it_lies_on_disk(tmp_path: Path) -> None:
    folder = write_random_model(tmp_path / "ende.student.tiny11", MarianShape())
    (folder / "model.npz").rename(folder / "model.intgemm.alphas.npz")
    (folder / "lex.s2t.bin").write_bytes(b"binary")
    (folder / "lex.s2t.gz").write_bytes(gzip.compress(b"Haus house 0.9\n"))
    (vocabulary,) = folder.glob("vocab*")
    vocabulary.rename(folder / f"vocab.deen{vocabulary.suffix}")
    settings = {
        "relative-paths": True,
        "models": ["model.intgemm.alphas.npz"],
        "vocabs": [f"vocab.deen{vocabulary.suffix}"] * 2,
        "shortlist": ["lex.s2t.gz", 50, 50],
    }
    for name in ("config.intgemm8bitalpha.yml", "config.bergamot.yml"):
        (folder / name).write_text(json.dumps(settings), "utf-8")
    (folder / "catalog-entry.yml").write_text("name: tiny11\n", "utf-8")
    (folder / "._model.npz.decoder.yml").write_bytes(b"\0\x05\x16\x07")  # attributes, of macOS
    checkpoint = read_checkpoint(str(folder))
    # The vocabulary, which both directions share, is named after the other one.
    assert (checkpoint.languages.source, checkpoint.languages.target) == (("en",), ("de",))
    assert checkpoint.shortlist == folder / "lex.s2t.bin"
    assert checkpoint.unread_shortlists == ()
    (folder / "lex.s2t.bin").unlink()
    checkpoint = read_checkpoint(str(folder))
    assert checkpoint.shortlist is None
    assert checkpoint.unread_shortlists == (folder / "lex.s2t.gz",)
