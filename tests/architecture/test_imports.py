"""Import contracts: they hold, and a wrong import or an unlisted module breaks them."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.project_files import ROOT, project_files, text_of

PACKAGES = ("benchmarks", "bundle", "export", "kernels", "kvasir_client", "library", "loadtest", "model", "server")

WRONG_IMPORTS = [
    ("server/interface/errors.py", "torch"),
    ("server/interface/request.py", "model.transformer"),
    ("server/interface/request.py", "loadtest.cli.run"),
    ("server/interface/errors.py", "export.exporter"),
    ("bundle/manifest.py", "onnx"),
    ("loadtest/cli/run.py", "server.interface.request"),
    ("loadtest/cli/run.py", "model.config"),
    ("kernels/layout.py", "bundle.manifest"),
    ("kvasir_client/calls.py", "server.interface.request"),
    ("model/training/trainer.py", "export.exporter"),
    ("model/families/marian/reading.py", "model.training.settings"),
]
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


def test_wrong_imports_break_contracts(tmp_path: Path) -> None:
    _copy_packages(tmp_path)
    for module, imported in WRONG_IMPORTS:
        planted = tmp_path / module
        planted.write_text(f"import {imported}\n{planted.read_text(encoding='utf-8')}", encoding="utf-8")
    checked = _lint_imports(tmp_path)
    assert checked.returncode == 1
    for module, imported in WRONG_IMPORTS:
        importer = module.removesuffix(".py").replace("/", ".")
        assert f"{importer} -> {imported} (l." in checked.stdout, (module, imported)


def test_a_module_without_a_row_breaks_its_contract(tmp_path: Path) -> None:
    _copy_packages(tmp_path)
    (tmp_path / "server" / "text" / "unlisted.py").write_text("", encoding="utf-8")
    checked = _lint_imports(tmp_path)
    assert checked.returncode == 1
    assert "unlisted" in checked.stdout


def test_the_server_starts_where_torch_cannot_be_imported() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_THE_SERVER], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_locust_is_not_in_the_process_of_the_tests() -> None:
    assert not {"locust", "gevent"} & set(sys.modules), "importing locust patches threads and sockets for every test"


def _copy_packages(folder: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "static"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


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
    found = {path: names for path in edge if (names := _private_imports(text_of(path)))}
    assert not found


def test_a_private_import_is_found_wherever_it_stands() -> None:
    source = """
import uvicorn._types
from __future__ import annotations
from fastapi.routing import APIRoute, _prepare
if TYPE_CHECKING:
    from typer._click import Context
"""
    assert _private_imports(source) == ["uvicorn._types", "fastapi.routing._prepare", "typer._click.Context"]
