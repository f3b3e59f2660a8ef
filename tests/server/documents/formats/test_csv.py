"""Delimiters of tables, and which cells are translated."""

import csv
import io
import random

import pytest

from server.documents.formats.csv import DELIMITERS, detect_delimiter, read_heading
from server.documents.formats.options import FormatOptions
from server.interface.errors import InvalidDocument
from tests.server.documents.documents import LOUD, SAME, translated

WORDS = ("house", "is", "old", "and", "small", "but", "dog", "train", "late", "green", "river", "people", "bread")
NUM_TABLES = 100


def _sentence(chooser: random.Random, marks: list[str]) -> str:
    words = [chooser.choice(WORDS) for _ in range(chooser.randint(1, 9))]
    marked = [word + (chooser.choice(marks) if marks and chooser.random() < 0.25 else "") for word in words[:-1]]
    return " ".join([*marked, words[-1]]).capitalize() + chooser.choice(["", ".", "!", "?"])


def _cell(chooser: random.Random, kind: str, marks: list[str], point: str) -> str:
    match kind:
        case "number":
            return str(chooser.randint(0, 9999))
        case "price":
            return f"{chooser.random() * 100:.2f}".replace(".", point)
        case "date":
            return chooser.choice(["2024-01-{:02}", "{:02}.01.2024", "01/{:02}/2024"]).format(chooser.randint(1, 28))
        case "time":
            return f"{chooser.randint(0, 23):02}:{chooser.randint(0, 59):02}"
        case "word":
            return chooser.choice(WORDS)
        case "often empty":
            return chooser.choice(["", _sentence(chooser, marks)])
        case "needs quotes":
            return chooser.choice(['He said "no", and left', "two\nlines; and more", "a | b, c; d"])
        case "list":
            return ", ".join(chooser.sample(WORDS, 3))
        case "tags":
            return ",".join(chooser.sample(WORDS, 2))
        case "address":
            return f"http://x.y/?a=1;b=2&c={chooser.randint(0, 9)}"
        case _:
            return _sentence(chooser, marks)


KINDS = (
    "text", "text", "number", "price", "date", "time", "word", "often empty", "needs quotes", "list", "tags", "address",
)  # fmt: skip


def _table(seed: int) -> tuple[str, str]:
    """A random table and its delimiter; every twentieth one is prose, which has none."""
    chooser = random.Random(seed)
    if not seed % 20:
        lines = [_sentence(chooser, [","]) for _ in range(chooser.randint(2, 20))]
        return "\n".join(["One, two.", *lines]) + "\n", ""
    delimiter = chooser.choice(DELIMITERS)
    kinds = ["text", *(chooser.choice(KINDS) for _ in range(chooser.randint(1, 6)))]
    chooser.shuffle(kinds)
    marks = chooser.choice([[","], [",", ";"], [",", " -"], []])
    point = "," if delimiter != "," and chooser.random() < 0.7 else "."
    rows = [
        [_cell(chooser, kind, marks, point) for kind in kinds] for _ in range(chooser.choice([1, 2, 3, 5, 8, 15, 40]))
    ]
    if chooser.random() < 0.5:
        rows.insert(0, [f"{chooser.choice(['id', 'text', 'price'])}{number}" for number in range(len(kinds))])
    stream = io.StringIO()
    quotes_all = chooser.random() < 0.3
    line_end = chooser.choice(["\n", "\r\n"])
    csv.writer(
        stream,
        delimiter=delimiter,
        quoting=csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL,
        lineterminator=line_end,
    ).writerows(rows)
    return stream.getvalue(), delimiter


def test_the_delimiter_of_random_tables_is_found() -> None:
    wrong = []
    for seed in range(NUM_TABLES):
        table, delimiter = _table(seed)
        if (found := detect_delimiter(table)) != delimiter:
            wrong.append((seed, delimiter, found, table[:80]))
    assert not wrong


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("1;The house is old.;3,50\n", "1;THE HOUSE IS OLD.;3,50\n"),
        ("1;The house, is old.\n2;A dog, a cat.\n", "1;THE HOUSE, IS OLD.\n2;A DOG, A CAT.\n"),
        ("a|b, c|1,5\nd|e, f|2,5\n", "A|B, C|1,5\nD|E, F|2,5\n"),
        ("Good morning, Anna.\nHow are you, Ben?\n", "GOOD MORNING, ANNA.\nHOW ARE YOU, BEN?\n"),
        (
            "on,2024-01-31T10:00:00Z,1.5e-3,31-Jan-2024,10:30 pm\n",
            "ON,2024-01-31T10:00:00Z,1.5e-3,31-Jan-2024,10:30 pm\n",
        ),
    ],
)
def test_cells_with_text_are_translated_and_nothing_else(table: str, expected: str) -> None:
    assert translated(table.encode(), ".csv", LOUD).decode() == expected
    assert translated(table.encode(), ".csv", SAME).decode() == table


def test_two_equally_good_readings_are_rejected_with_both() -> None:
    table = b"a;b,c\ne;f,g\n"
    with pytest.raises(
        InvalidDocument, match=r"may be ',' \(2 columns in 2 rows\) or ';' \(2 columns in 2 rows\); set"
    ):
        translated(table, ".csv", SAME)
    assert translated(table, ".csv", LOUD, options=FormatOptions(delimiter=";")) == table.upper()


@pytest.mark.parametrize("first_line", ["sep=;\r\n", '"sep=;"\n'])
def test_a_first_line_with_the_delimiter_is_read_and_stays(first_line: str) -> None:
    rows = "Good morning, all;a, b, c\n"
    assert translated((first_line + rows).encode(), ".csv", LOUD).decode() == first_line + rows.upper()
    assert translated(b"sep=|\nGood|morning", ".csv", LOUD) == b"sep=|\nGOOD|MORNING"


def test_names_for_programs_stay_as_in_other_data_files() -> None:
    table = "key,en\nbtn.save,Save\nfont_size,Size of the font\nhttps://a.b/c,a@b.cd\n"
    loud = table.replace("Save", "SAVE").replace("Size of the font", "SIZE OF THE FONT")
    assert translated(table.encode(), ".csv", LOUD).decode() == loud


@pytest.mark.parametrize(
    ("table", "delimiter"),
    [
        ("", ","),
        ("a,b\n\n  \n\n\nc,d\n", ","),  # blank lines are no rows
        ("1,5;2,5\n3,5;4,5\n", ";"),  # decimal commas
        ("One, two.\nThree four\nFive six\n", ""),  # prose
        ("a;b\nc\n", ""),  # half of the rows
        ('"a;b;c",x\n"d;e;f",y\n', ","),  # quoted cells decide nothing
        ("a; b\nc; d\n", ""),  # a blank behind each mark: parts of sentences
        ("a,b;c;d\ne,f;g;h\n", ";"),  # more columns, with lists in cells
    ],
)
def test_the_delimiter_makes_rows_of_equal_length_with_clean_cells(table: str, delimiter: str) -> None:
    assert detect_delimiter(table) == delimiter


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["Name", "Price"], ["dog", "12"]], True),  # numbers below
        ([["Name", "Price"], ["dog", ""], ["cat", "12 EUR"]], False),
        ([["id", "dog"], ["a", "b"]], True),  # a usual name
        ([["dog", "cat"], ["a", "b"]], False),
        ([["id", "id"], ["a", "1"]], False),  # twice the same
        ([["id", "text"], ["a"], ["b"]], False),  # no row of this length
        ([], False),
    ],
)
def test_a_heading_has_names_above_numbers_or_identifiers(rows: list[list[str]], expected: bool) -> None:
    assert read_heading(rows).is_heading is expected


def test_a_file_of_tabs_has_tabs_whatever_else_is_in_it() -> None:
    table = "a dog; here\ta cat\nb, c\td, e\n"
    assert translated(table.encode(), ".tsv", LOUD).decode() == table.upper()


def test_words_of_a_column_of_keys_stay() -> None:
    table = 'key,text\ngreeting,good day\n"farewell",bye\na long note,note\n'
    loud = 'key,text\ngreeting,GOOD DAY\n"farewell",BYE\nA LONG NOTE,NOTE\n'
    assert translated(table.encode(), ".csv", LOUD).decode() == loud
    chosen = FormatOptions(columns=("key",))
    assert translated(b"key,text\nhi,bye\n", ".csv", LOUD, options=chosen) == b"key,text\nHI,bye\n"
    assert translated(b"key,text\nhi,bye\n", ".csv", LOUD) == b"key,text\nhi,BYE\n"
