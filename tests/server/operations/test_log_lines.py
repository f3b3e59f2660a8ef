import json
import logging
from typing import Literal

import pytest

from server.operations.log_lines import configure_logging


def test_a_log_line_is_one_json_object_with_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    logger = logging.getLogger("kvasir.test")
    logger.debug("too quiet")
    logger.info("answered\nin two lines", extra={"id": "ä-1", "status": 200, "color_message": "\x1b[1m"})
    [line] = capsys.readouterr().err.splitlines()
    fields = json.loads(line)
    assert fields.pop("time").endswith("Z")
    assert fields == {
        "level": "INFO",
        "logger": "kvasir.test",
        "message": "answered\nin two lines",
        "id": "ä-1",
        "status": 200,
    }


@pytest.mark.parametrize("is_terminal", [True, False])
def test_text_has_time_level_message_and_fields_and_colours_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    configure_logging("info", "text")
    logging.getLogger("kvasir.test").warning(
        "forged\n12:00", extra={"path": "/a b\n", "status": 404, "models": ["x", "y"]}
    )
    [line] = capsys.readouterr().err.splitlines()
    assert ("\x1b[33m" in line) == is_terminal
    for code in ("\x1b[33m", "\x1b[2m", "\x1b[0m"):
        line = line.replace(code, "")
    assert line[8:] == ' WARNING forged\\n12:00  path="/a b\\n" status=404 models=x,y'


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_format_is_text_on_a_terminal_and_json_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    configure_logging("info", "auto")
    logging.getLogger("kvasir.test").info("started")
    assert capsys.readouterr().err.startswith("{") != is_terminal


@pytest.mark.parametrize("form", ["json", "text"])
def test_the_secret_of_a_key_is_left_out_of_every_part_of_a_line(
    capsys: pytest.CaptureFixture[str], form: Literal["json", "text"]
) -> None:
    configure_logging("info", form)
    key, other = "kvasir-0123abcd-S3cret_S3cret-S3cret_S3cret-", "kvasir-glossaries-a1b2c3d4e5f6g7h8"
    try:
        raise ValueError(key)
    except ValueError:
        logging.getLogger("kvasir.test").exception("no %s", key, extra={"path": f"/{key}/translate", "file": other})
    line = capsys.readouterr().err
    assert line.count("kvasir-0123abcd-...") >= 3
    assert "S3cret" not in line
    assert other in line
