"""Import contracts, and what may be imported where."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.architecture.project_files import ROOT, project_files, text_of

# Runs in a process where torch and packages of its size cannot be imported, as on a serving machine.
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


def test_every_top_level_package_is_in_the_contracts() -> None:
    data_folders = {"models"}
    packages = {path.removesuffix("/__init__.py") for path in project_files() if path.endswith("/__init__.py")}
    assert {package for package in packages if "/" not in package} - data_folders == set(_packages())
    layers = _contracts()["contracts"][0]["layers"]
    assert set(re.findall(r"\w+", " ".join(layers))) == set(_packages())


def test_the_server_starts_where_torch_cannot_be_imported() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_THE_SERVER], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_locust_is_not_in_the_process_of_the_tests() -> None:
    assert not {"locust", "gevent"} & set(sys.modules), "importing locust patches threads and sockets for every test"


# Libraries whose classes the edge extends or reads: a minor release may change what they call private.
_EDGE = ("server/cli/", "server/http/", "server/operations/")


def _private_imports(source: str) -> list[str]:
    """Return the imported modules and names that their owners call private, of other packages or of other modules."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    dunder = re.compile(r"__\w+__")
    return [name for name in found if any(part[:1] == "_" and not dunder.fullmatch(part) for part in name.split("."))]


def test_the_edge_imports_nothing_private() -> None:
    edge = [path for path in project_files() if path.startswith(_EDGE) and path.endswith(".py")]
    assert edge
    assert not {path: names for path in edge if (names := _private_imports(text_of(path)))}


def _contracts() -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]
    return read


def _packages() -> list[str]:
    return list(_contracts()["root_packages"])


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
