import pytest

from server.text.items.quotation_marks import quotation_mark, with_marks_of


@pytest.mark.parametrize(
    ("mark", "opens", "source", "target", "expected"),
    [
        ("“", True, "en", "de", "„"),
        ("”", False, "en-GB", "de", "“"),
        ("“", False, "de", "en", "”"),
        ("„", True, "de", "es", "«"),
        ('"', True, "en", "de", '"'),
        ("«", True, "de", "en", "«"),
        ("“", True, "en", "fr", "“"),
        ("”", True, "sv", "en", "“"),
        ("…", False, "de", "en", "…"),
    ],
)
def test_quotation_marks_are_those_of_the_target(
    mark: str, opens: bool, source: str, target: str, expected: str
) -> None:
    assert quotation_mark(mark, opens, source, target) == expected


def test_all_marks_of_a_text_become_those_of_another_language() -> None:
    assert with_marks_of("en", "„Ja“, sagte er („nein“).", "de") == "“Ja”, sagte er (“nein”)."
    assert with_marks_of("de", "“Yes”, he said.", "en") == "„Yes“, he said."
    assert with_marks_of("de", '"Yes", he said.', "en") == '"Yes", he said.'
