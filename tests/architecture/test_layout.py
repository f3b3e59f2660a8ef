"""The house rules that a reader cannot see in one file: who imports whom, how long files are, what they may name."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("benchmarks", "bundle", "export", "kernels", "loadtest", "model", "server")
MAX_LINES = 300

# Written in pieces, so that this file does not find itself.
FOREIGN_PATHS = ["/wo" + "rk/", "/ro" + "ot/", "/opt/" + "pypi", "/ho" + "me/"]
REGISTRY_HOSTS = ["pypi" + ".org", "pythonhosted" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org"]

# Runs in a process where torch and its kind cannot be imported, as on a serving machine.
IMPORT_THE_SERVER = """
import importlib, pathlib, sys
for name in ("torch", "transformers", "onnx", "onnxscript", "safetensors", "huggingface_hub", "locust", "model"):
    sys.modules[name] = None
for path in sorted(pathlib.Path("server").rglob("*.py")):
    if "static" not in path.parts:
        importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
importlib.import_module("kvasir")
"""


def test_the_import_contracts_hold() -> None:
    checked = _lint_imports(ROOT)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("server/interface/errors.py", "import torch"),
        ("server/interface/request.py", "from model import transformer"),
        ("server/interface/request.py", "import loadtest.cli.run"),
        ("server/interface/errors.py", "from export import exporter"),
        ("bundle/manifest.py", "import onnx"),
        ("loadtest/cli/run.py", "import server.interface.request"),
        ("loadtest/cli/run.py", "import model.config"),
        ("kernels/weight_layout.py", "import bundle.manifest"),
        ("model/training/trainer.py", "import export.exporter"),
        ("model/families/marian/reading.py", "import model.training.settings"),
    ],
)
def test_a_wrong_import_breaks_a_contract(module: str, line: str, tmp_path: Path) -> None:
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__", "static"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    planted = tmp_path / module
    planted.write_text(f"{line}\n{planted.read_text(encoding='utf-8')}", encoding="utf-8")
    checked = _lint_imports(tmp_path)
    assert checked.returncode == 1
    assert "BROKEN" in checked.stdout


def test_the_server_starts_where_torch_cannot_be_imported() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_THE_SERVER], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_locust_is_not_in_the_process_of_the_tests() -> None:
    assert not {"locust", "gevent"} & set(sys.modules), "importing locust patches threads and sockets for every test"


def test_long_files_have_a_reason_in_decisions() -> None:
    decisions = (ROOT / "DECISIONS.md").read_text(encoding="utf-8")
    too_long = {
        path: num_lines
        for path in _project_files()
        if path.endswith(".py") and (num_lines := _text(path).count("\n")) > MAX_LINES and f"`{path}`" not in decisions
    }
    assert not too_long, f"over {MAX_LINES} lines and not in DECISIONS.md: {too_long}"


@pytest.mark.parametrize("word", [*FOREIGN_PATHS, *REGISTRY_HOSTS])
def test_no_file_names_a_path_of_one_machine_or_a_package_registry(word: str) -> None:
    named_in = [path for path in _project_files() if word in _text(path)]
    assert not named_in


def test_no_text_installs_the_project_of_another_author_from_a_package_registry() -> None:
    install = re.compile(
        r"""(pip3?|pipx|uv) (tool )?(install|add)\b[^&;:\n]*?[ "'`]kvasir\b(?!-server)|["'`\s]kvasir\["""
    )
    assert install.search("pip install -U 'kvasir[train]'")
    assert install.search("pipx install kvasir")
    assert install.search('needs "kvasir[export]"')
    assert not install.search("/opt/kvasir/bin/pip install --no-deps .")
    found = [path for path in _project_files() if path != "tests/architecture/test_layout.py" and install.search(_text(path))]
    assert not found, "`kvasir` on PyPI is another project; name `make venv-dev` or `pip install '.[train]'` instead"


def test_every_package_marker_is_empty() -> None:
    filled = [path for path in _project_files() if path.endswith("__init__.py") and _text(path).strip()]
    assert not filled, "no re-exports: import a name from the module that defines it"


def test_no_module_is_called_by_a_word_that_says_nothing() -> None:
    empty_word = re.compile(r"(^|[/_])(utils?|helpers?|common|managers?|misc)(?=[/_.])")
    assert not [path for path in _project_files() if path.endswith(".py") and empty_word.search(path)]


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _project_files() -> list[str]:
    """Paths from the root of every file that is, or could be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for path in listed.split("\0") if path and (ROOT / path).is_file()]
    assert paths, "git knows no file here"
    return paths


def _text(path: str) -> str:
    """The text of a file; nothing for a binary one."""
    content = (ROOT / path).read_bytes()
    return "" if b"\0" in content else content.decode("utf-8", "replace")
