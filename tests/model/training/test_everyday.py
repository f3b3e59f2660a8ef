"""The everyday sentences that the included models are trained on, and those that they are measured with."""

from pathlib import Path

from server.text.digits import compare

ROOT = Path(__file__).resolve().parents[3]
TRAINED, HELD_OUT = (
    [tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()]
    for path in (ROOT / "model/training/sentences/everyday.en-de.tsv", ROOT / "benchmarks/quality/everyday.en-de.tsv")
)


def test_every_line_has_both_languages_and_is_there_once() -> None:
    pairs = TRAINED + HELD_OUT
    assert all(len(pair) == 2 and all(text == text.strip() != "" for text in pair) for pair in pairs)
    assert len(set(pairs)) == len(pairs)


def test_no_sentence_is_both_trained_and_measured() -> None:
    assert {english for english, _ in TRAINED}.isdisjoint(english for english, _ in HELD_OUT)


def test_both_sides_have_the_same_numbers() -> None:
    differ = [pair for pair in TRAINED + HELD_OUT if compare(pair[0], pair[1], "en", "de").differ]
    assert len(differ) <= len(TRAINED) // 2000, differ
