"""Log lines on standard error. They never contain texts to translate."""

import logging
import time

from pythonjsonlogger.json import JsonFormatter

_RESERVED = ("color_message",)  # uvicorn's copy of its messages with terminal colours


class _LineFormatter(JsonFormatter):
    """JSON object with time, level, logger and message, then the fields of `extra`."""

    def __init__(self) -> None:
        super().__init__(
            "{asctime}{levelname}{name}{message}",
            style="{",
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            reserved_attrs=[*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", *_RESERVED],
            json_ensure_ascii=False,
        )
        self.default_time_format = "%Y-%m-%dT%H:%M:%S"
        self.default_msec_format = "%s.%03dZ"
        self.converter = time.gmtime


def configure_logging(level: str) -> None:
    """Write the lines of all loggers at `level` and above to standard error as JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LineFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # It warns about every malformed form; the client receives the error.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
