"""The command for translation memories."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kvasir_commands import app
from server.memory.store import MemoryStore, Pair


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with one memory of two languages."""
    store = MemoryStore(tmp_path / "memories")
    memory = store.create("", "Legal", "en", ["de-DE", "fr"])
    store.put(
        "", memory.id, [Pair("Stop!", "de-DE", "Halt!"), Pair("Stop!", "fr", "Arrêtez !"), Pair("Go!", "fr", "Va !")]
    )
    store.close()
    return tmp_path / "memories"


def _run(*arguments: str, file: Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["memory", *arguments, "--file", str(file)])
    return result.exit_code, result.stdout, result.stderr


def _id(file: Path) -> str:
    [line] = _run("list", file=file)[1].splitlines()
    assert line.endswith("en to de-DE, fr          3  Legal")
    return line.split()[0]


def test_a_memory_is_exported_imported_and_deleted(file: Path, tmp_path: Path) -> None:
    first, exported = _id(file), tmp_path / "out.tmx"
    assert _run("export", first, str(exported), file=file)[:2] == (0, f"3 segments are in {exported}\n")
    assert _run("delete", first, file=file)[:2] == (0, f"{first} is deleted\n")
    assert _run("list", file=file)[:2] == (0, "")
    code, output, _ = _run("import", str(exported), "--name", "Legal", file=file)
    assert code == 0
    assert output.startswith("Legal has 3 segments, id ")
    assert _id(file) != first


@pytest.mark.parametrize("name", ["out.tsv", "out.po"])
def test_a_format_of_one_language_needs_it(file: Path, tmp_path: Path, name: str) -> None:
    memory = _id(file)
    code, _, errors = _run("export", memory, str(tmp_path / name), file=file)
    assert code == 1
    assert "de-DE, fr; set --target" in errors
    assert not (tmp_path / name).exists()
    assert _run("export", memory, str(tmp_path / name), "--target", "de", file=file)[0] == 0
    written = (tmp_path / name).read_text("utf-8")
    assert "Halt!" in written
    assert "Arrêtez" not in written


def test_a_missing_file_and_a_memory_of_another_key_are_refused(file: Path, tmp_path: Path) -> None:
    code, _, errors = _run("list", file=tmp_path / "missing")
    assert (code, "does not exist" in errors) == (1, True)
    assert _run("import", str(tmp_path / "nothing.tmx"), file=file)[0] == 1
    code, _, errors = _run("delete", "unknown", file=file)
    assert (code, "Translation memory not found" in errors) == (1, True)


def test_a_copy_is_made(file: Path, tmp_path: Path) -> None:
    assert _run("backup", str(tmp_path / "copy"), file=file)[0] == 0
    assert _id(tmp_path / "copy") == _id(file)
