"""Model cards of pulled models."""

from collections.abc import Sequence
from typing import Final

from bundle.manifest import BundleConfig
from library.home import Origin

_MAX_LISTED_LANGUAGES: Final = 8


def card_text(config: BundleConfig, origin: Origin, bleu: float | None) -> str:
    """Return a model card. The server reads the paragraph of the intended use, and the table of the quality."""
    licence = origin.licence or "not stated; see the origin"
    table = "\n| data | precision | BLEU |\n|---|---|---|\n"
    quality = "" if bleu is None else f"{table}| FLORES | {config.precision} | {bleu:.1f} |\n"
    return (
        f"# {config.name}\n\n"
        f"**Intended use:** translation from {listed(config.source_languages)} to {listed(config.target_languages)}. "
        f"Licence: {licence}. Origin: {origin.address}\n{quality}"
    )


def listed(languages: Sequence[str]) -> str:
    """Return languages as text; of many, their number."""
    if len(languages) > _MAX_LISTED_LANGUAGES:
        return f"{len(languages)} languages"
    return ", ".join(languages)
