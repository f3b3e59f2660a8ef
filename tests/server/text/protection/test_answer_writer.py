import pytest

from server.text.protection.answer_writer import AnswerWriter
from server.text.protection.sign_placement import PlacedSign


def _written(answer: str, sign: PlacedSign) -> AnswerWriter:
    writer = AnswerWriter(answer, lambda _, word: word, {})
    writer.write_answer(sign.position)
    writer.write_sign(sign)
    writer.write_answer(len(answer))
    return writer


@pytest.mark.parametrize(
    ("answer", "position", "before", "behind", "expected"),
    [
        ("der Hund", 3, True, True, "der – Hund"),
        ("der Hund", 4, True, True, "der – Hund"),
        ("der Hund", 3, False, False, "der– Hund"),
        ("der Hund", 0, True, True, "– der Hund"),
        ("der Hund", 0, True, False, "–der Hund"),
        ("der Hund", 8, True, True, "der Hund –"),
        ("der Hund.", 8, True, True, "der Hund –."),
        ("der", 1, True, True, "d – er"),
        ("der", 1, False, True, "d– er"),
    ],
)
def test_a_sign_has_the_spaces_that_it_had(
    answer: str, position: int, before: bool, behind: bool, expected: str
) -> None:
    writer = _written(answer, PlacedSign(position, "&ndash;", "–", 1, before, behind))
    assert writer.with_outputs() == expected
    assert writer.outputs == ["&ndash;"]


def test_words_are_found_again_in_the_text_and_in_the_answer() -> None:
    writer = AnswerWriter("der Hund 7 bellt", lambda start, word: word.upper() if start else word, {"bellt": [2, 3]})
    writer.write_answer(9)
    writer.write_protected(10, "&#55;&#55;", "77", 4)
    writer.write_answer(16)
    assert writer.with_outputs() == "der HUND 77 BELLT"
    assert [writer.text[slice(*word)] for word in writer.words] == ["der", "HUND", "\ufffc", "BE", "LLT"]
    assert [writer.answer[slice(*word)] for word in writer.answer_words] == ["der", "Hund", "7", "be", "llt"]
    assert writer.anchors == [(2, 4)]
