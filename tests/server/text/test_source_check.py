"""Sentences that are kept, and the reasons, with the words of a small vocabulary."""

import pytest

from server.text.code_lines import is_code
from server.text.function_words import function_words
from server.text.source_check import KeepReason, SourceCheck

_COMMON = frozenset(
    (
        "the", "a", "we", "is", "and", "of", "to", "terms", "use", "privacy", "policy", "first", "last", "name",
        "dog", "house", "garden", "bought", "red", "apples", "good", "morning", "der", "die", "das", "ist",
        "und", "haus", "hund", "garten", "guten", "tag", "clutter", "save", "settings",
    )
)  # fmt: skip
_NAMES = frozenset(["Anna", "Schmidt", "Peter", "Miller", "Maria", "Rossi", "Berlin"])


def _cost(word: str) -> float:
    """Return a cost like that of a vocabulary that has common words and some names as one token."""
    if word in _NAMES or word.lower() in _COMMON:
        return 9.0 if word in _NAMES or word.islower() else 13.0
    return 2.5 * len(word) if any(vowel in word for vowel in "aeiouи") else 6.0 * len(word)


ENGLISH = SourceCheck(_cost, "en", "de")
GERMAN = SourceCheck(_cost, "deu_Latn", "eng_Latn")


def _reason(check: SourceCheck, text: str, *, keeps_target: bool = True, keeps_others: bool = True) -> str | None:
    return check.reason(text, text, keeps_target=keeps_target, keeps_others=keeps_others)


@pytest.mark.parametrize(
    "text",
    [
        "We bought a house with a large garden last year.",
        "The terms of use are on this page.",
        "He drove from Frankfurt am Main to Düsseldorf and Köln.",
        "OK",
        "Berlin",
        "iPhone 17",
        "Guten Tag",
        "Angela Merkel",
        "Frankfurt am Main",
        "Terms Of Use, Privacy Policy",
        "First Name, Last Name",
        "no no no no no",
        "Use the rotate() function of the object to turn it.",
    ],
)
def test_ordinary_sentences_names_and_labels_are_translated(text: str) -> None:
    assert _reason(ENGLISH, text) is None


@pytest.mark.parametrize(
    ("check", "text", "reason"),
    [
        (ENGLISH, "Wir haben gestern ein neues Auto gekauft.", KeepReason.ALREADY_IN_TARGET_LANGUAGE),
        (ENGLISH, "DAS IST NICHT MEIN PROBLEM, SONDERN DEINS", KeepReason.ALREADY_IN_TARGET_LANGUAGE),
        (GERMAN, "We bought a new car yesterday.", KeepReason.ALREADY_IN_TARGET_LANGUAGE),
        (ENGLISH, "Nous avons perdu les clés de la voiture.", KeepReason.NOT_IN_SOURCE_LANGUAGE),
        (ENGLISH, "Привет", KeepReason.NOT_IN_SOURCE_LANGUAGE),
        (ENGLISH, "今日はとても暑いですね。", KeepReason.NOT_IN_SOURCE_LANGUAGE),
        (ENGLISH, "for (int i = 0; i < n; i++) {", KeepReason.NOT_IN_SOURCE_LANGUAGE),
        (ENGLISH, "Anna Schmidt, Peter Miller und Maria Rossi", KeepReason.NO_WORDS),
        (ENGLISH, "?!", KeepReason.NO_WORDS),
        (ENGLISH, "sdfkjh sdfkjh skdjfh", KeepReason.UNINTELLIGIBLE),
        (ENGLISH, "house " * 200, KeepReason.UNINTELLIGIBLE),
        (ENGLISH, "Tom " * 6, KeepReason.UNINTELLIGIBLE),
        (ENGLISH, "no " * 5, None),
    ],
)
def test_other_sentences_are_kept_for_a_reason(check: SourceCheck, text: str, reason: KeepReason) -> None:
    assert _reason(check, text) is reason


def test_a_script_of_the_target_language_is_the_target_language() -> None:
    assert _reason(SourceCheck(_cost, "en", "ru"), "Привет") is KeepReason.ALREADY_IN_TARGET_LANGUAGE
    assert _reason(SourceCheck(_cost, "ru", "en"), "Привет") is None


def test_each_switch_translates_its_own_sentences() -> None:
    german, french = "Wir haben gestern ein neues Auto gekauft.", "Nous avons perdu les clés de la voiture."
    assert _reason(ENGLISH, german, keeps_target=False) is None
    assert _reason(ENGLISH, french, keeps_target=False) is KeepReason.NOT_IN_SOURCE_LANGUAGE
    assert _reason(ENGLISH, german, keeps_others=False) is KeepReason.ALREADY_IN_TARGET_LANGUAGE
    assert _reason(ENGLISH, french, keeps_others=False) is None
    assert _reason(ENGLISH, "house " * 200, keeps_others=False) is None


def test_a_vocabulary_without_words_keeps_neither_names_nor_letters() -> None:
    check = SourceCheck(lambda word: 0.0, "en", "de")
    assert _reason(check, "sdfkjh") is None
    assert _reason(check, "Anna Schmidt, Peter Miller") is None
    assert not check.is_doubtful("clutter", -9.0)


def test_one_or_two_words_are_doubtful_if_the_model_is_unsure() -> None:
    assert ENGLISH.is_doubtful("(clutter) …", -3.0)
    assert not ENGLISH.is_doubtful("(clutter) …", -0.5)
    assert not ENGLISH.is_doubtful("OK", -3.0)
    assert not ENGLISH.is_doubtful("Egg", -0.5)  # costs 6 nats a letter
    assert not ENGLISH.is_doubtful("Save the settings of the dog", -3.0)


@pytest.mark.parametrize(
    "line",
    [
        "import numpy as np",
        "return self._x;",
        "def f(x): return x + 1",
        "if (user == null) return;",
        "git push origin main",
        "SELECT name FROM users WHERE id = 3;",
        '<div class="row">text</div>',
        '  "name": "value",',
        "const x = await load(3);",
        "kubectl get pods -n prod",
    ],
)
def test_lines_of_code_are_recognised(line: str) -> None:
    assert is_code(line, function_words("en"))


@pytest.mark.parametrize(
    "line",
    [
        "He said: no; and left (quickly).",
        "It costs $5; he paid $10.",
        "Hello [name],",
        "I love C++ and C#.",
        "if you want, come:",
        "return home.",
        "For example:",
        "git is a program.",
        "The <em> element of the page is new.",
    ],
)
def test_sentences_with_signs_of_code_are_none(line: str) -> None:
    assert not is_code(line, function_words("en"))
