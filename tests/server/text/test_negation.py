"""Negations and prohibitions in eight languages."""

import pytest

from server.text.negation import negation_of


@pytest.mark.parametrize(
    ("source", "target", "sentence", "kept", "lost"),
    [
        ("de", "en", "Rauchen verboten", "No smoking", "Smoking"),
        ("de", "en", "Kein Zutritt", "Keep out, do not enter", "Entrance"),
        ("en", "de", "Don't touch!", "Nicht anfassen!", "Anfassen!"),
        ("en", "fr", "Smoking is not allowed", "Il n'est pas permis de fumer", "Il est permis de fumer"),
        ("fr", "en", "Défense d'entrer", "Entry prohibited", "Entry"),
        ("es", "en", "Prohibido fumar", "Smoking is banned", "Smoking"),
        ("it", "de", "Vietato fumare", "Rauchen untersagt", "Rauchen"),
        ("pt", "en", "Não há ninguém", "There is nothing", "There is a man"),
        ("nl", "en", "Verboden toegang", "Access forbidden", "Access"),
        ("pl", "en", "Nie wolno palić", "You must not smoke", "You may smoke"),
    ],
)
def test_a_lost_negation_is_found(source: str, target: str, sentence: str, kept: str, lost: str) -> None:
    negation = negation_of(sentence, source, target)
    assert negation is not None
    assert negation.is_in(kept)
    assert not negation.is_in(lost)
    assert all(negation.is_in(word) for word in negation.words)


def test_a_prohibition_is_not_negated() -> None:
    negation = negation_of("Rauchen verboten", "de", "en")
    assert negation is not None
    assert negation.is_doubled("Smoking is not forbidden")
    assert not negation.is_doubled("Smoking is forbidden")


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("de", "en", "Rauchen erlaubt"),
        ("en", "de", "A note on the door"),
        ("ja", "en", "禁煙"),
        ("en", "ja", "No"),
        ("de", "en", "Das ist ohne Zweifel wahr."),
        ("en", "de", "It is without doubt true."),
        ("en", "de", "Isn't it?"),
        ("en", "de", "The club opened at No 69 Dean Street, and another one in No.30."),
    ],
)
def test_a_sentence_without_negation_or_without_words_for_it(source: str, target: str, sentence: str) -> None:
    assert negation_of(sentence, source, target) is None
