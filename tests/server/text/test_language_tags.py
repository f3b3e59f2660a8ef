import pytest
import regex
from babel import Locale
from babel.core import get_global

from server.text import language_tags
from server.text.language_tags import match_language, means_detection, primary_language, scripts_of

SERVED = ["en", "he", "jv", "fil", "nb", "zh", "zh-Hant", "pt", "pt-BR", "de"]


@pytest.mark.parametrize(
    ("language", "spellings"),
    [
        ("he", "iw heb heb_Hebr Hebrew IW"),
        ("jv", "jw jav"),
        ("fil", "tl tgl_Latn Filipino"),
        ("nb", "no nob nn nno_Latn"),
        ("zh", "zh-CN zh-Hans ZH-HANS zh_SG cmn zho_Hans chi Chinese"),
        ("zh-Hant", "zh-TW zh_HK zh-MO ZH-HANT zh_HANT zho_Hant zt cht"),
        ("pt-BR", "pb pt_br PT-BR"),
        ("pt", "por por_Latn pt-PT Portuguese"),
        ("en", "EN en-GB eng eng_Latn English english 英语"),
        ("de", "ger deu German 德语 de-AT"),
    ],
)
def test_each_spelling_of_a_client_finds_its_language(language: str, spellings: str) -> None:
    assert {tag: match_language(tag, SERVED) for tag in spellings.split()} == dict.fromkeys(spellings.split(), language)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("Simplified Chinese", "zh"),
        ("Traditional Chinese", "zh-Hant"),
        ("中文(简体)", "zh"),
        ("中文(繁体)", "zh-Hant"),
        ("Brazilian Portuguese", "pt-BR"),
    ],
)
def test_a_name_of_two_words_finds_its_language(name: str, language: str) -> None:
    assert match_language(name, SERVED) == language


def test_the_same_tag_goes_before_another_spelling() -> None:
    assert match_language("zh-Hans", ["zh", "zh-Hans"]) == "zh-Hans"
    assert match_language("nn", ["nb", "nn"]) == "nn"
    assert match_language("srp_Latn", ["srp_Cyrl", "srp_Latn"]) == "srp_Latn"
    assert match_language("iw", ["iw", "he"]) == "iw"


def test_one_script_serves_where_the_other_is_missing() -> None:
    assert match_language("zh-TW", ["en", "zh"]) == "zh"
    assert match_language("zh", ["en", "zh-Hant"]) == "zh-Hant"


@pytest.mark.parametrize(
    ("tag", "language", "others"),
    [
        ("nb-NO", "nb", ["nn", "no", "en"]),
        ("no", "nb", ["nn"]),
        ("nor", "nb-NO", ["nn-NO"]),
        ("nb", "no", ["nn"]),
        ("nn-NO", "no", ["nb", "nb-NO"]),
        ("pt-PT", "pt", ["pt-BR", "pt-AO"]),
        ("pt-AO", "pt-PT", ["pt-BR"]),
        ("es-MX", "es-419", ["es-ES", "es-US"]),
        ("es-ES", "es", ["es-419", "es-MX"]),
        ("fr-FR", "fr", ["fr-CA"]),
        ("fr-CA", "fr-CA", ["fr", "fr-FR"]),
        ("en-AU", "en-GB", ["en-US"]),
        ("zh-HK", "zh-Hant", ["zh", "zh-CN"]),
        ("sr-Latn-RS", "sr", ["sr-Cyrl"]),
        ("pt-PT", "pt-BR", []),
        ("fr-BE", "fr-FR", ["fr-CA"]),
        ("sr", "sr-Cyrl", ["sr-Latn"]),
        ("sh", "sr-Latn", ["sr-Cyrl", "hr"]),
        ("ps", "pbt_Arab", ["pes_Arab"]),
        ("quy", "qu", ["ay"]),
    ],
)
def test_the_nearest_language_is_found_whatever_the_order(tag: str, language: str, others: list[str]) -> None:
    for languages in ([language, *others], [*others, language], [*others[::-1], language]):
        assert match_language(tag, languages) == language


@pytest.mark.parametrize("tag", ["xx", "Klingonese", "e" * 10_000, "-", "--", "zz-TW", "\ud800"])
def test_unknown_languages_find_nothing(tag: str) -> None:
    assert match_language(tag, SERVED) is None


def test_a_code_of_a_language_is_never_read_as_the_name_of_another() -> None:
    for code in map(str, Locale("en").languages):
        assert primary_language(code) == primary_language(f"{code}-x-private")


def test_clients_request_detection_in_several_ways() -> None:
    assert all(means_detection(tag) for tag in (None, "", " ", "auto", "AUTO", "auto-detect", "und"))
    assert not any(means_detection(tag) for tag in ("en", "automatic", "a"))


def test_scripts_of_languages_have_names_that_patterns_know() -> None:
    languages = {str(key).partition("_")[0] for key in get_global("likely_subtags")}
    scripts = frozenset().union(*map(scripts_of, languages))
    assert len(scripts) > 100
    assert all(regex.compile(rf"\p{{{script}}}") for script in scripts)


def test_a_language_has_all_its_scripts() -> None:
    assert scripts_of("zh-TW") >= {"Hani"}
    assert scripts_of("srp_Cyrl") == scripts_of("sh") == {"Cyrl", "Latn"}
    assert scripts_of("Japanese") == {"Hani", "Hira", "Kana"}
    assert scripts_of("nonsense") == frozenset()


def test_no_name_of_a_language_looks_like_a_code() -> None:
    assert not [name for name in language_tags._tags_of_names() if language_tags._CODE.match(name)]
