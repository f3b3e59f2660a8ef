"""Model cards: those of pulled models, and the sections that `kvasir calibrate` writes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import regex

from bundle.manifest import BundleConfig
from bundle.model_card import CARD_FILE
from library.home import Origin
from library.repairs import RepairFigures

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


def repairs_table(figures: Sequence[RepairFigures]) -> str:
    """Return what repairs gain and cost, as a Markdown table."""
    rows = [
        "| repair | on | sentences | changed | better | worse | chrF of the changed | numbers kept | requests | rows |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in figures:
        kept = " to ".join(map(str, dict.fromkeys(each.kept_numbers)))
        rows.append(
            f"| {each.repair} | {'yes' if each.is_gain else 'no'} | {each.num_sentences} | {each.num_changed} "
            f"| {each.num_better} | {each.num_worse} | {each.gain:+.1f} | {kept} of {each.num_numbers} "
            f"| {each.extra_requests:+.1%} | {each.extra_rows:+.1%} |"
        )
    return "\n".join(rows)


def write_section(folder: Path, title: str, text: str) -> None:
    """Write a section of the card in a folder, in place of the one of this title or at the end; none without a card."""
    path = folder / CARD_FILE
    if not path.is_file():
        return
    card = path.read_text("utf-8")
    section = f"## {title}\n\n{text}\n"
    pattern = regex.compile(rf"^## {regex.escape(title)}\n.*?(?=^## |\Z)", regex.MULTILINE | regex.DOTALL)
    if (found := pattern.search(card)) is not None:
        is_last = found.end() == len(card)
        card = f"{card[: found.start()]}{section}{'' if is_last else chr(10)}{card[found.end() :]}"
    else:
        card = f"{card.rstrip()}\n\n{section}"
    path.write_text(card, "utf-8")
