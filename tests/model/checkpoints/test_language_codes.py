import pytest

from model.checkpoints.language_codes import language_code, language_tokens


@pytest.mark.parametrize(
    ("written", "code"),
    [("eng", "en"), ("deu", "de"), ("de", "de"), ("pt_br", "pt-BR"), ("cmn_Hans", "zh-Hans"), ("gmq", "gmq")],
)
def test_a_language_gets_its_shortest_standard_code(written: str, code: str) -> None:
    assert language_code(written) == code


def test_what_is_no_language_stays_as_written() -> None:
    assert language_code("two words") == "two words"


def test_two_tokens_of_one_macro_language_keep_a_code_each() -> None:
    assert language_tokens(["a", ">>ara<<", ">>arb<<", ">><<", "<<", ">>fra<<"]) == {
        "ar": ">>ara<<",
        "arb": ">>arb<<",
        "fr": ">>fra<<",
    }
