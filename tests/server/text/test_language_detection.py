import pytest

from server.text.language_detection import Detector

ENGLISH_OR_GERMAN = Detector(["en", "de"])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is the railway station?", "en"),
        ("Wo ist der Bahnhof?", "de"),
        ("GUTEN MORGEN, WIE GEHT ES IHNEN?", "de"),
        ("Guten Tag", "de"),
        ("  \n*** 12:30 — Wir fahren morgen 🎉", "de"),
        ("I would like to go home now. " * 1000, "en"),
    ],
)
def test_a_sentence_is_recognised_with_confidence(text: str, language: str) -> None:
    detected = ENGLISH_OR_GERMAN.detect(text)
    assert detected is not None
    assert detected.language == language
    assert detected.confidence > 0.8


@pytest.mark.parametrize("text", ["Tea", "OK", "a", "Hello", "Berlin"])
def test_an_ambiguous_word_has_a_low_confidence(text: str) -> None:
    detected = ENGLISH_OR_GERMAN.detect(text)
    assert detected is not None
    assert detected.confidence < 0.8


@pytest.mark.parametrize("languages", [["de", "fr", "en"], ["en", "fr", "de"], ["fr", "en", "de"]])
def test_a_word_is_in_its_language_in_whatever_order_the_languages_are(languages: list[str]) -> None:
    detector = Detector(languages)
    words = {
        "en": "House Friend Today Next",
        "de": "Wasser Freund Arbeit Heute Löschen Milch Nein",
        "fr": "Aujourd'hui Travail Suivant Lait Livre Désolé Maison",
    }
    found = {word: language for language, each in words.items() for word in each.split()}
    detected = {word: detector.detect(word) for word in found}
    assert {word: each and each.language for word, each in detected.items()} == found


def test_a_mixed_text_has_a_confidence_between() -> None:
    detected = ENGLISH_OR_GERMAN.detect("The house. Das Haus.")
    assert detected is not None
    assert 0.4 < detected.confidence < 0.75


@pytest.mark.parametrize("text", ["Quiero un café con leche", "Bonjour tout le monde", "Привет, как дела?", "你好"])
def test_a_language_that_is_not_expected_leaves_the_confidence_low(text: str) -> None:
    ranked = ENGLISH_OR_GERMAN.rank(text)
    assert {detection.language for detection in ranked} == {"en", "de"}
    assert sum(detection.confidence for detection in ranked) < 0.5


def test_one_candidate_is_no_certainty() -> None:
    english = Detector(["en"])
    sure, unsure = english.detect("Where is the railway station?"), english.detect("Wo ist der Bahnhof, bitte schön?")
    assert sure is not None
    assert unsure is not None
    assert sure.confidence > 0.95
    assert unsure.confidence < 0.1


@pytest.mark.parametrize("text", ["", "  \n", "12:30", "🎉🎉", "***", "\ud800"])
def test_a_text_without_letters_is_in_no_language(text: str) -> None:
    assert ENGLISH_OR_GERMAN.rank(text) == []
    assert ENGLISH_OR_GERMAN.detect(text) is None


def test_candidates_keep_their_tags_and_unknown_ones_are_named() -> None:
    detector = Detector(["pt-BR", "pt", "zh_Hant", "nb", "tlh"])
    assert detector.languages == ["pt-BR", "zh_Hant", "nb"]
    assert detector.unknown == ["tlh"]
    detected = detector.detect("Eu gostaria de ir para casa agora.")
    assert detected is not None
    assert detected.language == "pt-BR"


def test_odd_characters_do_no_harm() -> None:
    assert ENGLISH_OR_GERMAN.detect("\ud800 a \x00 \u202e b") is not None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wo ist der Bahnhof, bitte schön?", "de"),
        ("Where is the railway station?", "en"),
        ("Radio", "en"),  # not certain to be German
        ("Où est la gare, s'il vous plaît ?", "en"),
    ],
)
def test_a_target_that_no_model_reads_is_detected_if_it_is_certain(text: str, language: str) -> None:
    detected = Detector(["en"]).detect(text, "de")
    assert detected is not None
    assert detected.language == language


def test_an_unknown_target_changes_no_detection() -> None:
    detector = Detector(["en", "de"])
    for text in ("Wo ist der Bahnhof?", "Where is it?", "42"):
        assert detector.detect(text, "xx") == detector.detect(text, "de") == detector.detect(text)
