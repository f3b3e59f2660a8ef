import pytest

from server.documents.text_translation import divide_text

_SENTENCES = "Dr. Brown came at 5 p.m. on Monday. Was he late? He was not!\nAnna waited, i.e. he was alone. "


@pytest.mark.parametrize("max_characters", [40, 200, 900])
def test_a_long_text_is_divided_into_whole_sentences(max_characters: int) -> None:
    text = _SENTENCES * 40
    pieces = divide_text("en", text, max_characters)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= max_characters
    assert {piece.strip()[-1] for piece in pieces} <= set(".?!")
    assert not any(piece.strip().endswith(("Dr.", "p.m.", "i.e.")) for piece in pieces)
    longest = max(map(len, ("Dr. Brown came at 5 p.m. on Monday. ", "Anna waited, i.e. he was alone. ")))
    assert min(map(len, pieces[:-1])) > max_characters - longest


@pytest.mark.parametrize("text", ["word " * 60, "x" * 300, "字" * 300, "a. " * 100, " " * 300, "\n\r\n" * 100])
def test_text_without_sentences_is_divided_without_loss(text: str) -> None:
    pieces = divide_text("de", text, 50)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 50
