"""Version of the package."""

import tomllib
from importlib import metadata
from pathlib import Path

_DISTRIBUTION = "kvasir-server"
_PROJECT_FILE = Path(__file__).resolve().parents[2] / "pyproject.toml"


def version() -> str:
    """Return the version: of the checkout that this file lies in, else of the installed package."""
    if _PROJECT_FILE.is_file():
        project = tomllib.loads(_PROJECT_FILE.read_text(encoding="utf-8"))["project"]
        if project["name"] == _DISTRIBUTION:
            return str(project["version"])
    return metadata.version(_DISTRIBUTION)
