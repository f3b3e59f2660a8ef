import json
import shutil
import tarfile
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bundle.loading import load_bundle
from kvasir_commands import app
from library.home import Home
from library.pull import PullOptions, pull
from server.operations.settings import Settings
from tests.fakes.hub_server import COMMIT, HubServer

NAME = "Helsinki-NLP/opus-mt-en-de"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_pair_is_downloaded_and_converted_at_most_once(hub: HubServer, home: Home) -> None:
    lines: list[str] = []
    folders: list[Path] = []
    threads = [
        threading.Thread(target=lambda: folders.append(pull("en-de", PullOptions(), home, lines.append)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    folder = folders[0]
    assert folders == [folder, folder]
    assert len([path for path in hub.paths() if path.startswith("/cdn/")]) == 2  # weights, SentencePiece models
    assert f"en-de is {NAME}" in lines
    assert any("waiting for another process" in line for line in lines)
    bundle = load_bundle(folder)
    assert (bundle.config.name, bundle.config.precision) == ("opus-mt-en-de", "int8")
    assert bundle.config.copying is not None
    assert bundle.config.provenance.source == f"{NAME}@{COMMIT}"
    assert bundle.card.purpose == (f"translation from en to de. Licence: cc-by-4.0. Origin: {hub.address}/{NAME}")

    hub.requests.clear()
    assert pull("en-de", PullOptions(), home) == pull(NAME, PullOptions(), home) == folder
    assert hub.requests == []

    listing = _run("models").stdout.splitlines()
    assert [line.split()[0] for line in listing] == ["NAME", NAME]
    assert "int8" in listing[1]
    assert "cc-by-4.0" in listing[1]
    assert "en > de" in listing[1]
    described = json.loads(_run("models", "--json").stdout)[0]
    assert described["bytes"] > sum(record.bytes for record in bundle.config.files.values())

    removed = _run("remove", "en-de")
    assert removed.stdout.startswith(f"removed {NAME} (")
    assert not folder.exists()
    assert _run("remove", "en-de").exit_code == 1


def test_a_failed_conversion_leaves_no_model(hub: HubServer, home: Home) -> None:
    hub.repositories["team/broken"] = {
        **hub.repositories[NAME],
        "config.json": hub.repositories[NAME]["config.json"].replace(b'"encoder_layers": 2', b'"encoder_layers": 3'),
        "target.spm": b"not a model",
    }
    with pytest.raises(ValueError, match=r"weights do not fit|not a SentencePiece model"):
        pull("team/broken", PullOptions(), home)
    assert home.entries() == []
    assert [path.name for path in home.root.iterdir()] == ["locks"]


def test_an_archive_at_a_url_is_checked_and_converted(
    hub: HubServer, home: Home, checkpoint: Path, tmp_path: Path, copied_conversions: list[Path]
) -> None:
    archive = tmp_path / "tiny.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(checkpoint, "tiny")
    url = f"{hub.address}/tiny.tar.gz"
    hub.plain_files["/tiny.tar.gz"] = b"<html>The server is busy"
    with pytest.raises(ValueError, match=r"must be .* an archive .*; the download is deleted"):
        pull(url, PullOptions(), home)
    hub.plain_files["/tiny.tar.gz"] = archive.read_bytes()
    with pytest.raises(ValueError, match="its SHA-256 must be 00"):
        pull(url, PullOptions(sha256="0" * 64), home)
    lines: list[str] = []
    folder = pull(url, PullOptions(precision="float32"), home, lines.append)
    assert lines[:1] == [f"downloading {url}"]
    assert "licence: not stated" in lines
    assert not any((home.root / "downloads").iterdir())
    # The model of the cache is that of another file.
    with pytest.raises(ValueError, match="its SHA-256 must be 00"):
        pull(url, PullOptions(precision="float32", sha256="0" * 64), home)

    files = load_bundle(folder).config.files
    # A bundle in an archive needs no conversion.
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder, "bundle")
    shutil.rmtree(home.root)
    copied = pull(str(archive), PullOptions(), home)
    assert load_bundle(copied).config.files == files
    assert len(copied_conversions) == 1
    assert home.entries()[0].origin.name == str(archive)


def test_a_bundle_and_a_folder_of_bundles_are_served_as_they_are(home: Home) -> None:
    for path in ("models/en-de", "models"):
        assert pull(path, PullOptions(), home) == Path(path)
    assert not home.root.exists()


def test_a_damaged_model_is_made_again(hub: HubServer, home: Home, copied_conversions: list[Path]) -> None:
    folder = pull("en-de", PullOptions(), home)
    (folder / "encoder.onnx").write_bytes(b"damaged")
    assert "damaged" in _run("models").stdout
    lines: list[str] = []
    assert pull("en-de", PullOptions(), home, lines.append) == folder
    assert lines[0].endswith("making it again")
    assert len(copied_conversions) == 2
    load_bundle(folder)


def test_other_languages_are_a_reason_to_convert_again(
    home: Home, checkpoint: Path, copied_conversions: list[Path]
) -> None:
    french, italian = PullOptions(target=["fr"]), PullOptions(source=["en"], target=["it"])
    for options, num_conversions in ((french, 1), (french, 1), (PullOptions(), 1), (italian, 2), (italian, 2)):
        folder = pull(str(checkpoint), options, home)
        assert len(copied_conversions) == num_conversions
    (folder / "origin.json").write_text('{"name": "x", "address": "y", "licence": 5, "source": 1}')
    assert [entry.origin.address for entry in home.entries()] == ["unknown"]


def test_a_changed_folder_is_converted_again(
    home: Home, checkpoint: Path, tmp_path: Path, copied_conversions: list[Path]
) -> None:
    copy = tmp_path / "mine"
    shutil.copytree(checkpoint, copy)
    first = pull(str(copy), PullOptions(), home)
    assert pull(str(copy), PullOptions(), home) == first
    assert copied_conversions == [copy]
    (copy / "tokenizer_config.json").write_text('{"source_lang": "en", "target_lang": "nl"}')
    assert pull(str(copy), PullOptions(), home) != first
    assert copied_conversions == [copy, copy]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pull", "en-qq"], "no model is known for en-qq"),
        (["pull", "team/nothing"], "no such model, or a private one"),
        (["pull", "http://127.0.0.1:9/a.zip"], "cannot be reached: [Errno 111] Connection refused"),
        (["pull", "http://127.0.0.1:9/a.zip", "--sha256", "5c0a"], "must have 64 hexadecimal digits. Given: 5c0a"),
        (["pull", "en-de", "--sha256", "0" * 64], "is that of the file of a URL. Given: en-de"),
        (["pull", "pyproject.toml"], "must be a folder or an archive"),
        (["serve", "nothing-at-all"], "which does not exist"),
        (["remove", "team/nothing"], "Available: none"),
    ],
)
def test_an_error_is_one_line(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setattr("model.checkpoints.download._MAX_CONNECTIONS", 1)
    result = _run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_models_are_served_by_name_with_those_of_the_flag(
    hub: HubServer, home: Home, copied_conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Settings] = []

    def serve(settings: Settings) -> int:
        served.append(settings)
        return 0

    monkeypatch.setattr("server.cli.serve.serve", serve)
    for arguments in (["en-de", "--port", "8001"], ["--port", "8001", "en-de", "--model", "models/de-en"]):
        assert _run("serve", *arguments).exit_code == 0
    folder = home.folder(NAME, "int8")
    assert [settings.model for settings in served] == [[folder], [folder, Path("models/de-en")]]
    assert {settings.port for settings in served} == {8001}
    assert len(copied_conversions) == 1
