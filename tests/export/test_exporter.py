"""A checkpoint with an unusual tokenizer, exported into an empty folder."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
import pytest
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from bundle import tensors as names
from bundle.loading import Bundle, load_bundle
from bundle.manifest import TARGET_SENTENCEPIECE_FILE
from export.checks import ExportError
from export.exporter import export_bundle
from export.graphs.external_weights import MIN_DEFERRED_BYTES
from export.graphs.layers import Heads
from export.verification.verify import VerificationError, verify_bundle
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from tests.export.tiny_checkpoint import remove_pieces, write_checkpoint
from tests.model.random_models import Options


@pytest.fixture
def changed(checkpoint: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint, to be changed."""
    return Path(shutil.copytree(checkpoint, tmp_path / "in" / "tiny-en-de"))


def _assert_refused(checkpoint: Path, folder: Path, *reasons: str) -> None:
    with pytest.raises(ExportError) as raised:
        export_bundle(checkpoint, folder)
    for reason in reasons:
        assert reason in str(raised.value)
    assert not folder.exists()


def test_a_checkpoint_becomes_a_bundle_that_loads(float32_bundle: Bundle) -> None:
    loaded = load_bundle(float32_bundle.path)
    assert loaded == float32_bundle
    config = loaded.config
    assert (config.name, config.precision) == ("tiny", "float32")
    assert (config.source_languages, config.target_languages) == (("en",), ("de",))
    special = config.special_tokens
    assert (special.end_of_sequence, special.unknown, special.forced_end) == (0, 1, True)
    assert special.padding == special.decoder_start == config.shapes.vocab_size - 1
    assert special.suppressed == (special.padding,)
    assert config.shapes.head_dim == 16  # 12 in the checkpoint


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_no_file_of_a_bundle_holds_a_path_of_the_machine_that_made_it(
    precision: str, checkpoint: Path, request: pytest.FixtureRequest
) -> None:
    bundle: Bundle = request.getfixturevalue(f"{precision}_bundle")
    project = Path(__file__).resolve().parents[2]
    for path in bundle.path.iterdir():
        content = path.read_bytes()
        for foreign in (b"site-packages", b'.py"', str(project).encode(), str(checkpoint.parent).encode()):
            assert foreign not in content, f"{path.name} holds {foreign!r}"


def test_a_float16_bundle_takes_float16_caches_and_answers_alike(checkpoint: Path, float16_bundle: Bundle) -> None:
    assert float16_bundle.config.layout == "parts"
    decoder = onnx.load(float16_bundle.file(names.DECODER_FILE))
    types = {value.name: value.type.tensor_type.elem_type for value in (*decoder.graph.input, *decoder.graph.output)}
    assert types["self_keys_0"] == types["present_self_keys_0"] == types[names.STEP_LOGITS] == onnx.TensorProto.FLOAT16
    assert types[names.SUPPRESSED_LOGITS] == onnx.TensorProto.FLOAT
    largest = max(
        difference.relative for difference in verify_bundle(float16_bundle, build_model(read_checkpoint(checkpoint)))
    )
    assert 1e-5 < largest < 1e-2  # rounded, and no more than that


def test_a_folder_with_something_in_it_is_left_alone(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "taken"
    folder.mkdir()
    (folder / "letter.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match="taken is not empty, it contains"):
        export_bundle(checkpoint, folder)
    assert [path.name for path in folder.iterdir()] == ["letter.txt"]


def test_a_checkpoint_without_a_tokenizer_is_refused(changed: Path, tmp_path: Path) -> None:
    (changed / "source.spm").unlink()
    (changed / "vocab.json").unlink()
    _assert_refused(changed, tmp_path / "out", "tiny-en-de", "source.spm", "vocab.json")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_position_embeddings": 7}, r"at least 8 tokens\. Given: 7"),
        ({"d_model": 514, "encoder_attention_heads": 2}, r"at most 256 wide\. Given: 257; export it in float32"),
    ],
)
def test_a_model_that_no_graph_is_made_for_is_refused(options: Options, reason: str, tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "odd", {"decoder_attention_heads": 2, **options})
    with pytest.raises(ExportError, match=reason):
        export_bundle(checkpoint, tmp_path / "out", "int8")


def test_a_checkpoint_without_languages_is_refused(changed: Path, tmp_path: Path) -> None:
    (changed / "tokenizer_config.json").unlink()
    _assert_refused(changed, tmp_path / "out", "tiny-en-de", "source_lang", "target_lang")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"<unk>": None}, "no <unk>"),
        ({"beyond": 10_000}, "has a token 10000, but the weights have"),
        ({"the": "7"}, "is not a vocabulary"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_refused(
    changed: Path, tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    path = changed / "vocab.json"
    vocabulary = json.loads(path.read_text(encoding="utf-8")) | change
    kept = {piece: token for piece, token in vocabulary.items() if token is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")
    _assert_refused(changed, tmp_path / "out", "vocab.json", reason)


@pytest.mark.parametrize("file", ["source.spm", "target.spm"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 778395\n", "git lfs pull"),
        (b"garbage", "is not a SentencePiece model"),
    ],
)
def test_a_tokenizer_that_is_no_sentencepiece_model_is_refused(
    changed: Path, tmp_path: Path, file: str, content: bytes, reason: str
) -> None:
    (changed / file).write_bytes(content)
    _assert_refused(changed, tmp_path / "out", file, reason)


def test_a_damaged_checkpoint_leaves_nothing_behind(changed: Path, tmp_path: Path) -> None:
    weights = changed / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        export_bundle(changed, tmp_path / "out" / "bundle")
    assert not (tmp_path / "out").exists()


def test_a_bundle_that_differs_from_its_model_is_not_written(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if attention had been exported with another scale than the model has.
    of = Heads.of
    monkeypatch.setattr(Heads, "of", lambda attention: replace(of(attention), scale=0.5))
    reports: list[str] = []
    folder = tmp_path / "out" / "bundle"
    with pytest.raises(VerificationError, match="cross keys 0"):
        export_bundle(checkpoint, folder, report=reports.append)
    assert reports[-1] == "comparing PyTorch with ONNX Runtime"
    assert list((tmp_path / "out").iterdir()) == []


@dataclass(frozen=True, slots=True)
class Unusual:
    """An int8 bundle with other languages, from a checkpoint with an unusual tokenizer, exported into an empty folder
    by graphs that name all their weights.
    """

    checkpoint: Path
    removed_pieces: list[str]
    bundle: Bundle
    reports: list[str]


@pytest.fixture(scope="module")
def unusual(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Unusual:
    """Two SentencePiece models that differ, and two pieces of both that the vocabulary lacks."""
    changed = Path(shutil.copytree(checkpoint, tmp_path_factory.mktemp("unusual") / "tiny-en-de"))
    other = ModelProto.FromString((changed / "source.spm").read_bytes())
    other.pieces[-1].score -= 1
    (changed / "target.spm").write_bytes(other.SerializeToString())
    removed = remove_pieces(changed, 2)
    folder = tmp_path_factory.mktemp("filled") / "empty"
    folder.mkdir()
    reports: list[str] = []
    languages = ["eng", "pt_br", "en"]
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr("export.graphs.tracing.MIN_DEFERRED_BYTES", 0)
        bundle = export_bundle(changed, folder, "int8", name="other", report=reports.append, source_languages=languages)
    return Unusual(changed, removed, bundle, reports)


def test_a_bundle_has_two_sentencepiece_models_if_they_differ(unusual: Unusual) -> None:
    source, target = ((unusual.checkpoint / f"{side}.spm").read_bytes() for side in ("source", "target"))
    assert unusual.bundle.file(TARGET_SENTENCEPIECE_FILE).read_bytes() == target != source


def test_a_few_pieces_outside_the_vocabulary_are_reported(unusual: Unusual) -> None:
    lines = [report for report in unusual.reports if "vocab.json lacks 2 of the" in report]
    assert len(lines) == 2
    assert all(report.endswith(f"become <unk>: {' '.join(unusual.removed_pieces)}") for report in lines)


def test_an_empty_folder_is_filled_by_a_model_of_the_languages_that_are_named(unusual: Unusual) -> None:
    assert (unusual.bundle.config.name, unusual.bundle.config.source_languages) == ("other", ("en", "pt-BR"))
    assert [path.name for path in unusual.bundle.path.parent.iterdir()] == ["empty"]


@pytest.mark.parametrize("file", [names.ENCODER_FILE, names.DECODER_FILE])
def test_graphs_depend_neither_on_the_tokenizer_nor_on_the_size_of_weights_that_they_only_name(
    file: str, unusual: Unusual, int8_bundle: Bundle
) -> None:
    assert int8_bundle.file(file).stat().st_size < MIN_DEFERRED_BYTES
    assert unusual.bundle.file(file).read_bytes() == int8_bundle.file(file).read_bytes()
