from server.documents.report import DocumentReport
from server.interface.request import FinishReason
from server.translation.types import Phases, TokenCounts, Translation, TranslationResult


def _result(*qualities: tuple[float | None, int]) -> TranslationResult:
    """Return a result with texts of these qualities and numbers of source tokens."""
    translations = [
        Translation("x", tokens, 1, FinishReason.STOP, 0.0, quality=quality) for quality, tokens in qualities
    ]
    return TranslationResult(translations, Phases(), TokenCounts.of(()), 0)


def test_the_quality_is_a_mean_over_source_tokens() -> None:
    report = DocumentReport()
    assert report.quality is None
    report.add(_result((None, 100)))
    assert report.quality is None
    report.add(_result((0.9, 30), (0.5, 10)))
    report.add(_result((0.33333, 20), (None, 7)))
    assert report.quality == round((0.9 * 30 + 0.5 * 10 + 0.33333 * 20) / 60, 4)
