"""The commands as users see them: output, errors and exit codes."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kvasir_commands import app

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _process_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore what commands change in their process: the log, and the handlers of signals."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _run(*arguments: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=text)


def test_help_lists_the_commands_and_loads_none_of_them() -> None:
    listing = (
        "import kvasir_commands, sys; print(*{'fastapi', 'numpy', 'onnxruntime', 'torch'}.intersection(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", listing], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
    text = _run("--help").stdout
    assert all(command in text for command in ("serve", "translate", "train", "export", "loadtest"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_numpy_starts_no_threads() -> None:
    counting = "import kvasir, numpy, os; print(len(os.listdir('/proc/self/task')))"
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    ran = subprocess.run([sys.executable, "-c", counting], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert int(ran.stdout) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["translate", "--model", "nowhere"], 1, "nowhere is not a folder"),
        (["translate", "nowhere.txt"], 1, "nowhere.txt does not exist"),
        (["translate", "--delimiter", ";"], 1, "`delimiter` is for .csv files only"),
        (["translate", "--model", "models"], 1, "`source` and `target` are ambiguous"),
        (["serve", "--port", "ten"], 2, "--port: Input should be a valid integer"),
        (
            ["serve", "--glossary-file", "{folder}/none/stored"],
            1,
            "none/stored cannot be used to store glossaries: unable to open",
        ),
        (["serve", "--threads", "1", "--replicas", "2"], 2, "`replicas` must be at most `threads` (1). Given: 2"),
        (["export", "nowhere-at-all", "somewhere"], 1, "nowhere-at-all"),
        (["loadtest", "--url", "ftp://host"], 1, "ftp://host"),
        (["train", "{folder}", "--data", "no.tsv", "--source", "en", "--target", "de"], 1, "no.tsv"),
        (["mcp", "--url", "nowhere"], 2, "--url must be like http://127.0.0.1:8000. Given: nowhere"),
        (["loadtest", "--scenario", "nothing"], 1, "unknown scenario nothing; available: "),
        (["loadtest", "report", "nowhere"], 1, "nowhere contains no load test"),
    ],
)
def test_an_error_is_one_line_on_standard_error(arguments: list[str], code: int, message: str, tmp_path: Path) -> None:
    result = _run(*(argument.format(folder=tmp_path) for argument in arguments))
    assert result.exit_code == code
    *progress, line = result.stderr.splitlines()
    assert line.startswith("kvasir: ")
    assert message in line
    assert "Traceback" not in "".join(progress)
    assert result.stdout == ""


@pytest.mark.parametrize("command", [["models"], ["pull", "en-fr"]])
def test_a_home_of_nobody_is_named(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVASIR_HOME", "~no-such-user/models")
    result = _run(*command)
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("kvasir: ~no-such-user/models is in the home of a user who has none; set KVASIR_HOME")


@pytest.mark.parametrize("command", [["serve"], ["translate", "--model", "nowhere"]])
def test_a_working_directory_that_was_deleted_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deleted"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    result = _run(*command)
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("kvasir: the working directory cannot be used: ")


def test_load_scenarios_are_listed_with_descriptions() -> None:
    listing = _run("loadtest", "--list").stdout.splitlines()
    assert any(line.split()[:2] == ["smoke", "A"] for line in listing)


@pytest.mark.parametrize("command", ["export", "train"])
def test_without_torch_a_command_names_the_extra_that_brings_it(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [
        name for name in sys.modules if name.split(".")[0] in {"export", "model"} and name != "bundle.manifest"
    ]:
        monkeypatch.delitem(sys.modules, name)
    arguments = (
        ["checkpoint", "bundle"]
        if command == "export"
        else ["run", "--data", "a.tsv", "--source", "a", "--target", "b"]
    )
    result = _run(command, *arguments)
    assert result.exit_code == 1
    assert f"`torch` is not installed; run `make venv-dev` or `pip install '.[{command}]'`" in result.stderr


@pytest.mark.parametrize("arguments", [["--list"], ["report", "run"], ["compare", "run", "run"]])
def test_without_its_packages_a_load_test_names_the_extra_that_brings_them(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hdrh.histogram", None)
    for name in [name for name in sys.modules if name.split(".")[0] == "loadtest"]:
        monkeypatch.delitem(sys.modules, name)
    result = _run("loadtest", *arguments)
    assert result.exit_code == 1
    assert "is not installed; run `make venv-dev` or `pip install '.[loadtest]'`" in result.stderr


@pytest.mark.parametrize("foreign", ["server/__init__.py", "typer.py"])
def test_modules_in_the_working_directory_do_not_replace_those_of_kvasir(foreign: str, tmp_path: Path) -> None:
    (tmp_path / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / foreign).write_text("raise ImportError('a module of the working directory')\n", encoding="utf-8")
    command = [sys.executable, "-m", "kvasir", "translate", "--model", "nowhere"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("kvasir: nowhere is not a folder")
    assert ran.stderr.count("\n") == 1
