import pytest

from server.text.readers.units import Document, ProtectedSpan, Tag, Unit
from server.text.segmentation.sentences import Segment
from server.translation.reading import SegmentedText, Sentence


def _unit(text: str) -> Unit:
    return Unit(text, text, (), (), str)


def _sentence(unit: Unit, text: str, indent: int = 0) -> Sentence:
    start = unit.text.index(text)
    return Sentence(0, unit, start, start + len(text), indent)


@pytest.mark.parametrize("indent", [0, 1])
def test_a_sentence_is_streamed_with_the_white_space_up_to_the_next(indent: int) -> None:
    first, second = _unit(" A. B.\n"), _unit("C.")
    document: Document = ["--", first, "\n\n", second, "end"]
    sentences = [_sentence(first, "A."), _sentence(first, "B.", indent), _sentence(second, "C.")]
    text = SegmentedText(document, "de", {1: sentences[:2], 3: sentences[2:]})
    found = list(text.streamed())
    assert "".join(each.before + each.text + each.after for each, _ in found) == "-- A. B.\n\n\nC.end"
    assert [sentence for _, sentence in found] == [None, *sentences]
    between = ("", " ") if indent else (" ", "")
    assert [segment for segment, _ in found] == [
        Segment("-- ", "", ""),
        Segment("", "A.", between[0]),
        Segment(between[1], "B.", "\n\n\n"),
        Segment("", "C.", "end"),
    ]


def test_a_text_without_sentences_is_final_as_it_is() -> None:
    text = SegmentedText(["12", _unit("3"), "\n"], "de")
    assert list(text.streamed()) == [(Segment("123\n", "", ""), None)]
    assert list(text.sentences) == []


def test_texts_with_tags_are_not_streamed_and_those_with_spans_are() -> None:
    tagged = Unit("<b>a</b>", "a", (Tag(0, 1, "<b>", "</b>"),), (), str)
    protected = Unit("a 7", "a 7", (), (ProtectedSpan(2, 3, "7"),), str)
    assert not SegmentedText(["x", tagged], "de").is_streamable
    assert SegmentedText(["x", protected], "de").is_streamable
