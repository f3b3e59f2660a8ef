"""The commands as users see them: output, errors and exit codes."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kvasir import app
from server.operations.settings import DEFAULT_MODEL

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _process_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore what commands change in their process: the log, and the signal of a broken pipe."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    handler = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, handler)


def _run(*arguments: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=text)


def test_help_lists_the_commands_and_loads_none_of_them() -> None:
    listing = "import kvasir, sys; print(*{'fastapi', 'numpy', 'onnxruntime', 'torch'}.intersection(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", listing], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
    text = _run("--help").stdout
    assert all(command in text for command in ("serve", "translate", "train", "export", "loadtest"))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["translate", "--model", "nowhere"], 1, "nowhere is not a folder"),
        (["serve", "--model", "nowhere"], 1, "nowhere is not a folder"),
        (["serve", "--port", "ten"], 2, "--port: Input should be a valid integer"),
        (["serve", "--max-queue-seconds", "soon"], 2, "unable to parse string as a number, not 'soon'"),
        (
            ["serve", "--glossary-file", "{folder}/none/stored"],
            1,
            "none/stored cannot be used to store glossaries: unable to open",
        ),
        (
            ["serve", "--documents-folder", "{folder}/none"],
            1,
            "`documents_folder` must be a writable folder; create it",
        ),
        (["serve", "--threads", "1", "--replicas", "2"], 2, "`replicas` must be at most `threads` (1). Given: 2"),
        (["export", "nowhere-at-all", "somewhere"], 1, "nowhere-at-all"),
        (["loadtest", "--url", "ftp://host"], 1, "ftp://host"),
        (["train", "{folder}", "--data", "no.tsv", "--source", "en", "--target", "de"], 1, "no.tsv"),
        (["loadtest", "--scenario", "nothing"], 1, "unknown scenario nothing; available: "),
        (["loadtest", "--max-p95-ms", "-1"], 1, "`max_p95_ms` must not be negative. Given: -1"),
        (["loadtest", "report", "nowhere"], 1, "nowhere contains no load test"),
        (["loadtest", "compare", "nowhere", "there"], 1, "nowhere contains no load test"),
    ],
)
def test_an_error_is_one_line_on_standard_error(arguments: list[str], code: int, message: str, tmp_path: Path) -> None:
    result = _run(*(argument.format(folder=tmp_path) for argument in arguments))
    assert result.exit_code == code
    *progress, line = result.stderr.splitlines()
    assert line.startswith("kvasir: ")
    assert message in line
    assert "Traceback" not in "".join(progress)
    assert result.stdout == ""


def test_load_scenarios_are_listed_with_descriptions() -> None:
    listing = _run("loadtest", "--list").stdout.splitlines()
    assert any(line.split()[:2] == ["smoke", "A"] for line in listing)


def test_an_unknown_flag_is_wrong_use() -> None:
    result = _run("serve", "--quite-fast")
    assert result.exit_code == 2
    assert "--quite-fast" in result.stderr


@pytest.mark.parametrize("command", ["export", "train"])
def test_without_torch_a_command_names_the_extra_that_brings_it(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [
        name for name in sys.modules if name.split(".")[0] in {"export", "model"} and name != "bundle.manifest"
    ]:
        monkeypatch.delitem(sys.modules, name)
    result = _run(command, "checkpoint", "bundle")
    assert result.exit_code == 1
    assert f"`torch` is not installed; run `make venv-dev` or `pip install '.[{command}]'`" in result.stderr


@pytest.mark.parametrize("arguments", [["--list"], ["report", "run"], ["compare", "run", "run"]])
def test_without_its_packages_a_load_test_names_the_extra_that_brings_them(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hdrh.histogram", None)
    for name in [name for name in sys.modules if name.split(".")[0] == "loadtest"]:
        monkeypatch.delitem(sys.modules, name)
    result = _run("loadtest", *arguments)
    assert result.exit_code == 1
    assert "is not installed; run `make venv-dev` or `pip install '.[loadtest]'`" in result.stderr


@pytest.mark.parametrize("foreign", ["server.py", "server/__init__.py", "export.py", "typer.py"])
def test_modules_in_the_working_directory_do_not_replace_those_of_kvasir(foreign: str, tmp_path: Path) -> None:
    (tmp_path / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / foreign).write_text("raise ImportError('a module of the working directory')\n", encoding="utf-8")
    command = [sys.executable, "-m", "kvasir", "translate", "--model", "nowhere"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("kvasir: nowhere is not a folder")
    assert ran.stderr.count("\n") == 1


def test_a_file_is_translated_line_by_line(tmp_path: Path) -> None:
    source, target, stats = tmp_path / "en.txt", tmp_path / "de.txt", tmp_path / "stats.json"
    source.write_text("Good morning.\n\nThank you.\n", encoding="utf-8")
    result = _run("translate", str(source), "--output", str(target), "--stats", str(stats), "--beam-size", "1")
    assert result.exit_code == 0, result.stderr
    assert result.output == ""
    first, second, third = target.read_text(encoding="utf-8").splitlines()
    assert first.startswith("Guten")
    assert second == ""
    assert "Dank" in third
    numbers = json.loads(stats.read_text(encoding="utf-8"))
    assert (numbers["lines"], numbers["sentences"]) == (3, 2)
    assert set(numbers) == {
        "lines",
        "sentences",
        "decoded",
        "cached",
        "coalesced",
        "source_tokens",
        "target_tokens",
        "seconds",
        "tokens_per_second",
        "rows_per_step",
    }


def test_json_lines_have_only_the_requested_fields() -> None:
    flags = ["--num-hypotheses", "2", "--return-scores", "--return-alignments", "--suppress-phrases", "Haus"]
    result = _run("translate", "--json", *flags, "--suppress-phrases", "Danke", text="Thank you.\n\nA house.\n")
    assert result.exit_code == 0, result.stderr
    first, empty, last = map(json.loads, result.stdout.splitlines())
    assert set(first) == {
        "text",
        "source_tokens",
        "target_tokens",
        "finish_reason",
        "score",
        "alternatives",
        "log_probability",
        "sentences",
    }
    assert set(first["sentences"][0]) == {"source_tokens", "target_tokens", "alignment"}
    assert empty["text"] == ""
    assert "Haus" not in re.findall(r"\w+", last["text"])
    assert "Danke" not in re.findall(r"\w+", first["text"])


def test_contradicting_options_are_reported_in_one_line() -> None:
    result = _run("translate", "--temperature", "0.5", "--beam-size", "4", text="Good morning.\n")
    assert result.exit_code == 1
    assert result.stderr.startswith("kvasir: `temperature` cannot be combined with a beam_size of 4")


def test_standard_input_goes_to_standard_output() -> None:
    result = _run("translate", text="Good morning.\n")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Guten")
    assert result.stdout.count("\n") == 1


def test_a_reader_that_stops_reading_is_no_error() -> None:
    command = [sys.executable, "-m", "kvasir", "translate", "--model", str(DEFAULT_MODEL)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(b"Good morning.\n", timeout=60)
    assert errors == b""


def test_a_line_that_is_not_utf8_is_reported_with_its_number() -> None:
    result = _run("translate", text=b"Good morning.\n\xff\n")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == ["kvasir: line 2 is not UTF-8: invalid start byte at byte 0"]


def test_translate_takes_a_document_into_a_document(tmp_path: Path) -> None:
    source, output, stats = tmp_path / "page.html", tmp_path / "seite.html", tmp_path / "stats.json"
    source.write_text("<!DOCTYPE html><h1 class='x'>Thank you.</h1><p>Yes.</p><!-- stays -->", encoding="utf-8")
    result = _run("translate", str(source), "--output", str(output), "--threads", "1", "--stats", str(stats))
    assert result.exit_code == 0, result.stderr
    page = output.read_text(encoding="utf-8")
    assert '<h1 class="x">' in page
    assert "Dank" in page
    assert "<!-- stays -->" in page
    assert json.loads(stats.read_text(encoding="utf-8"))["lines"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "seite.html", "stats.json"]


@pytest.mark.parametrize("output", ["-", "brief.odt"])
def test_the_output_of_a_document_has_its_extension(output: str, tmp_path: Path) -> None:
    result = _run("translate", "letter.docx", "--output", output if output == "-" else str(tmp_path / output))
    assert result.exit_code == 2
    assert "the output of a .docx file must end in .docx" in result.stderr


def test_a_wrong_delimiter_is_rejected_with_the_allowed_ones(tmp_path: Path) -> None:
    source = tmp_path / "table.csv"
    source.write_bytes(b"a;b\n")
    result = _run("translate", str(source), "--output", str(tmp_path / "out.csv"), "--delimiter", "#", "--threads", "1")
    assert result.exit_code == 1
    assert result.stderr.startswith("kvasir: `delimiter` must be one of ',', ';'")


def test_a_damaged_document_leaves_no_output(tmp_path: Path) -> None:
    source, output = tmp_path / "letter.docx", tmp_path / "brief.docx"
    source.write_bytes(b"no document")
    result = _run("translate", str(source), "--output", str(output), "--threads", "1")
    assert result.exit_code == 1
    assert result.stderr.startswith("kvasir: the file is cut off, or of another format")
    assert not output.exists()
