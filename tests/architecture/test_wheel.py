"""The wheel has the default bundles, where a server without `--model` looks for them; the chart has its version."""

import fnmatch
import tomllib
from pathlib import Path

from server.operations.defaults import DEFAULT_MODEL

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"


def test_the_default_bundles_are_data_of_a_package_beside_the_others() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = setuptools["packages"]["find"]
    assert DEFAULT_MODEL.parent == MODELS
    assert (MODELS / "__init__.py").is_file()
    assert any(fnmatch.fnmatchcase("models", pattern) for pattern in found["include"])
    packed = {path for pattern in setuptools["package-data"]["models"] for path in MODELS.glob(pattern)}
    bundles = [path.parent for path in MODELS.glob("*/bundle.json")]
    assert {bundle.name for bundle in bundles} == {"en-de", "de-en"}
    missing = {path for bundle in bundles for path in bundle.iterdir()} - packed
    assert not missing


def test_the_tables_of_the_text_side_are_in_the_wheel() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    packed = {path for pattern in setuptools["package-data"]["server"] for path in (ROOT / "server").glob(pattern)}
    tables = set((ROOT / "server" / "text").rglob("*.tsv"))
    assert tables
    assert tables <= packed


def test_the_chart_has_the_version_of_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    chart = (ROOT / "deploy" / "helm" / "kvasir" / "Chart.yaml").read_text(encoding="utf-8")
    assert f'\nversion: {project["version"]}\nappVersion: "{project["version"]}"\n' in chart
