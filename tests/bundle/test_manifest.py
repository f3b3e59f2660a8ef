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


def _truncate(bundle: Bundle) -> None:
    path = bundle.file(names.DECODER_FILE)
    path.write_bytes(path.read_bytes()[:-3])


def _change_one_byte(bundle: Bundle) -> None:
    path = bundle.file(names.ENCODER_FILE)
    content = bytearray(path.read_bytes())
    content[4] ^= 1
    path.write_bytes(content)


def _list_outside(name: str) -> Callable[[Bundle], None]:
    def damage(bundle: Bundle) -> None:
        (bundle.path.parent / "secret.bin").write_bytes(b"secret")
        _change(bundle, lambda content: content["files"].update({name: {"bytes": 6, "sha256": "0" * 64}}))  # type: ignore[attr-defined]

    return damage


def _replaced_by(content: bytes) -> Callable[[Bundle], object]:
    return lambda bundle: bundle.file(MANIFEST_FILE).write_bytes(content)


def _with(**fields: object) -> Callable[[Bundle], None]:
    return lambda bundle: _change(bundle, lambda content: content.update(fields))


def _without(field: str, name: str) -> Callable[[Bundle], None]:
    def damage(content: dict[str, object]) -> None:
        listed = content[field]
        if isinstance(listed, dict):
            del listed[name]
        elif isinstance(listed, list):
            listed.remove(name)

    return lambda bundle: _change(bundle, damage)


def _damage_both_graphs(bundle: Bundle) -> None:
    _truncate(bundle)
    _change_one_byte(bundle)


@pytest.mark.parametrize(
    ("damage", "reasons"),
    [
        (lambda bundle: bundle.file(VOCABULARY_FILE).unlink(), ["vocab.json: missing"]),
        (_truncate, [r"decoder.onnx: 20 bytes on disk, 23 in bundle.json"]),
        (_change_one_byte, ["encoder.onnx: its SHA-256 differs"]),
        (_damage_both_graphs, ["decoder.onnx: 20", "encoder.onnx: its SHA"]),
        (_with(format_version=5), ["must have format version 4. Given: 5", "upgrade Kvasir"]),
        *((_with(format_version=version), ["export it again"]) for version in (0, "1", None, [1])),
        *((_replaced_by(text), ["describes", "'kvasir-bundle'"]) for text in (b"{}", b"[1, 2]", b'"kvasir-bundle"')),
        *((_replaced_by(content), ["bundle.json is not JSON"]) for content in (b"", b'{"format": ', b"\xff\xfe{}")),
        (lambda bundle: bundle.file(MANIFEST_FILE).unlink(), ["bundle.json is missing", "export did not finish"]),
        *((_list_outside(name), [name, "in its folder"]) for name in ("../secret.bin", "/etc/hostname", "in/graph")),
        (_without("files", SOURCE_SENTENCEPIECE_FILE), ["source.spm: not listed in bundle.json"]),
        (_without("decoder_inputs", "last_cross_key_0"), ["decoder.onnx", "inputs last_cross_key_0"]),
        (_with(shapes=SHAPES.model_dump() | {"num_decoder_layers": 2}), ["self_keys_1"]),
        (_with(precision="int4"), ["is not valid", "precision:"]),
        (_with(surprise=1), ["is not valid", "surprise:"]),
        (_with(shapes={"vocab_size": 0}), ["is not valid", "shapes.vocab_size:"]),
        (_with(tokenizer={"kind": "words"}), ["is not valid", "tokenizer.kind:"]),
    ],
)
def test_all_that_is_wrong_with_a_bundle_is_named(
    saved: Bundle, damage: Callable[[Bundle], object], reasons: list[str]
) -> None:
    damage(saved)
    message = _refusal(saved.path)
    assert [reason for reason in reasons if reason not in message] == []


def test_a_digest_is_verified_only_if_it_should_be(saved: Bundle) -> None:
    _change_one_byte(saved)
    assert load_bundle(saved.path, verify_digests=False) == saved


def test_a_place_that_is_not_a_folder_is_told_how_to_become_one(saved: Bundle) -> None:
    assert "is not a folder; `kvasir export" in _refusal(saved.path / "nothing-here")


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
