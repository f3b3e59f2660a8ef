import pytest

from server.documents.formats.csv import Heading, read_heading
from server.interface.errors import InvalidDocument


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["Name", "Price"], ["dog", "12"]], True),  # numbers below
        ([["Name", "Price"], ["dog", ""], ["cat", "12.5 "]], True),
        ([["Name", "Price"], ["dog", ""], ["cat", "12 EUR"]], False),
        ([["Name", "Price"], ["dog", "?"], ["cat", "!"]], False),
        ([["Name", "Price"], ["dog", ""]], False),  # no number at all
        ([["id", "dog"], ["a", "b"]], True),  # a usual name
        ([["dog", "cat"], ["a", "b"]], False),
        ([["dog_name", "cat"], ["a", "b"]], True),
        ([["dogName", "cat"], ["a", "b"]], True),
        ([["Dog", "id"], ["a", "b"]], False),
        ([["id", "id"], ["a", "1"]], False),  # twice the same
        ([["id", ""], ["a", "1"]], False),
        ([["id", "1st"], ["a", "1"]], False),
        ([["id", "x" * 61], ["a", "1"]], False),
        ([["id", "x" * 60], ["a", "1"]], True),
        ([["id"], ["1"]], False),
        ([["id", "text"], ["a"], ["b"]], False),  # no row of this length
        ([["id", "text"], ["a"], ["b", "c"]], True),
        ([["Name", "Price"], ["a"], ["b", "7"]], True),
        ([], False),
        ([["id", "text"]], False),
    ],
)
def test_a_heading_has_names_above_numbers_or_identifiers(rows: list[list[str]], expected: bool) -> None:
    assert read_heading(rows).is_heading is expected


def test_the_first_two_hundred_rows_decide() -> None:
    rows = [["Name", "Price"], *[["a", "1"]] * 199]
    assert read_heading([*rows, ["b", "x"]]).is_heading
    assert not read_heading([*rows[:-1], ["b", "x"]]).is_heading


def test_columns_are_chosen_by_name_or_number() -> None:
    heading = Heading(("id", " Text ", "id", "2"), True)
    assert heading.chosen(["ID", "text"]) == {0, 1}
    assert heading.chosen(["1", "4", "2"]) == {0, 3}  # "2" is a name
    for wrong in ("0", "5", "x", ""):
        with pytest.raises(InvalidDocument, match=r"numbers from 1 to 4, or among id, Text, id, 2\. Given"):
            heading.chosen([wrong])
