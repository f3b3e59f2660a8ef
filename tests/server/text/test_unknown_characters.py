import pytest

from server.text.unknown_characters import UnknownCharacters, readable

_LETTERS = UnknownCharacters("abcfi '\"-.€")


@pytest.mark.parametrize(
    ("character", "is_known", "is_lost"),
    [
        ("a", True, False),
        ("z", False, True),
        ("“", False, False),  # as a straight mark
        ("’", False, False),
        ("–", False, False),
        ("…", True, False),  # NFKC has three full stops
        ("ﬁ", True, False),  # NFKC has both letters
        ("\u00a0", True, False),
        ("\u2003", True, False),
        ("\u00ad", False, False),  # dropped
        ("\U0001f389", False, True),
        ("€", True, False),
    ],
)
def test_characters_are_known_by_themselves_or_by_a_plainer_form(character: str, is_known: bool, is_lost: bool) -> None:
    assert _LETTERS.is_known(character) is is_known
    assert _LETTERS.is_known(character) is is_known  # remembered
    assert _LETTERS.is_lost(character) is is_lost


def test_plainer_forms_are_those_that_the_vocabulary_has() -> None:
    assert _LETTERS.with_plainer_forms("“a” – ‘b’ a\u00adb") == "\"a\" - 'b' ab"
    assert _LETTERS.with_plainer_forms("abc") == "abc"
    assert UnknownCharacters("ab").with_plainer_forms("“a”") == "“a”"
    assert UnknownCharacters("ab“”").with_plainer_forms("“a”") == "“a”"
    assert UnknownCharacters("ab").is_lost("“")


def test_a_sign_that_the_model_loses_is_unknown() -> None:
    letters = UnknownCharacters("abTM€", lost="€™−")
    assert not letters.all_known("a€")
    assert letters.is_lost("€")
    assert letters.is_lost("™")  # although both letters of its NFKC are known
    assert letters.all_known("abTM")
    assert UnknownCharacters("a-−", lost="−").with_plainer_forms("a−a") == "a-a"


def test_a_text_is_known_if_all_its_characters_are() -> None:
    assert _LETTERS.all_known("abc \u00a0fi")
    assert not _LETTERS.all_known("abz")


def test_answers_about_many_characters_are_forgotten() -> None:
    characters = [chr(0x4E00 + offset) for offset in range(10_500)]
    assert not any(map(_LETTERS.is_known, characters))
    assert len(_LETTERS._answers) <= 10_001


@pytest.mark.parametrize(
    ("languages", "is_read", "is_not"),
    [
        (("en", "de"), "abcäß'\u0301", "дα你あ글م"),
        (("eng_Latn", "rus_Cyrl"), "abcд", "α你"),
        (("en", "ja"), "abcあア你", "д글"),
        (("zh_Hant", "ko"), "abc你글", "あд"),
        (("sr", "en"), "abcд", "α"),
        (("en", "tlh"), "abcдα你あ글م", ""),  # of a language that is not known, any script may be
        ((), "abcдα你", ""),
    ],
)
def test_letters_of_scripts_that_no_language_of_the_model_has_are_not_read(
    languages: tuple[str, ...], is_read: str, is_not: str
) -> None:
    assert readable(f"{is_read}{is_not}", languages) == set(is_read)
