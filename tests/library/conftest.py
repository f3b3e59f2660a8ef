import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bundle.loading import Bundle, load_bundle
from tests.export.tiny_checkpoint import write_checkpoint
from tests.fakes.hub_server import HubServer, hub_server, using


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete tiny checkpoint from English into German."""
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny-en-de")


@pytest.fixture
def hub(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """The hub, with the tiny checkpoint as OPUS-MT's model from English into German."""
    with hub_server() as server, using(server, tmp_path, monkeypatch):
        files = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
        server.repositories["Helsinki-NLP/opus-mt-en-de"] = files
        server.licences["Helsinki-NLP/opus-mt-en-de"] = "cc-by-4.0"
        monkeypatch.setenv("KVASIR_HOME", str(tmp_path / "home"))
        # Mozilla's registry, which has no models here.
        server.plain_files["/db/models.json"] = b'{"models": {}}'
        monkeypatch.setattr("library.pull.REGISTRY_URL", f"{server.address}/db/models.json")
        yield server


@pytest.fixture
def copied_conversions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Conversions copy a bundle, which saves seconds. Return the checkpoints that were converted."""
    checkpoints: list[Path] = []

    def convert(checkpoint: Path, origin: str, folder: Path, *options: object) -> Bundle:
        checkpoints.append(checkpoint)
        shutil.copytree("models/en-de", folder)
        return load_bundle(folder)

    monkeypatch.setattr("library.conversion.convert", convert)
    return checkpoints


@pytest.fixture
def _copying_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversions export without the measurement of copying, which takes ten times as long with a random model."""

    def unchanged(bundle: Bundle, report: Callable[[str], None]) -> Bundle:
        return bundle

    monkeypatch.setattr("library.conversion.add_copying", unchanged)
