"""Log lines on standard error, as text or JSON. They never contain texts to translate, nor API keys."""

import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import Literal

from server.operations.api_keys.key_file import without_secrets

_RESERVED = ("color_message",)  # uvicorn's copy of its messages with terminal colours
_STANDARD_FIELDS = frozenset([*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", *_RESERVED])
_COLOURS: Mapping[int, str] = {logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[31m", logging.CRITICAL: "\x1b[31m"}
_DIM, _RESET = "\x1b[2m", "\x1b[0m"


class _JsonFormatter(logging.Formatter):
    """JSON object with time, level, logger and message, then the fields of `extra`."""

    def __init__(self) -> None:
        super().__init__()
        self._encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
        self._second = 0
        self._time = ""  # of that second

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        second = int(record.created)
        if second != self._second:
            self._second, self._time = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        fields = {
            "time": f"{self._time}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields.update([item for item in record.__dict__.items() if item[0] not in _STANDARD_FIELDS])
        if record.exc_info:
            fields["exc_info"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack_info"] = record.stack_info
        return without_secrets(self._encode(fields))


class _TextFormatter(logging.Formatter):
    """Local time, level and message, then the fields of `extra` as name=value."""

    def __init__(self, is_coloured: bool) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")
        self._is_coloured = is_coloured

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and the lines of its traceback."""
        return without_secrets(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in logging.Formatter
        """Return the line without its traceback."""
        extra = {name: value for name, value in record.__dict__.items() if name not in _STANDARD_FIELDS}
        fields = " ".join(f"{name}={_shown(value)}" for name, value in extra.items())
        # A line break in a message would look like a line of its own.
        line = super().formatMessage(record).replace("\n", "\\n")
        if not self._is_coloured:
            return f"{line}  {fields}" if fields else line
        colour = _COLOURS.get(record.levelno, "")
        line = f"{colour}{line}{_RESET}" if colour else line
        return f"{line}  {_DIM}{fields}{_RESET}" if fields else line


def configure_logging(level: str, log_format: Literal["auto", "text", "json"] = "json") -> None:
    """Write the lines of all loggers at `level` and above to standard error.

    "auto" is text on a terminal and JSON elsewhere. Text has colours on a terminal only.
    """
    is_terminal = sys.stderr.isatty()
    is_text = log_format == "text" or (log_format == "auto" and is_terminal)
    handler = logging.StreamHandler()
    handler.setFormatter(_TextFormatter(is_terminal) if is_text else _JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # No line has them, and each is looked up for every line, the process by system calls.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # nor the line of code
    # It warns about every malformed form; the client receives the error.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    # Its start and its end are logged as "listening" and "drained".
    logging.getLogger("uvicorn.error").setLevel(logging.DEBUG if level == "debug" else logging.WARNING)


def _shown(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = text if text.isprintable() else ascii(text)[1:-1]
    return f'"{text}"' if not text or " " in text else text
