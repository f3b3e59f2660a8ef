"""Execution of the examples of one page, in order, in one folder and against one server."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.project_files import ROOT
from tests.docs.fenced_blocks import ERROR, SHORTENED, Block

DOCUMENTED_ADDRESS = "127.0.0.1:8000"
TIMEOUT_SECONDS = 600.0  # a busy machine took two minutes over an export that needs twelve seconds
# Examples have three decimals; arithmetic differs between processors by less than one unit of the last.
MAX_DIFFERENCE = 0.0015


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader who follows a page: a folder with the files that the examples name, and a running server."""

    folder: Path
    address: str  # of the server: host and port

    def follow(self, blocks: Iterable[Block]) -> list[str]:
        """Run and compare the blocks of a page. Returns one text for each block that failed."""
        problems: list[str] = []
        output: str | None = None
        for block in blocks:
            if block.is_run:
                ended = self._run(block)
                output = ended.stdout
                if ended.returncode:
                    said = f"{ended.stdout}{ended.stderr}"
                    problems.append(f"{block.where}: exit code {ended.returncode}\n{block.text}\n{said}")
            elif block.is_compared:
                if output is None:
                    problems.append(f"{block.where}: no command above it was run, so there is nothing to compare with")
                else:
                    problems += [f"{block.where}: {difference}" for difference in self._compare(block, output)]
        return problems

    def _run(self, block: Block) -> subprocess.CompletedProcess[str]:
        text = block.text.replace(DOCUMENTED_ADDRESS, self.address)
        command = [sys.executable, "-c", text]
        if block.language == "bash":
            command = ["bash", "-euo", "pipefail", "-c", text]
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            # The programs of the checkout, whatever else is installed.
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
            "PYTHONIOENCODING": "utf-8",
        }
        if block.mark != ERROR:
            # Without this setting, curl exits with 0 after an error response.
            (self.folder / ".curlrc").write_text("fail\n", encoding="utf-8")
            environment["CURL_HOME"] = str(self.folder)
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def _compare(self, block: Block, output: str) -> list[str]:
        if block.language == "text":
            return [] if output.strip() == block.text.strip() else [f"the output is {output!r}"]
        try:
            actual = json.loads(output)
        except ValueError:
            return [f"the output is no JSON: {output!r}"]
        return json_differences(json.loads(block.text), actual, block.mark == SHORTENED)


def json_differences(example: object, actual: object, shortened: bool = False, path: str = "$") -> list[str]:
    """Return where `actual` differs from `example`, as JSON paths with both values.

    If `shortened`, objects may have further fields. Numbers may differ by rounding.
    """
    if isinstance(example, dict) and isinstance(actual, dict):
        missing = [f"{path}.{key}: missing" for key in example if key not in actual]
        further = [] if shortened else [f"{path}.{key}: not in the example" for key in actual if key not in example]
        shared = [key for key in example if key in actual]
        below = (json_differences(example[key], actual[key], shortened, f"{path}.{key}") for key in shared)
        return missing + further + [difference for found in below for difference in found]
    if isinstance(example, list) and isinstance(actual, list) and len(example) == len(actual):
        pairs = enumerate(zip(example, actual, strict=True))
        below = (json_differences(*pair, shortened, f"{path}[{index}]") for index, pair in pairs)
        return [difference for found in below for difference in found]
    if isinstance(example, float) and isinstance(actual, int | float):
        is_close = math.isclose(example, actual, rel_tol=0, abs_tol=MAX_DIFFERENCE)
        return [] if is_close else [_both(path, example, actual)]
    return [] if example == actual and type(example) is type(actual) else [_both(path, example, actual)]


def _both(path: str, example: object, actual: object) -> str:
    return f"{path}: {actual!r} instead of {example!r}"
