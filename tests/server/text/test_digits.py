"""Numbers of a text and its translation: what counts as lost or invented, in all languages, scripts and notations."""

import csv
import random
import re
import unicodedata
from importlib.resources import files

import pytest
from babel.localedata import locale_identifiers
from hypothesis import example, given
from hypothesis import strategies as st

from server.text.digits import NumberCheck, calendar_offsets, compare, has_judged_numbers, number_words
from server.text.language_identifier import load_identifier
from server.text.number_forms import locale_of, separators

NOTHING = NumberCheck()
NAMED = sorted({*locale_identifiers(), *load_identifier().labels})  # what a bundle may name
LANGUAGES = sorted({locale.language for tag in NAMED if (locale := locale_of(tag)) is not None})
TABLES = sorted(language for language in LANGUAGES if number_words(language))
ZEROS = [chr(sign) for sign in range(0x110000) if unicodedata.decimal(chr(sign), -1) == 0]
judged = st.integers(101, 10**9).filter(lambda value: value % 10 != 0)
languages = st.sampled_from(LANGUAGES)
tables = st.sampled_from(TABLES)
any_tag = st.one_of(st.sampled_from(NAMED), st.text(max_size=12))
arrangements = st.text(alphabet="0123456789.,:' \u200f٣७万IVXcm-/", max_size=60)
bordered = st.sampled_from(["xx {} yy", "({})", "{}", "\u200f{}\u200f zz.", "«{}»", "+{} %", "#{}!"])


def _in_digits_of(zero: str, number: str) -> str:
    return "".join(chr(ord(zero) + int(digit)) if digit.isdecimal() else digit for digit in number)


@given(st.integers(0, 10**12), languages, languages, bordered, bordered)
def test_a_number_that_both_texts_have_is_never_named(
    value: int, source: str, target: str, before: str, after: str
) -> None:
    assert compare(before.format(value), after.format(value), source, target) == NOTHING


@given(judged, languages, languages)
def test_a_lost_number_and_an_invented_one_are_named_as_written(value: int, source: str, target: str) -> None:
    expected = (str(value),)
    assert compare(f"qq {value} qq", "qq qq", source, target) == NumberCheck(expected, ())
    assert compare("qq qq", f"qq {value} qq", source, target) == NumberCheck((), expected)


@given(judged, st.integers(1, 99), languages, languages)
def test_a_changed_number_is_missing_and_invented(value: int, change: int, source: str, target: str) -> None:
    other = value * 10 + 1 + change % 9  # another number of digits: no year, hour or unit of the same size
    checked = compare(f"qq {value} qq", f"qq {other} qq", source, target)
    assert checked == NumberCheck((str(value),), (str(other),))


@given(st.integers(1, 9), st.integers(13, 99), st.sampled_from("0123456789"), tables, tables)
def test_a_decimal_that_became_thousands_is_named(
    whole: int, fraction: int, zero: str, source: str, target: str
) -> None:
    _, group = separators(target) or ("", ",")
    decimal = f"{whole}.{fraction}"
    assert compare(f"qqqq {decimal} qqqq", f"qqqq {whole}{group}{fraction}{zero} qqqq", source, target) != NOTHING
    for same in (decimal, decimal.replace(".", ",")):
        assert compare(f"qqqq {decimal} qqqq", f"qqqq {same} qqqq", source, target) == NOTHING


@given(judged, languages, languages)
def test_a_number_written_twice_side_by_side_is_invented_and_one_repeated_elsewhere_is_not(
    value: int, source: str, target: str
) -> None:
    assert compare(f"qq {value} qq", f"qq {value} {value} qq", source, target).invented == (str(value),)
    assert compare(f"qq {value} qq", f"{value} qq qq {value}", source, target) == NOTHING
    assert compare(f"{value} qq qq {value}", f"qq {value} qq", source, target) == NOTHING


@given(st.integers(0, 10**9), st.sampled_from(ZEROS), st.sampled_from(ZEROS), languages, languages)
def test_digits_of_every_script_count_as_their_values(
    value: int, zero: str, other: str, source: str, target: str
) -> None:
    old, new = (_in_digits_of(each, f"qq {value} qq") for each in (zero, other))
    assert compare(old, new, source, target) == NOTHING


@given(
    st.integers(1000, 10**12),
    st.sampled_from([",", ".", " ", "\u00a0", "\u202f", "'", "’", "٬", ""]),
    st.sampled_from([",", ".", " ", "\u00a0", "\u202f", "'", "’", "٬", ""]),
    languages,
)
@example(15_624_999_999, ",", " ", "de")  # two groups alike
def test_separators_of_thousands_do_not_matter(value: int, old: str, new: str, language: str) -> None:
    first, second = (f"qq {value:,} qq".replace(",", separator) for separator in (old, new))
    assert compare(first, second, language, "en") == NOTHING
    assert compare(first, second, "en", language) == NOTHING


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8), st.randoms(use_true_random=False), languages)
def test_the_order_of_numbers_does_not_matter(values: list[int], chance: random.Random, language: str) -> None:
    shuffled = chance.sample(values, len(values))
    first, second = (" qq ".join(map(str, each)) for each in (values, shuffled))
    assert compare(first, second, language, "en") == NOTHING


@given(st.integers(0, 12), languages, languages)
def test_numbers_up_to_twelve_are_not_judged(value: int, source: str, target: str) -> None:
    assert compare(f"qq {value} qq", "qq qq", source, target) == NOTHING
    assert compare("qq qq", f"qq {value} qq", source, target) == NOTHING


@given(st.integers(13, 99), st.sampled_from(sorted(set(LANGUAGES) - set(TABLES))))
def test_a_language_without_number_words_may_have_short_numbers_in_words(value: int, language: str) -> None:
    assert compare(f"qq {value} qq", "qq qq", "en", language) == NOTHING


@given(st.integers(13, 99), tables)
def test_a_language_with_number_words_must_have_short_numbers(value: int, language: str) -> None:
    assert compare(f"qq {value} qq", "", "en", language) == NumberCheck((str(value),), ())


@given(st.data(), tables)
def test_the_words_of_a_number_stand_for_it(data: st.DataObject, language: str) -> None:
    value = data.draw(st.sampled_from(sorted(each for each in number_words(language) if 13 <= each <= 1000)))
    form = data.draw(st.sampled_from(number_words(language)[value]))
    assert compare(f"qq {value} qq", " ".join(form), "en", language) == NOTHING
    assert compare(" ".join(form), f"qq {value} qq", language, "en") == NOTHING


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("zh 人口从120万增长到475万。", "ar نما عدد السكان من 1.2 مليون إلى 4.75 مليون."),
        ("ja 彼は1299.99ユーロを払った。", "fi Hän maksoi 1 299,99 euroa."),
        ("ru Компания заработала 3,4 млрд долларов.", "es La empresa ganó 3400 millones de dólares."),
        ("fi Hän syntyi 1800-luvulla.", "ar وُلد في القرن التاسع عشر."),
        ("tr 48 saatte yüz binden fazla kişi imzaladı.", "en Over 100,000 people signed within 48 hours."),
        ("en They are in the last 16 within two weeks.", "de Binnen 14 Tagen sind sie im Achtelfinale."),
        ("zh 公交车8点45分出发。", "de Der Bus fährt um Viertel vor neun."),
    ],
)
def test_what_translators_write_is_not_named(old: str, new: str) -> None:
    (source, text), (target, translation) = old.split(" ", 1), new.split(" ", 1)
    assert compare(text, translation, source, target) == NOTHING
    assert compare(translation, text, target, source) == NOTHING


@given(st.integers(13, 999), st.sampled_from([3, 6, 9]), languages)
def test_a_power_of_ten_from_a_thousand_may_be_a_word(value: int, power: int, language: str) -> None:
    assert compare(f"qq {value * 10**power} qq", f"qq {value} zz qq", language, language) == NOTHING


@given(st.integers(13, 99).filter(lambda value: value % 10 != 0))
def test_ten_times_a_number_is_another_number(value: int) -> None:
    assert compare(f"qq {value}1 qq", f"qq {value}10 qq", "en", "de") == NumberCheck((f"{value}1",), (f"{value}10",))


def test_han_numerals_are_read_with_digits_and_without() -> None:
    numerals = {"三十五": 35, "一千二百": 1200, "二〇一九": 2019, "1億2,500万": 125_000_000, "3.5亿": 350_000_000}
    for numeral, value in numerals.items():
        assert compare(f"qq {value} qq", f"约{numeral}人", "en", "zh") == NOTHING, numeral
        assert compare(f"约{numeral}人", f"qq {value} qq", "ja", "en") == NOTHING, numeral
    assert compare("qq 36 qq", "约三十五人", "en", "zh").missing == ("36",)


@given(st.integers(13, 21))
def test_a_century_or_a_ruler_may_have_a_roman_numeral(value: int) -> None:
    tens, ones = divmod(value, 10)
    numeral = "X" * tens + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[ones]
    for written in (f"qq {numeral} qq", f"qq {numeral}e qq"):
        assert compare(f"qq {value}. qq", written, "de", "fr") == NOTHING
        assert compare(written, f"qq {value} qq", "fr", "en") == NOTHING


@given(st.integers(13, 23), st.integers(0, 59), st.sampled_from([":", "."]))
def test_hours_of_both_clocks_are_the_same(hour: int, minute: int, separator: str) -> None:
    texts = f"qq {hour}:{minute:02} qq", f"qq {hour - 12}{separator}{minute:02} pm qq"
    assert compare(*texts, "de", "en") == NOTHING
    assert compare(*texts[::-1], "en", "de") == NOTHING


@given(st.integers(1900, 2099), st.data())
def test_years_may_be_those_of_the_calendar_of_a_language(year: int, data: st.DataObject) -> None:
    language = data.draw(st.sampled_from(sorted(each for each in LANGUAGES if calendar_offsets(each))))
    other = year + data.draw(st.sampled_from(sorted(calendar_offsets(language))))
    if other > 0:
        assert compare(f"qq {year} qq", f"qq {other} qq", "en", language) == NOTHING
        assert compare(f"qq {other} qq", f"qq {year} qq", language, "en") == NOTHING


@given(st.integers(1913, 1999))
def test_years_may_be_written_in_short(year: int) -> None:
    assert compare(f"qq {year}s qq", f"qq {year % 100}er qq", "en", "de") == NOTHING
    assert compare(f"qq {year % 100}er qq", f"qq {year}s qq", "de", "en") == NOTHING


@given(st.integers(13, 31), st.integers(1, 12), st.integers(1950, 2049))
def test_dates_may_be_in_another_order_with_a_name_for_the_month(day: int, month: int, year: int) -> None:
    forms = [f"{day}.{month}.{year}", f"{month}/{day}/{year}", f"{year}-{month:02}-{day}", f"qq {day}, {year}"]
    for old in forms:
        for new in forms:
            assert compare(f"qq {old} qq", f"qq {new} qq", "de", "en") == NOTHING


@pytest.mark.parametrize(
    ("distance", "unit", "factor"), [(45, "miles", 1.609), (550, "pounds", 0.4536), (90, "feet", 0.3048)]
)
def test_a_quantity_may_be_converted_to_metric_units(distance: int, unit: str, factor: float) -> None:
    metric = round(distance * factor)
    assert compare(f"qq {distance} {unit} qq", f"qq {metric} qq", "en", "de") == NOTHING
    assert compare(f"qq {distance} qq", f"qq {metric} qq", "en", "de").missing == (str(distance),)


@given(
    st.text(max_size=40),
    st.text(max_size=40),
    any_tag,
    any_tag,
)
def test_no_text_and_no_tag_is_an_error(source: str, translation: str, old: str, new: str) -> None:
    compare(source, translation, old, new)


@given(
    arrangements,
    arrangements,
    languages,
)
def test_no_arrangement_of_digits_and_signs_is_an_error(source: str, translation: str, language: str) -> None:
    compare(source, translation, language, "en")
    compare(source, translation, "en", language)
    assert compare(source, source, language, "en") == NOTHING


@pytest.mark.parametrize("tag", ["", "und", "auto", "zxx-nonsense", "x", "tlh", "en-" + "x" * 100])
def test_an_unknown_language_is_not_judged(tag: str) -> None:
    assert compare("qq 12345 qq", "qq", "en", tag) == NOTHING
    assert compare("qq", "qq 12345 qq", tag, "en") == NOTHING


def test_very_long_numbers_and_lists_are_not_judged() -> None:
    assert compare("9" * 100_000, "8" * 100_000, "en", "ko") == NOTHING
    assert compare(" ".join(map(str, range(13, 5000))), "1", "en", "ja") == NOTHING


@given(st.text(max_size=30))
def test_a_text_has_judged_numbers_if_it_has_a_digit(text: str) -> None:
    assert has_judged_numbers(text) == any(map(str.isdecimal, text))


@pytest.mark.parametrize("name", ["number_words.tsv", "calendars.tsv", "units.tsv"])
def test_a_table_has_a_head_and_sorted_rows_without_empty_cells(name: str) -> None:
    with (files("server.text") / "data" / name).open(encoding="utf-8") as file:
        head, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    assert head[0] == "language"
    assert all(len(row) == len(head) and all(cell.strip() for cell in row) for row in rows)
    languages_of_rows = [row[0] for row in rows]
    assert languages_of_rows == sorted(languages_of_rows)
    assert all(re.fullmatch("[a-z]{2,3}", row[0]) for row in rows)
