"""Execution of the examples of one page, in order, in one folder and against one server."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.project_files import ROOT
from tests.docs.comparison import json_differences
from tests.docs.fenced_blocks import ERROR, SHORTENED, Block

DOCUMENTED_ADDRESS = "127.0.0.1:8000"
TIMEOUT_SECONDS = 600.0  # a busy machine took two minutes over an export that needs twelve seconds


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
