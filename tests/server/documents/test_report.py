from server.documents.report import DocumentReport
from server.interface.request import FinishReason
from server.translation.types import KeepReason, Phases, SentenceQuality, TokenCounts, Translation, TranslationResult


def _result(
    *qualities: tuple[float | None, int],
    num_low: int = 0,
    repaired: int = 0,
    incomplete: int = 0,
    numbers_differ: int = 0,
) -> TranslationResult:
    """Return a result with texts of these qualities and numbers of source tokens."""
    translations = [
        Translation(
            "x",
            tokens,
            1,
            FinishReason.STOP,
            0.0,
            quality=quality,
            low_quality=(SentenceQuality("a", "b", 0.1),) * num_low,
        )
        for quality, tokens in qualities
    ]
    kept = {KeepReason.NO_WORDS: 2}
    return TranslationResult(
        translations,
        Phases(),
        TokenCounts.of(()),
        0,
        outcomes={"repaired": repaired, "incomplete": incomplete, "numbers_differ": numbers_differ},
        kept_sentences=kept,
    )


def test_the_quality_is_a_mean_over_source_tokens() -> None:
    report = DocumentReport()
    assert report.quality is None
    report.add(_result((None, 100)))
    assert report.quality is None
    report.add(_result((0.9, 30), (0.5, 10)))
    report.add(_result((0.33333, 20), (None, 7)))
    assert report.quality == round((0.9 * 30 + 0.5 * 10 + 0.33333 * 20) / 60, 4)
