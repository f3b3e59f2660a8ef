import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.http.protocols.deepl.glossaries import SEPARATORS, parse_entries
from server.interface.errors import InvalidRequest

PAIR, BACK = ("en", "de"), ("de", "en")


def test_entries_are_read_from_tsv_and_csv() -> None:
    assert parse_entries("a\tb\r\n\n c \t d\n", "\t", PAIR) == {PAIR: {"a": "b", "c": "d"}}
    for text, separator in (("\ufeffa\tb\n", "\t"), ('\ufeff"a",b\n', ",")):
        assert parse_entries(text, separator, PAIR) == {PAIR: {"a": "b"}}
    assert parse_entries('a,b\n"c, d","say ""e"""\n', ",", PAIR) == {PAIR: {"a": "b", "c, d": 'say "e"'}}


@pytest.mark.parametrize("separator", SEPARATORS.values())
def test_rows_with_languages_belong_to_the_dictionary_of_these(separator: str) -> None:
    rows = [
        ("pot", "Topf", "EN", "DE"),
        ("lid", "Deckel"),
        ("Topf", "pot", "de", "en-GB"),
        ("pan", "Pfanne", "", "", "9"),
    ]
    text = "\n".join(separator.join(row) for row in rows)
    own = {"pot": "Topf", "lid": "Deckel", "pan": "Pfanne"}
    assert parse_entries(text, separator, PAIR, [BACK]) == {PAIR: own, BACK: {"Topf": "pot"}}
    with pytest.raises(InvalidRequest, match=r"entry 3 of the glossary is from de to en\. Must be: en to de$"):
        parse_entries(text, separator, PAIR)


@pytest.mark.parametrize(
    ("text", "separator", "message"),
    [
        ("a", "\t", "entry 1 of the glossary must be a term and its translation"),
        ("a\tb\na\tc", "\t", "entry 2 of the glossary repeats a term"),
        ("a,b,EN,FR", ",", "entry 1 of the glossary is from en to fr. Must be: en to de or de to en"),
    ],
)
def test_invalid_entries_are_rejected(text: str, separator: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_entries(text, separator, PAIR, [BACK])


@given(st.dictionaries(st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.sampled_from([PAIR, BACK, None])))
def test_no_entry_is_lost_and_none_is_in_two_dictionaries(terms: dict[str, tuple[str, str] | None]) -> None:
    text = "".join(",".join((term, term.upper(), *(pair or ()))) + "\n" for term, pair in terms.items())
    found = parse_entries(text, ",", PAIR, [BACK])
    assert {(pair, term) for pair, entries in found.items() for term in entries} == {
        (pair or PAIR, term) for term, pair in terms.items()
    }
