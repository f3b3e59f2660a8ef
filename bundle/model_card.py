"""Model card of a bundle: purpose and measured quality from `README.md` next to `bundle.json`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CARD_FILE: Final = "README.md"

_MAX_BYTES = 256 * 1024
_MAX_PURPOSE_CHARACTERS = 400
# A paragraph with this beginning states the purpose.
_PURPOSE = re.compile(
    r"^\*\*(Demonstration model|Intended use):\*\*\s+(.+?)\s*(?:\n[ \t]*\n|\Z)", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_REQUIRED_COLUMNS = frozenset({"data", "precision", "bleu"})


@dataclass(frozen=True, slots=True)
class MeasuredQuality:
    """Quality on one test set. `bleu` and `chrf` are from 0 to 100."""

    data: str
    lines: int | None
    search: str | None
    bleu: float
    chrf: float | None


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Statements of a card. A bundle without a card, or a card without statements, has the defaults."""

    is_demonstration: bool = False
    purpose: str | None = None
    quality: tuple[MeasuredQuality, ...] = ()


def read_card(folder: Path, precision: str) -> ModelCard:
    """Return the statements of the card in `folder` about the bundle of this precision.

    Tables have the columns that `benchmarks.quality.bleu` prints. Of several searches on the same data, the last row
    counts. A card that cannot be read has no statements: nothing else depends on it.
    """
    try:
        with (folder / CARD_FILE).open("rb") as stream:
            text = stream.read(_MAX_BYTES).decode("utf-8", errors="replace").replace("\r\n", "\n")
    except OSError:
        return ModelCard()
    stated = _PURPOSE.search(text)
    purpose = " ".join(_LINK.sub(r"\1", stated[2]).split())[:_MAX_PURPOSE_CHARACTERS] if stated else None
    measured = {quality.data: quality for quality in _rows(text, precision)}
    return ModelCard(stated is not None and stated[1] == "Demonstration model", purpose, tuple(measured.values()))


def _rows(text: str, precision: str) -> Iterator[MeasuredQuality]:
    header: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if not cells:
            header = []
        elif not header:
            header = [cell.lower() for cell in cells]
        elif set(header) >= _REQUIRED_COLUMNS and len(cells) == len(header):
            row = dict(zip(header, cells, strict=True))
            bleu = _number(row["bleu"])
            if row["precision"] == precision and bleu is not None:
                lines, chrf = _number(row.get("lines", "").replace(",", "")), _number(row.get("chrf", ""))
                yield MeasuredQuality(row["data"], None if lines is None else int(lines), row.get("search"), bleu, chrf)


def _number(cell: str) -> float | None:
    return float(cell) if re.fullmatch(r"\d+(\.\d+)?", cell) else None
