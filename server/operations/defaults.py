"""Defaults that commands share with the settings of the server, whose import takes a fifth of a second."""

from pathlib import Path
from typing import Final

DEFAULT_MODEL: Final = Path(__file__).resolve().parents[2] / "models" / "en-de"
DEFAULT_PIVOT: Final = "en"
