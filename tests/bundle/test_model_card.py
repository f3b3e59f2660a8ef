from pathlib import Path

import pytest

from bundle.loading import load_bundle
from bundle.model_card import CARD_FILE, MeasuredQuality, ModelCard, read_card

MODELS = Path(__file__).resolve().parents[2] / "models"
CARD = """# nl-fr

**Intended use:** letters of a
[notary](https://example.org/notary); nothing else.

A paragraph.

| data | lines | precision | search | BLEU | chrF |
|---|---|---|---|---|---|
| Letters, 2020 | 1,200 | float32 | beam 4 | 41.9 | 60.0 |
| Letters, 2020 | 1,200 | int8 | greedy | 40.1 | 59.0 |
| Letters, 2020 | 1,200 | int8 | beam 4 | 41.5 | 60.1 |
| Deeds | 300 | int8 | greedy | 9 | ? |
| Wills | 300 | int8 | greedy | not measured | |

| data | BLEU |
|---|---|
| Elsewhere | 99.0 |
"""


def _read(folder: Path, text: str, precision: str = "int8") -> ModelCard:
    (folder / CARD_FILE).write_text(text, encoding="utf-8")
    return read_card(folder, precision)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_purpose_and_figures_of_the_precision_are_read(tmp_path: Path, line_end: str) -> None:
    (tmp_path / CARD_FILE).write_bytes(CARD.replace("\n", line_end).encode())
    assert read_card(tmp_path, "int8") == ModelCard(
        is_demonstration=False,
        purpose="letters of a notary; nothing else.",
        quality=(
            MeasuredQuality("Letters, 2020", 1200, "beam 4", 41.5, 60.1),
            MeasuredQuality("Deeds", 300, "greedy", 9.0, None),
        ),
    )
    assert [each.bleu for each in read_card(tmp_path, "float32").quality] == [41.9]


@pytest.mark.parametrize("text", ["", "# x\n\nA model for letters.", "| data |\n|---|", "|\n|||\n"])
def test_a_card_without_statements_states_nothing(tmp_path: Path, text: str) -> None:
    assert _read(tmp_path, text) == ModelCard()


def test_a_missing_or_unreadable_card_states_nothing(tmp_path: Path) -> None:
    assert read_card(tmp_path, "int8") == ModelCard()
    (tmp_path / CARD_FILE).write_bytes(b"\xff\xfe| data")
    assert read_card(tmp_path, "int8") == ModelCard()
    (tmp_path / CARD_FILE).unlink()
    (tmp_path / CARD_FILE).mkdir()
    assert read_card(tmp_path, "int8") == ModelCard()


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in MODELS.glob("*/bundle.json")), ids=lambda path: path.name
)
def test_included_bundles_state_their_purpose_and_quality(folder: Path) -> None:
    card = load_bundle(folder, verify_digests=False).card
    assert card.is_demonstration
    assert card.purpose
    assert len(card.quality) >= 3
