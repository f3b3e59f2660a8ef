"""Clients of other projects, each in an environment of its own in a folder that git ignores."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".clients"

LIBRETRANSLATE = "libretranslate==1.9.6"
NODE_PACKAGES = (
    "deepl-node@1.28.0", "translate@3.1.0", "libretranslate@1.0.1", "google-translate-api-x@10.7.2",
    "@vitalets/google-translate-api@9.2.1", "openai@6.49.0",
)  # fmt: skip


def python_environment(*requirements: str) -> Path:
    """The folder of programs of a virtual environment with these packages, exact versions."""
    folder = CACHE / "-".join(requirements).replace("==", "-")
    programs = folder / "bin"
    if not (folder / ".complete").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", str(folder))
        run(str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
        (folder / ".complete").touch()
    return programs


def node_packages() -> Path:
    """A folder in whose `node_modules` the packages of npm are; another list of them is installed anew."""
    folder = CACHE / "node"
    complete = folder / ".complete"
    if not complete.is_file() or complete.read_text(encoding="utf-8") != " ".join(NODE_PACKAGES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *NODE_PACKAGES)
        complete.write_text(" ".join(NODE_PACKAGES), encoding="utf-8")
    return folder


def libretranslate_tests(destination: Path) -> Path:
    """LibreTranslate's own tests of its API, taken out of its wheel. They are AGPL: never kept, never committed."""
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:")
    run(sys.executable, "-m", "pip", "download", *options, "--dest", str(destination), LIBRETRANSLATE)
    [wheel] = destination.glob("*.whl")
    prefix = "libretranslate/tests/test_api/"
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            if name.startswith(prefix + "test_"):
                (destination / Path(name).name).write_bytes(packed.read(name))
    wheel.unlink()
    return destination


def run(
    *command: str,
    timeout_seconds: float = 600.0,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Return the output of a program. Raises `AssertionError` with all of it if the program fails or is missing."""
    if shutil.which(command[0]) is None:
        raise AssertionError(f"{command[0]} is missing: install it, these clients need it")
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    assert ran.returncode == 0, _said(command, ran.stdout, ran.stderr)
    return ran.stdout


def _said(command: Sequence[str], output: str, errors: str) -> str:
    return f"{' '.join(command)} failed:\n{output}\n{errors}"
