"""Grouped numbers in the target language's format, and the forms of a number, for every language."""

import pytest
from babel.localedata import locale_identifiers
from hypothesis import assume, given
from hypothesis import strategies as st

from server.text.language_identifier import load_identifier
from server.text.number_forms import edits_of, forms, separators

TAGS = sorted({*locale_identifiers(), *load_identifier().labels})
tags = st.sampled_from(TAGS)
groupable = st.integers(1000, 10**15)
any_tag = st.one_of(tags, tags.map(lambda tag: tag.replace("_", "-")), st.text(max_size=12))


def _grouped(value: int, language: str) -> str:
    found = separators(language)
    assert found is not None
    return f"{value:,}".replace(",", found[1])


def _are_alike(old: str, new: str) -> bool:
    spaces = "\u00a0\u202f"
    signs = [found[1] for tag in (old, new) if (found := separators(tag)) is not None]
    return len(signs) < 2 or signs[0] == signs[1] or all(sign in spaces for sign in signs)


def _edits(source: str, translation: str, source_language: str, target_language: str) -> list[tuple[int, int, str]]:
    found = edits_of(source, source_language, target_language)
    return [] if found is None else found(translation)


def localized(source: str, translation: str, source_language: str, target_language: str) -> str:
    """Return a translation in which copied grouped numbers have the separators of the target language.

    >>> localized("About 20,000 people", "Rund 20,000 Menschen", "en", "de")
    'Rund 20.000 Menschen'
    """
    parts, end = [], 0
    for start, stop, written in _edits(source, translation, source_language, target_language):
        parts += [translation[end:start], written]
        end = stop
    return "".join([*parts, translation[end:]])


@given(groupable, tags, tags)
def test_a_copied_grouped_number_gets_the_separators_of_the_target(value: int, source: str, target: str) -> None:
    assume(separators(source) and separators(target))
    number = _grouped(value, source)
    wanted = number if _are_alike(source, target) else _grouped(value, target)
    for text in ("{}", "qq {} zz", "({})", "“{}”.", "$ {}, {}", "{}?", "\u200f{}\u200f", "{}人"):
        copied = text.replace("{}", number)
        assert localized(copied, copied, source, target) == text.replace("{}", wanted)
    assert localized(number, number, source, target) == wanted


@given(groupable, groupable, tags, tags)
def test_a_number_that_the_source_does_not_have_so_is_left(value: int, other: int, source: str, target: str) -> None:
    assume(value != other and separators(source))
    translation = f"qq {_grouped(other, source)} zz"
    assert localized(f"qq {_grouped(value, source)} zz", translation, source, target) == translation


@pytest.mark.parametrize(
    "text",
    [
        "v{}", "{}km", "{}.5", "{},5", "1.{}", "{}:30", "12:{}", "{}/2", "2/{}", "#{}", "{}_a", "a_{}", "A-{}",
        "f({})", "{}@qq", "{}-4", "4-{}", "=?{}", "x={}", "a'{}", "{}a",
    ],
)  # fmt: skip
@given(value=groupable)
def test_a_number_that_is_part_of_something_else_is_left(text: str, value: int) -> None:
    written = "qq " + text.format(f"{value:,}") + " zz"
    assert localized(written, written, "en", "de") == written


@given(st.integers(0, 10**9), st.integers(0, 99), tags, tags)
def test_decimals_codes_and_digits_without_groups_are_left(value: int, rest: int, source: str, target: str) -> None:
    decimals = (f"{value}.{rest:02}", f"{value},{rest}", f"1.{rest}", f"0,{rest:03}", f"{rest},{rest:04}")
    for written in (f"{value}", f"${value % 10}", *decimals):
        text = f"qq {written} zz"
        assert localized(text, text, source, target) == text
        assert localized(written, written, source, target) == written


@given(groupable, groupable)
def test_both_ends_of_a_range_are_written_alike(first: int, second: int) -> None:
    text = f"qq {first:,}–{second:,} zz"
    assert localized(text, text, "en", "de") == text.replace(",", ".")


@pytest.mark.parametrize("tag", ["deu_Latn", "de", "de-DE", "DE", "German", "ger", "deu"])
def test_a_language_is_known_by_all_names_that_bundles_use(tag: str) -> None:
    assert localized("20,000", "20,000", "eng_Latn", tag) == "20.000"


@given(any_tag, any_tag, st.text(alphabet="0123456789.,' \u200f٣٬$-qQ人", max_size=40))
def test_no_tag_and_no_text_is_an_error(source: str, target: str, text: str) -> None:
    assert _edits(text, text, source, target) == [] or localized(text, text, source, target) != text
    assert 1 <= len(forms(text, source, target)) <= 4


@pytest.mark.parametrize("tag", ["", "und", "auto", "zxx-nonsense", "tlh", "x" * 1000])
def test_an_unknown_language_means_no_edit(tag: str) -> None:
    assert localized("20,000", "20,000", "en", tag) == localized("20,000", "20,000", tag, "de") == "20,000"
    assert forms("20,000", "en", tag) == ("20,000",)


@given(groupable, tags, tags)
def test_the_forms_of_a_number_are_its_spellings(value: int, source: str, target: str) -> None:
    assume(separators(source) and separators(target))
    number = _grouped(value, source)
    found = forms(number, source, target)
    assert found[0] == number
    assert {_grouped(value, target), str(value)} <= set(found)
    assert all("".join(str(int(sign)) for sign in form if sign.isdecimal()) == str(value) for form in found)


@given(st.integers(0, 999), st.integers(0, 999), tags, tags)
def test_a_decimal_has_the_decimal_separator_of_the_target(whole: int, fraction: int, source: str, target: str) -> None:
    old, new = separators(source), separators(target)
    assume(old is not None and new is not None)
    if old is not None and new is not None:
        assert f"{whole}{new[0]}{fraction}" in forms(f"{whole}{old[0]}{fraction}", source, target)
