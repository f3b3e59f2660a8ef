"""Files of `kvasir translate` that are none, or lead to other files."""

import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kvasir_commands import app
from server.cli.translate import input_lines

_SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nThank you.\n"


def _run(*arguments: str) -> Result:
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
        result = _run(*arguments)
        assert result.exit_code == 1
        assert re.fullmatch(
            r"kvasir: /proc/x(\.srt)? cannot be created; name a file in another folder\n", result.stderr
        )
    assert sorted(path.name for path in film.parent.iterdir()) == ["film.srt"]


def test_a_pipe_is_not_replaced_by_a_document(film: Path) -> None:
    pipe = film.with_name("pipe")
    os.mkfifo(pipe)
    result = _run(str(film), "--format", "srt", "--output", str(pipe))
    assert result.exit_code == 1
    assert result.stderr == f"kvasir: the output of a document must be a file. {pipe} is a pipe or a device\n"
    assert pipe.is_fifo()


def test_a_document_is_written_to_the_file_of_a_link(film: Path) -> None:
    link, folder = film.with_name("link.srt"), film.parent / "elsewhere"
    folder.mkdir()
    link.symlink_to(folder / "de.srt")
    result = _run(str(film), "--output", str(link))
    assert result.exit_code == 0, result.stderr
    assert link.is_symlink()
    assert "Dank" in (folder / "de.srt").read_text()


def test_an_empty_name_is_not_the_working_directory(film: Path) -> None:
    for arguments, message in (
        ([""], "the name of the input is empty; name a file, or - for standard input"),
        ([str(film), "--output", ""], "`--output` must be the name of a file. It is empty"),
    ):
        result = _run(*arguments)
        assert (result.exit_code, result.stderr) == (1, f"kvasir: {message}\n")


def test_a_device_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_lines, "_MAX_LINE_BYTES", 10_000_000)
    result = _run("/dev/zero")
    message = "line 1 must have at most 10000000 bytes; divide it, or name a text file"
    assert (result.exit_code, result.stderr) == (1, f"kvasir: {message}\n")
