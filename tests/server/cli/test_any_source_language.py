"""`kvasir translate` with a model of several source languages that it does not read."""

import json
import shutil
from pathlib import Path

from typer.testing import CliRunner, Result

from bundle.manifest import MANIFEST_FILE
from kvasir_commands import app
from server.operations.defaults import DEFAULT_MODEL


def _run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=text)


def _of_any_language(folder: Path) -> Path:
    """A bundle of several source languages that the model does not read; it is the default model all the same."""
    folder.mkdir()
    for path in DEFAULT_MODEL.iterdir():
        shutil.copy(path, folder)
    manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    manifest |= {"name": "any-de", "source_languages": ["de", "en", "fr", "pl"], "target_languages": ["de", "en"]}
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def test_a_model_that_does_not_read_its_source_language_needs_none(tmp_path: Path) -> None:
    model = str(_of_any_language(tmp_path / "any"))
    lines = "My brother has a new car and an old house.\n42\nGuten Morgen.\n"
    with_source = _run("translate", "--model", model, "--target", "de", "--source", "en", text=lines)
    without = _run("translate", "--model", model, "--target", "de", text=lines)
    assert (without.exit_code, without.stdout) == (0, with_source.stdout), without.stderr
    document, output = tmp_path / "text.md", tmp_path / "out.md"
    document.write_text("# Good morning.\n\nThank you for the book that you gave to me.\n", encoding="utf-8")
    result = _run("translate", str(document), "--output", str(output), "--model", model, "--target", "de")
    assert result.exit_code == 0, result.stderr
    assert "Dank" in output.read_text(encoding="utf-8")
    result = _run("translate", "--model", model, text=lines)
    assert result.exit_code != 0
    assert "ambiguous" in result.stderr
