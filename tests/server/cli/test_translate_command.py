"""`kvasir translate` as users see it: files, documents, options and errors."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bundle.manifest import MANIFEST_FILE
from kvasir_commands import app
from server.cli.translate import input_lines
from server.operations.defaults import DEFAULT_MODEL

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _signal_as_it_was() -> Iterator[None]:
    """Restore the handler of a broken pipe, which the command replaces."""
    handler = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, handler)


def _run(*arguments: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=text)


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


def test_lines_have_their_quality_in_json_and_its_mean_in_the_statistics(tmp_path: Path) -> None:
    stats, flags = tmp_path / "stats.json", ("--min-quality", "1", "--on-low-quality", "keep_source")
    result = _run("translate", "--json", "--stats", str(stats), *flags, text="Good morning.\nThank you.\n")
    lines = [json.loads(line) for line in result.output.splitlines()]
    assert [line["text"] for line in lines] == ["Good morning.", "Thank you."]
    assert [line["kept"][0]["reason"] for line in lines] == ["low_quality"] * 2
    assert 0 < lines[0]["low_quality"][0]["quality"] < 1
    result = _run("translate", "--json", "--stats", str(stats), "--return-quality", text="Good morning.\n")
    assert json.loads(result.output)["quality"] == json.loads(stats.read_text(encoding="utf-8"))["quality"]


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
    result = _run("translate", "--encoding", "utf-8", text=b"Good morning.\n\xff\n")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == ["kvasir: line 2 is not UTF-8: invalid start byte at byte 0; set --encoding"]


def test_translate_takes_a_document_into_a_document(tmp_path: Path) -> None:
    source, output, stats = tmp_path / "page.html", tmp_path / "seite.html", tmp_path / "stats.json"
    source.write_text("<!DOCTYPE html><h1 class='x'>Thank you.</h1><p>Yes.</p><!-- stays -->", encoding="utf-8")
    flags = ("--threads", "1", "--min-quality", "1")
    result = _run("translate", str(source), "--output", str(output), "--stats", str(stats), *flags)
    assert result.exit_code == 0, result.stderr
    page = output.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html><h1 class='x'>")
    assert "Dank" in page
    assert page.endswith("</p><!-- stays -->")
    assert result.stderr == "2 of 2 texts translated\n"
    numbers = json.loads(stats.read_text(encoding="utf-8"))
    assert (numbers["lines"], numbers["texts"], numbers["translated_texts"], numbers["low_quality"]) == (2, 2, 2, 2)
    assert 0 < numbers["quality"] < 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "seite.html", "stats.json"]


@pytest.mark.parametrize("output", ["-", "brief.odt"])
def test_the_output_of_a_document_has_its_extension(output: str, tmp_path: Path) -> None:
    source = tmp_path / "letter.docx"
    source.write_bytes(b"PK")
    result = _run("translate", str(source), "--output", output if output == "-" else str(tmp_path / output))
    assert result.exit_code == 1
    assert "the output of a .docx file must end in .docx" in result.stderr


@pytest.mark.parametrize("name", ["film.avi", "notes", "data.xml", "archive.zip"])
def test_a_format_that_is_not_known_is_refused(name: str, tmp_path: Path) -> None:
    source, output = tmp_path / name, tmp_path / "output"
    source.write_text("Good morning.\n", encoding="utf-8")
    result = _run("translate", str(source), "--output", str(output))
    assert result.exit_code == 1
    assert "files" in result.stderr
    assert "available: .txt, .md" in result.stderr
    assert "`--format txt` translates line by line" in result.stderr
    assert not output.exists()
    named = _run("translate", str(source), "--output", str(output), "--format", "txt", "--threads", "1")
    assert named.exit_code == 0, named.stderr
    assert output.read_text(encoding="utf-8").startswith("Guten")


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (["--json"], "--json"),
        (["--num-hypotheses", "2"], "num_hypotheses"),
    ],
)
def test_an_option_that_a_document_cannot_take_is_rejected(flags: list[str], name: str, tmp_path: Path) -> None:
    source, output = tmp_path / "page.html", tmp_path / "seite.html"
    source.write_text("<p>Thank you.</p>", encoding="utf-8")
    result = _run("translate", str(source), "--output", str(output), *flags)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"kvasir: `{name}` ")
    assert not output.exists()


def test_a_document_is_decoded_with_all_options(tmp_path: Path) -> None:
    source, output = tmp_path / "page.html", tmp_path / "seite.html"
    source.write_text("<p>Thank you.</p><p>A house.</p>", encoding="utf-8")

    def translated(*flags: str) -> str:
        result = _run("translate", str(source), "--output", str(output), "--threads", "1", "--beam-size", "1", *flags)
        assert result.exit_code == 0, result.stderr
        return output.read_text(encoding="utf-8")

    assert {"Danke", "Haus"} & set(re.findall(r"\w+", translated()))
    options = ["--suppress-phrases", "Haus", "--suppress-phrases", "Danke"]
    assert not {"Danke", "Haus"} & set(re.findall(r"\w+", translated(*options)))
    assert len(translated("--max-new-tokens", "1")) < len(translated("--min-new-tokens", "12"))
    sampled = {translated("--temperature", "5", "--seed", str(seed)) for seed in (1, 1, 2)}
    assert len(sampled) == 2


@pytest.mark.parametrize(
    ("target", "text", "expected"), [("de", "Good morning.", "Guten"), ("en", "Guten Morgen.", "Good")]
)
def test_languages_choose_among_a_folder_of_bundles(target: str, text: str, expected: str) -> None:
    result = _run("translate", "--model", str(DEFAULT_MODEL.parent), "--target", target, text=text + "\n")
    assert result.exit_code == 0, result.stderr
    assert expected in result.stdout


def test_a_translation_does_not_overwrite_its_input(tmp_path: Path) -> None:
    source = tmp_path / "text.txt"
    source.write_text("Good morning.\n", encoding="utf-8")
    result = _run("translate", str(source), "--output", str(tmp_path / "." / "text.txt"))
    assert result.exit_code == 1
    assert "must not be the input" in result.stderr
    assert source.read_text(encoding="utf-8") == "Good morning.\n"


def test_a_damaged_document_leaves_no_output(tmp_path: Path) -> None:
    source, output = tmp_path / "letter.docx", tmp_path / "brief.docx"
    source.write_bytes(b"no document")
    result = _run("translate", str(source), "--output", str(output), "--threads", "1")
    assert result.exit_code == 1
    assert result.stderr.startswith("kvasir: the file is cut off, or of another format")
    assert not output.exists()


def test_a_pipe_named_like_a_document_is_an_error_instead_of_lines(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "film.srt")
    result = _run("translate", str(tmp_path / "film.srt"), "--output", str(tmp_path / "de.srt"))
    assert result.exit_code == 1
    assert result.stderr == "kvasir: a .srt document must be a file. Given: standard input or a pipe\n"


_SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nThank you.\n"


def _translate(*arguments: str) -> Result:
    return CliRunner().invoke(app, ("translate", *arguments), input="Thank you.\n")


@pytest.fixture
def film(tmp_path: Path) -> Path:
    file = tmp_path / "film.srt"
    file.write_text(_SUBTITLES)
    return file


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="a folder of Linux in which no file can be created")
def test_an_output_that_cannot_be_created_is_not_called_missing(film: Path) -> None:
    target = str(film.with_name("de.srt"))
    for arguments in (
        ["--output", "/proc/x"],
        [str(film), "--output", "/proc/x.srt"],
        [str(film), "--output", target, "--stats", "/proc/x"],
    ):
        result = _translate(*arguments)
        assert result.exit_code == 1
        assert re.fullmatch(
            r"kvasir: /proc/x(\.srt)? cannot be created; name a file in another folder\n", result.stderr
        )
    assert sorted(path.name for path in film.parent.iterdir()) == ["film.srt"]


def test_a_pipe_is_not_replaced_by_a_document(film: Path) -> None:
    pipe = film.with_name("pipe")
    os.mkfifo(pipe)
    result = _translate(str(film), "--format", "srt", "--output", str(pipe))
    assert result.exit_code == 1
    assert result.stderr == f"kvasir: the output of a document must be a file. {pipe} is a pipe or a device\n"
    assert pipe.is_fifo()


def test_a_document_is_written_to_the_file_of_a_link(film: Path) -> None:
    link, folder = film.with_name("link.srt"), film.parent / "elsewhere"
    folder.mkdir()
    link.symlink_to(folder / "de.srt")
    result = _translate(str(film), "--output", str(link))
    assert result.exit_code == 0, result.stderr
    assert link.is_symlink()
    assert "Dank" in (folder / "de.srt").read_text()


def test_an_empty_name_is_not_the_working_directory(film: Path) -> None:
    for arguments, message in (
        ([""], "the name of the input is empty; name a file, or - for standard input"),
        ([str(film), "--output", ""], "`--output` must be the name of a file. It is empty"),
    ):
        result = _translate(*arguments)
        assert (result.exit_code, result.stderr) == (1, f"kvasir: {message}\n")


def test_a_device_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_lines, "_MAX_LINE_CHARACTERS", 10_000_000)
    result = _translate("/dev/zero")
    message = "line 1 must have at most 10000000 characters; divide it, or name a text file"
    assert (result.exit_code, result.stderr) == (1, f"kvasir: {message}\n")


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
