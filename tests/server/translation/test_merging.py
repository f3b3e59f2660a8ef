import math
from dataclasses import replace

from server.interface.request import FinishReason
from server.text.language_detection import Detection
from server.text.protection.masked_sentence import Means
from server.text.spans import SpanKind
from server.translation.merging import merge, with_kept
from server.translation.token_counts import TokenCounts
from server.translation.types import KeepReason, KeptSentence, Phases, Translation, TranslationResult


def _result(*texts: str, times: tuple[float, float, float, float, float], seed: int | None = None) -> TranslationResult:
    translations = [Translation(text, 3, 4, FinishReason.STOP, -0.5) for text in texts]
    counts = TokenCounts.of([(3, 4)] * len(texts))
    kept = {(SpanKind.ADDRESS, Means.AS_IS): 2}
    return TranslationResult(
        translations, Phases(*times), counts, len(texts), seed, kept, {KeepReason.NO_WORDS: 1}, {"repaired": 1}
    )


def test_results_are_merged_in_the_order_of_the_texts() -> None:
    first = _result("A", "C", times=(1, 2, 3, 4, 5))
    second = _result("D", times=(5, 1, 4, 2, 9), seed=7)
    merged = merge(["a", "b\ud800", "c", "d"], [[0, 2], [3]], [first, second])
    assert [each.text for each in merged.translations] == ["A", "b\ufffd", "C", "D"]
    assert merged.translations[1].source_tokens == merged.translations[1].target_tokens == 0
    assert math.isnan(merged.translations[1].score)
    assert merged.phases == Phases(5, 2, 4, 4, 9)  # at the same time
    assert merged.sentence_tokens == TokenCounts({3: 3}, {4: 3})
    assert (merged.num_splits, merged.seed) == (3, 7)
    assert merged.kept_spans == {(SpanKind.ADDRESS, Means.AS_IS): 4}
    assert merged.kept_sentences == {KeepReason.NO_WORDS: 2}
    assert merged.outcomes == {"repaired": 2}


def test_a_request_without_parts_took_no_time() -> None:
    merged = merge(["a"], [], [])
    assert merged.translations[0].text == "a"
    assert (merged.phases, merged.num_splits, merged.seed) == (Phases(), 0, None)


def test_texts_that_stay_are_named_with_their_reasons() -> None:
    result = merge(["12", " Hallo ", " ", "x"], [[3]], [_result("X", times=(0, 0, 0, 0, 0))])
    detected = [None, Detection("de", 0.9), None, Detection("en", 0.9)]
    named = with_kept(replace(result, kept_sentences={KeepReason.NO_WORDS: 3}), [0, 1, 2], detected)
    assert [each.kept for each in named.translations] == [
        (KeptSentence("12", KeepReason.NO_WORDS),),
        (KeptSentence("Hallo", KeepReason.ALREADY_IN_TARGET_LANGUAGE),),
        (),
        (),
    ]
    assert named.kept_sentences == {KeepReason.NO_WORDS: 4, KeepReason.ALREADY_IN_TARGET_LANGUAGE: 1}
