import pytest

from server.documents.formats.csv import check_delimiter, detect_delimiter
from server.interface.errors import InvalidRequest


@pytest.mark.parametrize(
    ("table", "delimiter"),
    [
        ("hello\n", ","),
        ("", ","),
        ("a,b\nc,d\n", ","),
        ("a,b\r\rc,d", ","),
        ("a,b\n\n  \n\n\nc,d\n", ","),  # blank lines are no rows
        ("1,5;2,5\n3,5;4,5\n", ";"),  # decimal commas
        ("One, two.\nThree four\nFive six\n", ""),  # prose
        ("a;b\nc\n", ""),  # half of the rows
        ("a;b\nc;d\ne\n", ";"),
        ('"a;b;c",x\n"d;e;f",y\n', ","),  # quoted cells decide nothing
        ('"a;b"\n"c;d"\n', ""),
        ('a;"b, c"\nd;"e"\n', ";"),
        ("a\tb, c\td\ne\tf, g\th\n", "\t"),
        ("a|b c|d\ne|f g|h\n", "|"),
        ("a; b\nc; d\n", ""),  # a blank behind each mark: parts of sentences
        ("key;one, two\nname;three, four\n", ";"),
        ("a,b;c;d\ne,f;g;h\n", ";"),  # more columns, with lists in cells
    ],
)
def test_the_delimiter_makes_rows_of_equal_length_with_clean_cells(table: str, delimiter: str) -> None:
    assert detect_delimiter(table) == delimiter


def test_only_the_first_cells_are_judged_and_all_rows_are_counted() -> None:
    clean, spaced = "a,b\n" * 1001, "a, b\n" * 1001
    assert detect_delimiter(clean + spaced) == ","
    assert detect_delimiter(spaced + clean) == ""
    assert detect_delimiter(clean + "a\n" * 1000) == ""


def test_delimiters_have_names() -> None:
    assert [check_delimiter(name) for name in (",", ";", "|", "\t", "tab", r"\t")] == [",", ";", "|", "\t", "\t", "\t"]
    with pytest.raises(InvalidRequest, match=r"must be one of ',', ';', '\\t', '\|', tab, \\t. Given: '#{20}'"):
        check_delimiter("#" * 30)
