import pytest

from model.checkpoints.language_codes import language_code


@pytest.mark.parametrize(
    ("written", "code"),
    [("eng", "en"), ("deu", "de"), ("de", "de"), ("pt_br", "pt-BR"), ("cmn_Hans", "zh-Hans"), ("gmq", "gmq")],
)
def test_a_language_gets_its_shortest_standard_code(written: str, code: str) -> None:
    assert language_code(written) == code


def test_what_is_no_language_stays_as_written() -> None:
    assert language_code("two words") == "two words"
