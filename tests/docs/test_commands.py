"""Names in the documentation exist: commands, flags, targets of the Makefile and environment variables.

These hold for examples that cannot be run here as well.
"""

import itertools
import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest
from typer.testing import CliRunner

from kvasir_commands import app
from server.operations.settings import unknown_variables
from tests.architecture.project_files import text_of
from tests.docs.fenced_blocks import blocks_of, pages

COMMANDS = (
    *("serve", "pull", "models", "remove", "translate", "export", "train", "filter", "calibrate", "mcp"),
    *("shortlist", "live"),
    *("loadtest", "loadtest report", "loadtest compare"),
    *("keys", "keys add", "keys list", "keys revoke", "keys limit"),
    *("memory", "memory import", "memory export", "memory list", "memory delete", "memory backup"),
)
# Targets whose ARGS are flags of a command.
TARGETS_WITH_FLAGS = frozenset({"serve", "loadtest"})
SEPARATORS = "();<>|&"
# Flags of other programs in running text: of Docker, Prometheus, curl and deepl, then of Locust.
FOREIGN_FLAGS = frozenset(
    {"--build-arg", "--cpus", "--enable-feature", "--gpus", "--time", "--user", "--server-url"}
    | {"--headless", "--master-bind-host", "--master-bind-port", "--master-port"}
    | {"--users", "--spawn-rate", "--run-time"}
    | {"--family"}
)


@pytest.mark.parametrize("page", pages())
def test_every_command_and_flag_of_an_example_exists(page: str) -> None:
    commands = [command for block in blocks_of(page) if block.language == "bash" for command in _commands(block.text)]
    unknown = [found for command in commands for found in _unknown(command)]
    assert not unknown


@pytest.mark.parametrize("page", pages())
def test_every_flag_in_running_text_exists(page: str) -> None:
    named = set(re.findall(r"`(?:[^`\n]* )?(--[a-z][a-z0-9-]*)", text_of(page)))
    known = {flag for command in COMMANDS for flag in _flags(command)}
    unknown = named - known - FOREIGN_FLAGS
    assert not unknown


def test_every_environment_variable_exists() -> None:
    named = {name for page in pages() for name in re.findall(r"\bKVASIR_[A-Z_]+\b", text_of(page))}
    assert "KVASIR_MODEL" in named
    assert not unknown_variables(named)


def _commands(example: str) -> Iterator[list[str]]:
    """Yield the simple commands of a shell example, each as words."""
    for line in re.findall(r"(?:'[^']*'|[^'\n])+", example.replace("\\\n", " ")):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=SEPARATORS)
        lexer.whitespace_split = True
        for is_separator, words in itertools.groupby(lexer, lambda word: set(word) <= set(SEPARATORS)):
            if not is_separator:
                yield list(words)


def _unknown(command: list[str]) -> list[str]:
    """Return what `kvasir` or `make` would not accept in a command."""
    program, words = command[0].removeprefix(".venv/bin/"), command[1:]
    if program == "make" and words:
        target, arguments = words[0], [word.removeprefix("ARGS=") for word in words[1:] if word.startswith("ARGS=")]
        if target not in _targets():
            return [f"make {target}"]
        if target in TARGETS_WITH_FLAGS:
            return _unknown(["kvasir", target, *shlex.split(" ".join(arguments))])
    if program == "kvasir" and words:
        name = next((name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS), "")
        if not name:
            return [f"kvasir {words[0]}"]
        flags = (word.partition("=")[0] for word in words if word.startswith("--"))
        return [f"kvasir {name} {flag}" for flag in flags if flag not in _flags(name)]
    return []


@cache
def _flags(command: str) -> frozenset[str]:
    shown = CliRunner(env={"COLUMNS": "250", "TERM": "dumb", "NO_COLOR": "1"}).invoke(app, [*command.split(), "--help"])
    assert shown.exit_code == 0, shown.output
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*", shown.stdout))


@cache
def _targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
