import pytest

from model.checkpoints.language_codes import language_code, language_codes


@pytest.mark.parametrize(
    ("written", "code"),
    [("eng", "en"), ("deu", "de"), ("en_XX", "en"), ("pt_br", "pt-BR"), ("cmn_Hans", "zh-Hans"), ("gmq", "gmq")],
)
def test_a_language_gets_its_shortest_standard_code(written: str, code: str) -> None:
    assert language_code(written) == code


def test_a_language_has_its_short_code_unless_the_model_has_several_of_it() -> None:
    nllb = [
        "ace_Arab",
        "ace_Latn",
        "aka_Latn",
        "twi_Latn",
        "arb_Arab",
        "ary_Arab",
        "azj_Latn",
        "azb_Arab",
        "deu_Latn",
        "zho_Hans",
        "zho_Hant",
    ]
    assert language_codes(nllb) == {
        "ace_Arab": "ace-Arab",
        "ace_Latn": "ace",
        "aka_Latn": "ak",
        "twi_Latn": "tw",
        "arb_Arab": "ar",
        "ary_Arab": "ary",
        "azj_Latn": "az",
        "azb_Arab": "azb",
        "deu_Latn": "de",
        "zho_Hans": "zh",
        "zho_Hant": "zh-Hant",
    }
    assert language_codes(["en_XX", "de_DE", "zh_CN", "pt_XX"]) == {
        "en_XX": "en",
        "de_DE": "de",
        "zh_CN": "zh",
        "pt_XX": "pt",
    }


def test_no_two_languages_of_a_model_have_one_code() -> None:
    written = ["zh", "zho_Hans", "cmn", "zh_CN", "not a code", "xx"]
    codes = language_codes(written)
    assert len({*codes.values()}) == len(written)
    assert codes["not a code"] == "not a code"
