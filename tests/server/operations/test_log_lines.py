import json
import logging

import pytest

from server.operations.log_lines import configure_logging


def test_a_log_line_is_one_json_object_with_its_fields(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
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


def test_a_failure_keeps_its_traceback_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    configure_logging("error")
    try:
        [].pop()
    except IndexError:
        logging.getLogger("kvasir.test").exception("a bug")
    [line] = capsys.readouterr().err.splitlines()
    assert "IndexError" in json.loads(line)["exc_info"]
