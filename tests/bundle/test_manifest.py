import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bundle import tensors as names
from bundle.loading import Bundle, check_graph, load_bundle, record_file, save_manifest
from bundle.manifest import (
    MANIFEST_FILE,
    REQUIRED_TOKENIZER_FILES,
    SOURCE_SENTENCEPIECE_FILE,
    VOCABULARY_FILE,
    BundleConfig,
    BundleError,
    Provenance,
    Shapes,
    SpecialTokens,
)

MODELS = Path(__file__).resolve().parents[2] / "models"
REQUIRED_FILES = (*names.GRAPH_FILES, *REQUIRED_TOKENIZER_FILES["marian"])
SHAPES = Shapes(
    vocab_size=31,
    target_vocab_size=29,
    d_model=12,
    num_encoder_layers=2,
    num_decoder_layers=1,
    num_heads=3,
    head_dim=8,
    max_source_tokens=16,
    max_target_tokens=18,
)


@pytest.fixture
def saved(tmp_path: Path) -> Bundle:
    """A bundle whose files hold no graphs: that is for ONNX Runtime to find."""
    folder = tmp_path / "en-de"
    folder.mkdir()
    for name in REQUIRED_FILES:
        (folder / name).write_bytes(f"content of {name}".encode())
    config = BundleConfig(
        name="en-de",
        source_languages=("en",),
        target_languages=("de", "nl"),
        target_language_tokens={"de": ">>deu<<", "nl": ">>nld<<"},
        precision="int8",
        shapes=SHAPES,
        attention_scale=1.0,
        special_tokens=SpecialTokens(
            end_of_sequence=0, padding=30, decoder_start=28, unknown=1, suppressed=(28,), forced_end=True
        ),
        encoder_inputs=(names.SOURCE_TOKENS, names.SOURCE_LENGTHS),
        encoder_outputs=(names.CROSS_KEYS_VALUES,),
        decoder_inputs=names.decoder_input_names(1),
        decoder_outputs=names.decoder_output_names(1),
        provenance=Provenance(
            source="en-de", family="marian", weights_sha256="0" * 64, num_parameters=7, exporter="kvasir"
        ),
        files={name: record_file(folder / name) for name in REQUIRED_FILES},
    )
    return save_manifest(folder, config)


def _change(bundle: Bundle, change: Callable[[dict[str, object]], object]) -> None:
    manifest = bundle.file(MANIFEST_FILE)
    content = json.loads(manifest.read_text(encoding="utf-8"))
    change(content)
    manifest.write_text(json.dumps(content), encoding="utf-8")


def _refusal(folder: Path) -> str:
    with pytest.raises(BundleError) as raised:
        load_bundle(folder)
    return str(raised.value)


def test_a_bundle_is_read_as_it_was_written(saved: Bundle) -> None:
    assert load_bundle(saved.path) == saved


@pytest.mark.parametrize("model", ["en-de", "de-en"])
def test_the_manifest_of_a_bundled_model_is_written_as_it_was_read(model: str, tmp_path: Path) -> None:
    bundled = load_bundle(MODELS / model)
    save_manifest(tmp_path, bundled.config)
    assert (tmp_path / MANIFEST_FILE).read_bytes() == bundled.file(MANIFEST_FILE).read_bytes()


def test_the_tokenizer_kind_is_optional_and_marian_by_default(saved: Bundle) -> None:
    assert "tokenizer" not in json.loads(saved.file(MANIFEST_FILE).read_text(encoding="utf-8"))
    _change(saved, lambda content: content.update(tokenizer={"kind": "marian"}))
    assert load_bundle(saved.path) == saved


def test_a_missing_file_is_named(saved: Bundle) -> None:
    saved.file(VOCABULARY_FILE).unlink()
    assert "vocab.json: missing" in _refusal(saved.path)


def test_a_truncated_file_is_named_with_both_sizes(saved: Bundle) -> None:
    path = saved.file(names.DECODER_FILE)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-3])
    assert f"decoder.onnx: {size - 3} bytes on disk, {size} in bundle.json" in _refusal(saved.path)


def test_one_damaged_byte_is_noticed(saved: Bundle) -> None:
    path = saved.file(names.ENCODER_FILE)
    content = bytearray(path.read_bytes())
    content[4] ^= 1
    path.write_bytes(content)
    assert "encoder.onnx: its SHA-256 differs" in _refusal(saved.path)
    assert load_bundle(saved.path, verify_digests=False) == saved


def test_everything_that_is_wrong_is_said_at_once(saved: Bundle) -> None:
    saved.file(VOCABULARY_FILE).unlink()
    saved.file(names.ENCODER_FILE).write_bytes(b"")
    message = _refusal(saved.path)
    assert "vocab.json" in message
    assert "encoder.onnx" in message


def test_a_newer_format_asks_for_a_newer_kvasir(saved: Bundle) -> None:
    _change(saved, lambda content: content.update(format_version=5))
    message = _refusal(saved.path)
    assert "bundle.json must have format version 4. Given: 5" in message
    assert "upgrade Kvasir" in message


@pytest.mark.parametrize("version", [0, "1", None, [1]])
def test_a_format_version_that_never_was_asks_for_a_new_export(saved: Bundle, version: object) -> None:
    _change(saved, lambda content: content.update(format_version=version))
    assert "export it again" in _refusal(saved.path)


@pytest.mark.parametrize("text", ['{"format": "ctranslate2"}', "{}", "[1, 2]", '"kvasir-bundle"', "null"])
def test_foreign_json_is_not_a_bundle(saved: Bundle, text: str) -> None:
    saved.file(MANIFEST_FILE).write_text(text, encoding="utf-8")
    message = _refusal(saved.path)
    assert "bundle.json describes" in message
    assert "'kvasir-bundle'" in message


@pytest.mark.parametrize("content", [b"", b'{"format": ', b"\xff\xfe{}"])
def test_what_is_not_json_is_named(saved: Bundle, content: bytes) -> None:
    saved.file(MANIFEST_FILE).write_bytes(content)
    assert "bundle.json is not JSON" in _refusal(saved.path)


def test_a_folder_without_a_manifest_is_an_unfinished_export(saved: Bundle) -> None:
    saved.file(MANIFEST_FILE).unlink()
    message = _refusal(saved.path)
    assert "bundle.json is missing" in message
    assert "export did not finish" in message


@pytest.mark.parametrize("name", ["../secret.bin", "/etc/hostname", "inner/graph.onnx"])
def test_a_manifest_cannot_reach_outside_its_folder(saved: Bundle, name: str) -> None:
    (saved.path.parent / "secret.bin").write_bytes(b"secret")
    _change(saved, lambda content: content["files"].update({name: {"bytes": 6, "sha256": "0" * 64}}))  # type: ignore[attr-defined]
    assert f"{name}: the files of a bundle must be in its folder" in _refusal(saved.path)


def test_a_required_file_must_be_listed(saved: Bundle) -> None:
    _change(saved, lambda content: content["files"].pop(SOURCE_SENTENCEPIECE_FILE))  # type: ignore[attr-defined]
    assert "source.spm: not listed in bundle.json" in _refusal(saved.path)


def test_a_missing_decoder_input_is_named(saved: Bundle) -> None:
    _change(saved, lambda content: content["decoder_inputs"].remove("last_cross_key_0"))  # type: ignore[attr-defined]
    assert "decoder.onnx: bundle.json must list the inputs last_cross_key_0" in _refusal(saved.path)


def test_more_layers_than_the_graph_has_inputs_for_are_noticed(saved: Bundle) -> None:
    _change(saved, lambda content: content["shapes"].update(num_decoder_layers=2))  # type: ignore[attr-defined]
    assert "self_keys_1" in _refusal(saved.path)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("precision", "int4", "precision"),
        ("surprise", 1, "surprise"),
        ("name", "", "name"),
        ("shapes", {"vocab_size": 0}, "shapes.vocab_size"),
        ("tokenizer", {"kind": "words"}, "tokenizer.kind"),
    ],
)
def test_a_manifest_with_a_wrong_field_names_the_field(saved: Bundle, field: str, value: object, named: str) -> None:
    _change(saved, lambda content: content.update({field: value}))
    message = _refusal(saved.path)
    assert "bundle.json is not valid" in message
    assert f"{named}:" in message


def test_a_place_that_is_not_a_folder_is_told_how_to_become_one(saved: Bundle) -> None:
    assert "is not a folder; `kvasir export" in _refusal(saved.path / "nothing-here")
    assert "is not a folder" in _refusal(saved.file(names.ENCODER_FILE))


def test_a_graph_of_the_sizes_in_the_manifest_is_accepted(saved: Bundle) -> None:
    check_graph(saved, names.DECODER_FILE, {names.SHAPES_METADATA: SHAPES.model_dump_json()})


def test_a_graph_of_other_sizes_names_the_file_and_every_size(saved: Bundle) -> None:
    other = SHAPES.model_copy(update={"num_heads": 4, "max_target_tokens": 512})
    with pytest.raises(BundleError) as raised:
        check_graph(saved, names.DECODER_FILE, {names.SHAPES_METADATA: other.model_dump_json()})
    message = str(raised.value)
    assert message.startswith(f"{saved.file(names.DECODER_FILE)} contradicts its bundle.json")
    assert "num_heads is 4, 3 in bundle.json" in message
    assert "max_target_tokens is 512, 18 in bundle.json" in message
    assert "vocab_size" not in message


@pytest.mark.parametrize("metadata", [{}, {names.SHAPES_METADATA: "{"}, {names.SHAPES_METADATA: "{}"}])
def test_a_graph_that_does_not_say_its_sizes_is_named(saved: Bundle, metadata: dict[str, str]) -> None:
    with pytest.raises(BundleError, match=r"encoder\.onnx.*kvasir\.shapes"):
        check_graph(saved, names.ENCODER_FILE, metadata)
