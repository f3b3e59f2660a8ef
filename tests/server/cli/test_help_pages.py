import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kvasir_commands import app
from server.cli.help_pages import in_words
from server.operations.version import version

ROOT = Path(__file__).resolve().parents[3]
COMMANDS: tuple[list[str], ...] = (
    [], ["serve"], ["translate"], ["train"], ["filter"], ["export"], ["loadtest"],
    ["loadtest", "report"], ["loadtest", "compare"],
)  # fmt: skip
PYTHON_NAMES = re.compile(r"PosixPath|None|<\w+>|--\S+ (?:str|int|float|bool|list|Path)\b|list\[|x[<>]=|\{|\[\]")


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help_without_names_of_python(command: list[str], flag: str) -> None:
    result = CliRunner().invoke(app, [*command, flag])
    assert result.exit_code == 0, result.stderr
    assert "-h, --help" in result.stdout
    assert not PYTHON_NAMES.findall(result.stdout)
    assert max(map(len, result.stdout.splitlines())) <= 110


def test_help_needs_no_package_of_an_extra() -> None:
    extras = ("torch", "sacrebleu", "safetensors", "onnx", "matplotlib", "locust", "gevent", "hdrh", "psutil", "jinja2")
    program = f"""
import sys
from typer.testing import CliRunner
sys.modules.update(dict.fromkeys({extras!r}))
from kvasir_commands import app
for command in {COMMANDS[1:]!r}:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0 and result.stdout.lower().strip().startswith("usage: "), (command, result.output)
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"kvasir {version()}\n")
    assert re.search(
        rf'^version = "{re.escape(version())}"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("--threads <int range>", "Threads.  [x>=1]", ("--threads NUMBER", "Threads.  [at least 1]")),
        ("--data <list[str]>", "Files.", ("--data TEXT", "Files.")),
        ("--rate <float range>", "[default: 1.0; -10.0<=x<=10.0]", ("--rate NUMBER", "[default: 1.0; -10 to 10]")),
        ("--precision <float32|int8>", "", ("--precision float32|int8", "")),
        ("--seed <int range>", "[x<=9007199254740991]", ("--seed NUMBER", "[at most 9007199254740991]")),
        ("--folder <path>", "A <b> stays.", ("--folder PATH", "A <b> stays.")),
    ],
)
def test_types_and_ranges_are_words(left: str, right: str, expected: tuple[str, str]) -> None:
    assert in_words(left, right) == expected
