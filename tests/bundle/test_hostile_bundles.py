"""Bundles with damaged, foreign or hostile files are rejected with their reason before anything is served."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bundle.loading import check_unchanged, load_bundle, record_file
from bundle.manifest import (
    MANIFEST_FILE,
    SOURCE_SENTENCEPIECE_FILE,
    TARGET_SENTENCEPIECE_FILE,
    VOCABULARY_FILE,
    BundleError,
)
from server.engine.runners.onnx import OnnxSessions
from server.text.tokenizers.registry import open_tokenizer

MODEL = Path(__file__).resolve().parents[2] / "models" / "en-de"
DEPTH = 100_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(MODEL, tmp_path / "en-de")
    return tmp_path / "en-de"


def _replaced(folder: Path, name: str, content: bytes) -> None:
    """Write a file and its record, as an attacker who makes a bundle does."""
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    manifest["files"][name] = record_file(folder / name).model_dump()
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")


def _vocabulary(change: Callable[[dict[str, int]], object]) -> bytes:
    content = json.loads((MODEL / VOCABULARY_FILE).read_text(encoding="utf-8"))
    change(content)
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (SOURCE_SENTENCEPIECE_FILE, os.urandom(10_000)),
        (TARGET_SENTENCEPIECE_FILE, b""),
        (VOCABULARY_FILE, b"[" * DEPTH + b"]" * DEPTH),
        (VOCABULARY_FILE, b"[1, 2]"),
        (VOCABULARY_FILE, b'{"a": [1]}'),
        (VOCABULARY_FILE, b"\xff\xfe"),
        (VOCABULARY_FILE, _vocabulary(lambda content: content.update({"new": 10**9}))),
        (VOCABULARY_FILE, _vocabulary(lambda content: content.update({"new": -1}))),
        (VOCABULARY_FILE, json.dumps({f"piece {number}": number for number in range(1000)}).encode()),
    ],
)
def test_damaged_and_foreign_tokenizer_files_are_rejected(folder: Path, name: str, content: bytes) -> None:
    _replaced(folder, name, content)
    with pytest.raises(BundleError, match="tokenizer files cannot be read") as error:
        open_tokenizer(load_bundle(folder))
    assert len(str(error.value)) < 1000


def test_a_deeply_nested_manifest_is_rejected(folder: Path) -> None:
    (folder / MANIFEST_FILE).write_text('{"a":' * DEPTH + "1" + "}" * DEPTH, encoding="utf-8")
    with pytest.raises(BundleError, match="is not JSON"):
        load_bundle(folder)


@pytest.mark.parametrize("token", ["end_of_sequence", "unknown", "decoder_start", "padding"])
def test_special_tokens_beyond_the_vocabulary_are_rejected(folder: Path, token: str) -> None:
    manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    manifest["special_tokens"][token] = 10_000_000
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(BundleError, match="must be below"):
        load_bundle(folder)


def test_a_symbolic_link_is_followed_inside_the_bundle_only(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    (folder / VOCABULARY_FILE).rename(outside)
    (folder / VOCABULARY_FILE).symlink_to(outside)
    with pytest.raises(BundleError, match="a symbolic link that leads out of the bundle"):
        load_bundle(folder)
    (folder / VOCABULARY_FILE).unlink()
    outside.rename(folder / "other.json")
    (folder / VOCABULARY_FILE).symlink_to("other.json")
    load_bundle(folder)


def test_files_that_change_after_loading_are_detected(folder: Path) -> None:
    bundle = load_bundle(folder)
    check_unchanged(bundle)
    content = bundle.file(VOCABULARY_FILE).read_bytes()
    bundle.file(VOCABULARY_FILE).write_bytes(bytes(len(content)))
    with pytest.raises(BundleError, match=r"has changed since it was loaded: vocab\.json"):
        check_unchanged(bundle)


@pytest.mark.parametrize("name", ["README.md", "encoder.weights", "other"])
def test_a_pipe_in_a_bundle_is_rejected_and_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(BundleError, match=f"{name} is neither a file nor a folder"):
        load_bundle(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "x" * 1_000_000},
        {"format_version": "x" * 1_000_000},
        {f"field {number}": number for number in range(10_000)},
        {"x" * 1_000_000: 1},
        {"files": {f"file {number}": {"bytes": 1, "sha256": "0" * 64} for number in range(10_000)}},
        {"files": {"x" * 1_000_000: {"bytes": 1, "sha256": "0" * 64}}},
    ],
)
def test_the_error_of_a_hostile_manifest_is_short(folder: Path, changes: dict[str, object]) -> None:
    manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest | changes), encoding="utf-8")
    with pytest.raises(BundleError) as error:
        load_bundle(folder)
    assert len(str(error.value)) < 5000


def test_a_manifest_of_gigabytes_is_not_read(folder: Path) -> None:
    os.truncate(folder / MANIFEST_FILE, 3_000_000_000)
    with pytest.raises(BundleError, match=r"may have 16000000 bytes\. It has 3000000000"):
        load_bundle(folder)


@pytest.mark.parametrize(("size", "value"), [("num_heads", 104), ("max_source_tokens", 2), ("vocab_size", 10**6)])
def test_sizes_other_than_those_of_the_graphs_are_rejected_when_they_are_loaded(
    folder: Path, size: str, value: int
) -> None:
    manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    manifest["shapes"][size] = value
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(BundleError, match=rf"encoder\.onnx contradicts its bundle\.json: {size} is \d+, {value} in"):
        OnnxSessions.open(load_bundle(folder), 1)


def test_a_number_of_layers_beyond_measure_is_rejected_at_once(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    manifest["shapes"]["num_decoder_layers"] = 2**31
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(BundleError, match=r"shapes\.num_decoder_layers: Input should be less than or equal to 1000"):
        load_bundle(folder)
