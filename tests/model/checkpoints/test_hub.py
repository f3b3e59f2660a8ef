from collections.abc import Iterator
from pathlib import Path

import pytest

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.hub import choose_files, download_model
from tests.fakes.hub_server import COMMIT, HubServer, hub_server, using

NAME = "team/opus-mt-en-xx"
FILES = {
    "README.md": b"---\nlanguage: en\nlicense: cc-by-4.0\n---\nA model.\n",
    "config.json": b'{"model_type": "marian"}',
    "source.spm": b"pieces" * 100,
    "target.spm": b"stuecke" * 100,
    "vocab.json": b"{}",
    "model.safetensors": bytes(range(256)) * 400,
    "pytorch_model.bin": b"pickled",
    "tf_model.h5": b"tensors of another library",
    "onnx/encoder.onnx": b"graph",
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub_server() as server, using(server, tmp_path, monkeypatch):
        server.repositories[NAME] = dict(FILES)
        yield server


def test_a_model_is_downloaded_with_one_format_of_its_weights(hub: HubServer) -> None:
    lines: list[str] = []
    model = download_model(NAME, lines.append)
    fetched = {path.name: path.read_bytes() for path in model.path.iterdir()}
    wanted = {"README.md", "config.json", "source.spm", "target.spm", "vocab.json", "model.safetensors"}
    assert fetched == {name: FILES[name] for name in wanted}
    assert (model.commit, model.licence) == (COMMIT, "cc-by-4.0")
    assert lines == [f"downloading {NAME}: 6 files, 0.1 MB, licence: not stated"]


def test_a_second_download_transfers_no_file(hub: HubServer) -> None:
    hub.licences[NAME] = "apache-2.0"
    download_model(NAME)
    hub.requests.clear()
    lines: list[str] = []
    assert download_model(NAME, lines.append).licence == "apache-2.0"
    assert lines == [f"{NAME} is downloaded, licence: apache-2.0"]
    assert all(path.startswith("/api/") for path in hub.paths())


def test_a_download_continues_where_an_earlier_command_ended(hub: HubServer) -> None:
    for name in ("source.spm", "target.spm"):
        del hub.repositories[NAME][name]  # one large file is left
    hub.bodies_to_cut += [50_000] + [0] * 5
    with pytest.raises(CheckpointError, match="was interrupted: 50000 of 102400 bytes received; run the command again"):
        download_model(NAME)
    hub.requests.clear()
    seen: list[tuple[str, int, int | None]] = []
    path = download_model(NAME, progress=lambda *step: seen.append(step)).path
    assert (path / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert [headers.get("Range") for _, path, headers in hub.requests if "/cdn/" in path] == ["bytes=50000-"]
    assert seen == [("model.safetensors", 102_400, 102_400)]


def test_a_file_with_another_hash_is_deleted_and_downloaded_again(hub: HubServer) -> None:
    path = download_model(NAME).path
    for name in ("model.safetensors", "vocab.json"):
        content = (path / name).read_bytes()
        (path / name).resolve().write_bytes(b"x" + content[1:])
    with pytest.raises(CheckpointError, match=r"differs from the hub's list: (model.safetensors|vocab.json), "):
        download_model(NAME)
    assert (download_model(NAME).path / "model.safetensors").read_bytes() == FILES["model.safetensors"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("team/nothing", "no such model, or a private one; set HF_TOKEN"),
        ("team/private", "no such model, or a private one; set HF_TOKEN"),
        ("team/gated", "is gated; accept its conditions at http"),
        ("team/empty", r"no weights in a supported format \(.*\)\. Available: config\.json, tf_model\.h5"),
        ("no//name", "no//name does not exist; name a folder, a file or a model of the hub"),
    ],
)
def test_a_model_that_cannot_be_downloaded_is_an_error_with_its_remedy(hub: HubServer, name: str, message: str) -> None:
    hub.repositories |= {"team/private": dict(FILES), "team/gated": dict(FILES)}
    hub.repositories["team/empty"] = {"config.json": b"{}", "tf_model.h5": b"x"}
    hub.tokens |= {"team/private": "hf_secret", "team/gated": "hf_secret"}
    hub.gated.add("team/gated")
    with pytest.raises(CheckpointError, match=message):
        download_model(name)


def test_the_token_is_sent_to_the_hub_and_not_to_the_cdn(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.tokens[NAME] = "hf_secret"
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    download_model(NAME)
    sent = {path.split("/")[1]: headers.get("Authorization") for _, path, headers in hub.requests}
    assert sent["api"] == "Bearer hf_secret"
    assert sent["team"] == "Bearer hf_secret"


@pytest.mark.parametrize(
    ("names", "weights"),
    [
        (["config.json", "model.safetensors", "pytorch_model.bin"], {"model.safetensors"}),
        (
            ["model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
            {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"},
        ),
        (["pytorch_model.bin", "rust_model.ot", "training_args.bin"], {"pytorch_model.bin"}),
        (["model.bin", "shared_vocabulary.txt"], {"model.bin"}),
        (["bundle.json", "encoder.onnx", "decoder.onnx", "model.bin"], {"encoder.onnx", "decoder.onnx"}),
    ],
)
def test_one_format_of_weights_is_chosen(names: list[str], weights: set[str]) -> None:
    small = {name for name in names if name.endswith((".json", ".txt"))}
    assert set(choose_files(names)) == weights | small
