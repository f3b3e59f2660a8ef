"""A checkpoint with an unusual tokenizer, exported into an empty folder."""

import json
import shutil
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from bundle import tensors as names
from bundle.loading import Bundle, check_graph, load_bundle
from bundle.manifest import MANIFEST_FILE, REQUIRED_TOKENIZER_FILES, TARGET_SENTENCEPIECE_FILE
from bundle.tensors import Precision
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


@pytest.fixture(scope="module")
def float16_bundle(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_bundle(checkpoint, tmp_path_factory.mktemp("float16") / "tiny", "float16", name="half")


def _assert_refused(checkpoint: Path, folder: Path, *reasons: str) -> None:
    with pytest.raises(ExportError) as raised:
        export_bundle(checkpoint, folder)
    for reason in reasons:
        assert reason in str(raised.value)
    assert not folder.exists()


@pytest.mark.parametrize("precision", ["int8", "float32", "float16"])
def test_a_bundle_does_not_depend_on_the_size_of_weights_that_its_graphs_only_name(
    precision: Precision,
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    none_named: Bundle = request.getfixturevalue(f"{precision}_bundle")
    assert all(file.stat().st_size < MIN_DEFERRED_BYTES for file in none_named.path.iterdir())
    monkeypatch.setattr("export.graphs.tracing.MIN_DEFERRED_BYTES", 0)
    all_named = export_bundle(checkpoint, tmp_path / "tiny", precision, name=none_named.config.name)
    first, second = (
        {file.name: file.read_bytes() for file in bundle.path.iterdir()} for bundle in (all_named, none_named)
    )
    assert first == second


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


def test_every_file_is_listed_with_its_digest(float32_bundle: Bundle) -> None:
    on_disk = {path.name for path in float32_bundle.path.iterdir()}
    assert on_disk == {*float32_bundle.config.files, MANIFEST_FILE}
    assert {*names.GRAPH_FILES, *REQUIRED_TOKENIZER_FILES["marian"]} <= on_disk
    for name, record in float32_bundle.config.files.items():
        content = float32_bundle.file(name).read_bytes()
        assert (record.bytes, record.sha256) == (len(content), sha256(content).hexdigest())


def test_an_int8_bundle_has_one_copy_of_the_embeddings_and_of_the_sentencepiece_model(int8_bundle: Bundle) -> None:
    encoder, decoder = (
        {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(int8_bundle.file(file)).graph.initializer}
        for file in names.GRAPH_FILES
    )
    # Equal tensors of large models are one place in a file of weights.
    for panels in (encoder["embed.weight/panels"], decoder["embed.weight/panels"]):
        np.testing.assert_array_equal(panels, decoder["output_weight/panels"])
    assert TARGET_SENTENCEPIECE_FILE not in int8_bundle.config.files


def test_a_bundle_says_where_it_came_from_without_a_path(checkpoint: Path, float32_bundle: Bundle) -> None:
    provenance = float32_bundle.config.provenance
    assert (provenance.source, provenance.family) == ("tiny-en-de", "marian")
    assert provenance.weights_sha256 == sha256((checkpoint / "model.safetensors").read_bytes()).hexdigest()
    assert provenance.num_parameters == sum(p.numel() for p in build_model(read_checkpoint(checkpoint)).parameters())
    assert provenance.exporter == f"kvasir {version('kvasir-server')}"


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


def test_both_graphs_carry_the_sizes_they_were_exported_with(int8_bundle: Bundle) -> None:
    for file in (names.ENCODER_FILE, names.DECODER_FILE):
        metadata = {entry.key: entry.value for entry in onnx.load(int8_bundle.file(file)).metadata_props}
        check_graph(int8_bundle, file, metadata)


def test_int8_graphs_have_no_node_that_nothing_reads(int8_bundle: Bundle) -> None:
    for file in (names.ENCODER_FILE, names.DECODER_FILE):
        graph = onnx.load(int8_bundle.file(file), load_external_data=False).graph
        read = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
        assert [node.name or node.op_type for node in graph.node if read.isdisjoint(node.output)] == []


def test_int8_is_smaller(float32_bundle: Bundle, int8_bundle: Bundle, float16_bundle: Bundle) -> None:
    for file in (names.ENCODER_FILE, names.DECODER_FILE):
        sizes = [bundle.config.files[file].bytes for bundle in (int8_bundle, float16_bundle, float32_bundle)]
        assert sizes[0] < sizes[2] / 2
        assert sizes[1] < sizes[2] * 0.7


def test_a_float16_bundle_takes_float16_caches_and_answers_alike(checkpoint: Path, float16_bundle: Bundle) -> None:
    assert (float16_bundle.config.name, float16_bundle.config.layout) == ("half", "parts")
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


def test_a_file_in_the_place_of_the_folder_is_left_alone(checkpoint: Path, tmp_path: Path) -> None:
    file = tmp_path / "bundle"
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match="is a file"):
        export_bundle(checkpoint, file)
    assert file.read_text(encoding="utf-8") == "mine"


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


def test_a_vocabulary_of_other_pieces_than_the_tokenizer_has_is_refused(changed: Path, tmp_path: Path) -> None:
    remove_pieces(changed, 30)
    _assert_refused(changed, tmp_path / "out", "vocab.json lacks 30 of the 36 ", "pieces of source.spm")


def test_a_target_vocabulary_of_other_pieces_is_refused(changed: Path, tmp_path: Path) -> None:
    (changed / "target_vocab.json").write_bytes((changed / "vocab.json").read_bytes())
    vocabulary = changed / "target_vocab.json"
    vocabulary.write_text('{"</s>": 0, "<unk>": 1, "<pad>": 2}', encoding="utf-8")
    _assert_refused(changed, tmp_path / "out", "target_vocab.json lacks", "pieces of target.spm")


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
    """A bundle exported into an empty folder, with other languages, from a checkpoint with an unusual tokenizer."""

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
    bundle = export_bundle(changed, folder, "float32", report=reports.append, source_languages=["eng", "pt_br", "en"])
    return Unusual(changed, removed, bundle, reports)


def test_a_bundle_has_two_sentencepiece_models_if_they_differ(unusual: Unusual) -> None:
    source, target = ((unusual.checkpoint / f"{side}.spm").read_bytes() for side in ("source", "target"))
    assert unusual.bundle.file(TARGET_SENTENCEPIECE_FILE).read_bytes() == target != source


def test_a_few_pieces_outside_the_vocabulary_are_reported(unusual: Unusual) -> None:
    lines = [report for report in unusual.reports if "vocab.json lacks 2 of the" in report]
    assert len(lines) == 2
    assert all(report.endswith(f"become <unk>: {' '.join(unusual.removed_pieces)}") for report in lines)


def test_an_empty_folder_is_filled_by_a_model_of_the_languages_that_are_named(
    unusual: Unusual, float32_bundle: Bundle
) -> None:
    bundle = unusual.bundle
    assert bundle.config.source_languages == ("en", "pt-BR")
    assert [path.name for path in bundle.path.parent.iterdir()] == ["empty"]
    ours, theirs = (
        [numpy_helper.to_array(tensor) for tensor in onnx.load(b.file(names.DECODER_FILE)).graph.initializer]
        for b in (bundle, float32_bundle)
    )
    assert all(np.array_equal(mine, other) for mine, other in zip(ours, theirs, strict=True))
