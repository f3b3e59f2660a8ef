"""The folder of what Kvasir keeps on disk: pulled models, and files that it makes once to start faster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "KVASIR_HOME"
_DEFAULT: Final = "~/.cache/kvasir"


def home_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that KVASIR_HOME names, or the default one. Raises ValueError if a user has no home."""
    name = environment.get(VARIABLE) or _DEFAULT
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise ValueError(f"{name} is in the home of a user who has none; set {VARIABLE} to another folder") from None
