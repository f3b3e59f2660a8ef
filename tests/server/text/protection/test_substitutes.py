import pytest

from server.text.items.kinds import ItemKind
from server.text.protection.substitutes import (
    MAX_SUBSTITUTES,
    choose_stand_in,
    choose_substitutes,
    find_substitute,
    find_substitutes,
    substitute_number,
)


def test_names_are_none_of_the_sentence_and_others_in_each_round() -> None:
    first = choose_substitutes(2, "She saw tom.", 0)
    second = choose_substitutes(2, "She saw tom.", 1)
    assert first == ["Maria", "Boston"]
    assert second == ["Boston", "Paris"]
    assert len(choose_substitutes(MAX_SUBSTITUTES, "", 0) or ()) == MAX_SUBSTITUTES
    assert choose_substitutes(MAX_SUBSTITUTES + 1, "", 0) is None
    assert choose_substitutes(2, "Tom Maria Boston Paris John Mary Anna Peter Berlin", 5) is None
    assert choose_substitutes(1, "Tom Maria Boston Paris John Mary Anna Peter Berlin", 7) == ["London"]


@pytest.mark.parametrize(
    ("kind", "item", "expected"),
    [
        (ItemKind.NUMBER, "4711", (ItemKind.NUMBER, "350")),
        (ItemKind.QUANTITY, "15 km", (ItemKind.QUANTITY, "350 km")),
        (ItemKind.PERCENTAGE, "2,5 %", (ItemKind.PERCENTAGE, "350 %")),
        (ItemKind.MONEY, "£15", (ItemKind.MONEY, "350 dollars")),
        (ItemKind.MONEY, "EUR 15", (ItemKind.MONEY, "EUR 350")),
        (ItemKind.NUMBER, "3rd", None),
        (ItemKind.NUMBER, "6.02e23", (ItemKind.NUMBER, "350")),
        (ItemKind.TIME, "7:30", (ItemKind.NUMBER, "350")),
        (ItemKind.CODE, "AB-12", (ItemKind.NUMBER, "350")),
        (ItemKind.URL, "example.org", (ItemKind.URL, "www.example.com")),
        (ItemKind.DATE, "3 March 2024", (ItemKind.DATE, "5 March")),
        (ItemKind.DATE, "May 2024", (ItemKind.DATE, "May 2010")),
        (ItemKind.DATE, "5 March", None),
        (ItemKind.TAG, "#music", None),
    ],
)
def test_a_stand_in_is_of_the_same_kind(kind: ItemKind, item: str, expected: tuple[ItemKind, str] | None) -> None:
    assert choose_stand_in(kind, item, item, (), "en") == expected


def test_a_stand_in_is_neither_in_the_sentence_nor_used() -> None:
    assert choose_stand_in(ItemKind.NUMBER, "7", "7 of 350", ("47",), "en") == (ItemKind.NUMBER, "25")
    assert choose_stand_in(ItemKind.PATH, "/a/b", "", ("/usr/share/files", "/var/log/files"), "en") is None


@pytest.mark.parametrize(
    ("answer", "inflected", "expected"),
    [
        ("so Tom is", False, (3, 6)),
        ("so Toms is", False, None),
        ("so Toms Haus", True, (3, 7)),
        ("so Tom’s Haus", True, (3, 8)),
        ("Tom and Tom", False, None),
        ("Tomate and Tom", False, None),
        ("none", False, None),
    ],
)
def test_a_name_is_there_once_and_as_a_word(answer: str, inflected: bool, expected: tuple[int, int] | None) -> None:
    assert find_substitute(answer, "Tom", is_inflected=inflected) == expected


def test_all_names_are_found_or_none() -> None:
    assert find_substitutes("Tom saw Maria", ["Maria", "Tom"]) == [(8, 13), (0, 3)]
    assert find_substitutes("Tom saw", ["Maria", "Tom"]) is None
    assert substitute_number("350 km") == "350"
    assert substitute_number("km") == "km"
