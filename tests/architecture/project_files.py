"""Files of the project that the rules about the tree read."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def project_files() -> tuple[str, ...]:
    """Return the paths, from the root, of every file that is, or could be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = tuple(path for path in sorted(set(listed.split("\0"))) if path and (ROOT / path).is_file())
    assert paths, "git lists no file here"
    return paths


def text_of(path: str) -> str:
    """Return the text of a file, or an empty string for a binary one."""
    content = (ROOT / path).read_bytes()
    return "" if b"\0" in content else content.decode("utf-8", "replace")
