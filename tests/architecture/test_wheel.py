"""The wheel has the default bundles, where a server without `--model` looks for them; the chart has its version."""

import fnmatch
import tomllib

from server.operations.defaults import DEFAULT_MODEL
from tests.architecture.project_files import ROOT, project_files, text_of


def test_the_wheel_has_every_file_that_its_packages_read() -> None:
    setuptools = tomllib.loads(text_of("pyproject.toml"))["tool"]["setuptools"]
    for package, patterns in setuptools["package-data"].items():
        assert any(fnmatch.fnmatchcase(package, pattern) for pattern in setuptools["packages"]["find"]["include"])
        files = {path for path in project_files() if path.startswith(f"{package}/") and not path.endswith(".py")}
        found = (path for pattern in patterns for path in (ROOT / package).glob(pattern.replace("**", "**/*")))
        packed = {str(path.relative_to(ROOT)) for path in found}
        assert files
        assert files <= packed
    assert DEFAULT_MODEL.parent == ROOT / "models"
    assert {path.parent.name for path in DEFAULT_MODEL.parent.glob("*/bundle.json")} == {"en-de", "de-en"}


def test_the_chart_has_the_version_of_the_wheel() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    chart = text_of("deploy/helm/kvasir/Chart.yaml")
    assert f'\nversion: {project["version"]}\nappVersion: "{project["version"]}"\n' in chart
