"""Casing of sentences, and words as a vocabulary knows them."""

import pytest

from server.text.protection.capitals import Casing, in_title, is_surely_usual, lower, upper, with_first
from server.text.protection.truecaser import Truecaser

# Words of a vocabulary in the form that it has; all other words cost more by the letter.
_KNOWN = {
    "en": "the a I man dies after car crash in Berlin smoking is not allowed here stop right now open door USA he Tom "
    "important message gates Bill EU sign and what time it live house Apple watch times",
    "de": "das Haus rauchen verboten ist der Mann sie Straße Fußball Mädchen spielen Hund und Tür nicht Sie öffne "
    "Herr klein NATO grünen die gesperrt warten morgen",
}


def _truecaser(language: str) -> Truecaser:
    known = frozenset(_KNOWN[language].split())
    return Truecaser(lambda word: 8.0 if word in known else 8.0 + 2.5 * len(word), language)


@pytest.mark.parametrize(
    ("language", "text", "casing"),
    [
        ("en", "The man is here.", Casing.USUAL),
        ("en", "SMOKING IS NOT ALLOWED", Casing.UPPER),
        ("de", "DIE STRAßE IST GESPERRT", Casing.UPPER),
        ("en", "Smoking Is Not Allowed Here.", Casing.TITLE),
        ("en", "Man Dies after Car Crash in Berlin", Casing.TITLE),
        ("de", "Schritt 2: Warten Sie 30 Sekunden.", Casing.USUAL),
        ("de", "Rauchen Ist Verboten", Casing.TITLE),
        ("de", "Die Straße Ist Gesperrt", Casing.TITLE),
        ("en", "what time is it?", Casing.LOWER),
        ("de", "das haus", Casing.LOWER),
        # Names and headings that are usual as they are.
        ("en", "Bill Gates", Casing.USUAL),
        ("en", "The Times", Casing.USUAL),
        ("en", "Apple Watch", Casing.USUAL),
        ("de", "Herr Klein", Casing.USUAL),
        ("de", "Guten Morgen!", Casing.USUAL),
        ("de", "Guten Morgen Herr Müller", Casing.USUAL),
        ("de", "Die Grünen", Casing.USUAL),
        ("de", "Haus und Hund", Casing.USUAL),
        ("en", "iPhone", Casing.USUAL),
        ("en", "42 houses", Casing.USUAL),
        ("en", "\ufffc is here", Casing.USUAL),
        ("en", "", Casing.USUAL),
    ],
)
def test_casing(language: str, text: str, casing: Casing) -> None:
    assert _truecaser(language).casing(text) is casing


@pytest.mark.parametrize(
    ("language", "text", "read"),
    [
        ("en", "THE USA AND THE EU SIGN", "The USA and the EU sign"),
        ("en", "I'M HERE", "I'm here"),
        ("en", "Man Dies After Car Crash In Berlin", "Man dies after car crash in Berlin"),
        ("en", "what time is it?", "What time is it?"),
        ("en", "i live in berlin.", "I live in Berlin."),
        ("de", "DER MANN IST NICHT IM HAUS.", "Der Mann ist nicht im Haus."),
        ("de", "MÄDCHEN SPIELEN FUSSBALL.", "Mädchen spielen Fußball."),
        ("de", "die straße ist gesperrt.", "Die Straße ist gesperrt."),
        ("de", "NATO IST HIER", "NATO ist hier"),
        # A word or two are no sentence, and get no capital at the beginning.
        ("en", "the house", "the house"),
    ],
)
def test_words_are_read_as_the_vocabulary_knows_them(language: str, text: str, read: str) -> None:
    words = text.replace(".", " .").replace("?", " ?").split(" ")
    forms = _truecaser(language).read(text, words).words
    shown = " ".join(word if form is None else form for word, form in zip(words, forms, strict=True))
    assert shown.replace(" .", ".").replace(" ?", "?") == read


@pytest.mark.parametrize(
    ("words", "shouted"),
    [
        ("He said : STOP RIGHT NOW", {3, 4, 5}),
        ("An IMPORTANT message", {1}),
        ("He is in the USA now", set()),
        ("The EU and the USA sign", set()),
        ("It is NOT here", set()),  # three letters may be an acronym
        ("MASH is here", set()),  # unknown in any form
    ],
)
def test_words_in_all_caps_are_shouted_if_the_vocabulary_has_them_in_small_letters(
    words: str, shouted: set[int]
) -> None:
    assert _truecaser("en").shouted(words.split()) == shouted


def test_a_vocabulary_without_words_leaves_everything_but_all_caps() -> None:
    truecaser = Truecaser(lambda word: 0.0, "de")
    assert [truecaser.casing(text) for text in ("das haus", "Das Ist Ein Haus", "DAS HAUS")] == [
        *(Casing.USUAL, Casing.USUAL, Casing.UPPER)
    ]
    assert list(truecaser.read("DAS HAUS", ["DAS", "HAUS"]).words) == ["Das", "haus"]
    assert truecaser.shouted(["Ein", "HAUS", "IST", "DAS"]) == frozenset()


@pytest.mark.parametrize(
    ("language", "text", "inside"),
    [
        ("de", "Rauchen ist verboten.", "rauchen ist verboten."),
        ("de", "Haus und Hund", "Haus und Hund"),
        ("en", "I live here.", "I live here."),
        ("en", "“The house”", "“the house”"),
        ("en", "USA today", "USA today"),
        ("en", "12 Houses", "12 Houses"),
    ],
)
def test_the_first_word_as_inside_a_sentence(language: str, text: str, inside: str) -> None:
    truecaser = _truecaser(language)
    assert truecaser.first_as_inside(text) == inside


def test_letters_that_languages_change_in_their_own_way() -> None:
    assert (lower("İIK", "tr"), upper("iı", "tr"), lower("IK", "en")) == ("iık", "İI", "ik")
    assert with_first("ijsland", upper, "nl") == "IJsland"
    assert in_title("und", "de", has_small_words=True) == "und"
    assert in_title("und", "de", has_small_words=False) == "Und"


@pytest.mark.parametrize("text", ["The old man sat there.", "Wo ist hier bitte der Bahnhof?", "„Das sagte niemand.“"])
def test_usual_sentences_are_recognised_at_once(text: str) -> None:
    assert is_surely_usual(text)


@pytest.mark.parametrize("text", ["THE OLD MAN", "The Old Man", "the old man", "Tom", ""])
def test_no_other_sentence_is_recognised_at_once(text: str) -> None:
    assert not is_surely_usual(text)
