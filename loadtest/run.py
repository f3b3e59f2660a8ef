"""A load test as a function call: locust in a process of its own, and its totals back."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from loadtest.native import MAX_ANSWER_SECONDS
from loadtest.records import Summary
from loadtest.report import from_json

_LOCUSTFILE = Path(__file__).with_name("locustfile.py")


class LoadTestFailed(Exception):
    """Locust ended without totals; what it printed says why."""


def run(url: str, users: int, seconds: float, beam_share: float = 0.2, seed: int = 1) -> Summary:
    """Loads the server at `url` and returns the totals; progress and report go to standard output.

    `seconds` count from the moment all users run; answers still awaited then have `MAX_ANSWER_SECONDS` to arrive.
    `Summary.exit_code` is what a command line should end with. Raises `ValueError` for arguments that make no
    test, `LoadTestFailed` when nothing could be measured. Locust patches the standard library, so it never runs in
    the caller's process.
    """
    if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
        raise ValueError(f"{url!r} is not the address of a server; http://127.0.0.1:8000 would be one")
    if users < 1 or seconds <= 0:
        raise ValueError(f"a load test needs at least 1 user and more than 0 seconds, not {users} and {seconds}")
    if not 0.0 <= beam_share <= 1.0:
        raise ValueError(f"beam_share is {beam_share}; it is a share and lies between 0 and 1")
    if importlib.util.find_spec("locust") is None:
        raise LoadTestFailed("locust is not installed; pip install 'kvasir[loadtest]' brings it")
    with tempfile.TemporaryDirectory(prefix="kvasir-loadtest-") as folder:
        summary_file = Path(folder) / "summary.json"
        exit_code = _run_locust(_command(url, users, seconds, beam_share, seed, summary_file))
        if not summary_file.exists():
            raise LoadTestFailed(f"locust ended with status {exit_code} and no totals")
        return from_json(summary_file.read_text(encoding="utf-8"))


def _command(url: str, users: int, seconds: float, beam_share: float, seed: int, summary_file: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "locust", "--locustfile", str(_LOCUSTFILE), "--host", url),
        *("--headless", "--only-summary", "--loglevel", "WARNING"),
        # All users at once: the ramp is not measured, so there is nothing to gain from a slow one.
        *("--users", str(users), "--spawn-rate", str(users)),
        *("--window-seconds", str(seconds)),
        *("--beam-share", str(beam_share), "--seed", str(seed), "--summary-file", str(summary_file)),
    ]


def _run_locust(command: list[str]) -> int:
    # No standard input: locust reads keys from a terminal, and this one belongs to the caller.
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:  # noqa: S603 - our own interpreter, a list
        try:
            return process.wait()
        except KeyboardInterrupt:
            # The terminal has told locust too; it reports what it has, then ends.
            return process.wait(timeout=MAX_ANSWER_SECONDS + 10)
