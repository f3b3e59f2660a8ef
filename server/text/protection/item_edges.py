"""The rest of an item in an answer, beside its number: `th`, `Uhr`, `m2` for `m²`, a misspelt currency."""

from dataclasses import replace
from unicodedata import normalize

import regex

from server.text.items.compounds import CURRENCY_SIGN
from server.text.items.kinds import NUMERIC, ItemKind
from server.text.items.notation import numeral, numero, ordinal, with_currency
from server.text.items.patterns import CURRENCY_WORDS, MAGNITUDES, NUMBERS, NUMERO_SIGN
from server.text.items.rulers import RULERS
from server.text.items.spoken_times import spoken_minutes
from server.text.items.words import currency_pattern
from server.text.items.written_dates import MONTH
from server.text.protection.found_item import FoundItem, Notation
from server.text.protection.substitutes import KNOWN_CURRENCY

# Models that often read times write these behind scores, too.
CLOCK = regex.compile(r"\s(?:Uhr|[ap]\.?m\b(?:\.(?!$))?|o['’]clock)(?!\w)", regex.IGNORECASE)
_BEHIND_TIME = regex.compile(
    r"(?:\s?[ap]\.?|\.)ms?\b(?:\.(?!$))?|\s(?:o['’])?clock\b|(?P<hour> Uhr\b)", regex.IGNORECASE
)
NUMERO = regex.compile(NUMERO_SIGN)
_NUMERO_END = regex.compile(rf"{NUMERO_SIGN}$")
_ENGLISH_ORDINAL = regex.compile(r"(?:st|nd|rd|th)(?!\w)")
_MONTH_BEFORE = regex.compile(rf"(?<!\w){MONTH}\s?$")
_MAX_STARS = 40  # characters, of a hidden card number
_LONGEST_MONTH = 16  # characters
_ABBREVIATED_MONTH_BEFORE = regex.compile(r"(?<!\w)(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?\s$")
_YEAR = regex.compile(r"(?<!\d)\d{4}(?!\d)")
_LIST = regex.compile(r"\W*\d{1,2}\.\s")
_ORDINAL_DOT = regex.compile(r"\.(?=\s\p{L}|,\s)")
_LOST_COMMA = regex.compile(r"\.(?=\s\d)")  # `the 3. 4. and` for `die 3., 4. und`
# What models write for `No.` and `Nr.`; "nein" is their translation of "no".
_NUMERO_BEFORE = regex.compile(r"(?<!\w)(?:nein\.?|no\.|nr\.?|№|n[°º]|n\.\s?º)\s?$", regex.IGNORECASE)
_MONTH_BEHIND = regex.compile(rf"\.?\s?{MONTH}")
_WORD = r"\s?[^\s.,;:!?()\d\"“”„«»-][^\s.,;:!?()\"“”„«»]*"
_NOTHING = regex.compile("(?!)")
_CONSONANTS = regex.compile(r"(?i)[b-df-hj-np-tv-xz]{2,3}")  # no word begins with these units
_SPACE_BEFORE_MARK = regex.compile(r"\s(?=[.,;:!?)])")
_CURRENCY_BEHIND = regex.compile(
    rf"(?:\s(?:Mrd|Mio)\.)?(?:\s(?:US[ -]\w+|{CURRENCY_WORDS})(?!\w)|\.?\s[°\ufffd](?!\w))"
)
_COUNTRY_OF_DOLLARS = regex.compile(r"\p{Lu}++(?=\$)")
_STARS_BEFORE = regex.compile(r"[*•][*•\s-]*$")
_MAGNITUDE_AND_SIGN = regex.compile(
    rf"(?P<magnitude>[ \u00a0\u202f]{MAGNITUDES})?(?:[ \u00a0\u202f]?(?P<sign>[$€£¥]))?(?!\w)"
)
_WORD_BEFORE = regex.compile(r"(\w+) $")
_CLAUSE_END = regex.compile(r"\s*(?:[.,;:!?)]|$)")


def with_edges(found: FoundItem, text: str, sentence: str, notation: Notation) -> FoundItem:
    """Return an item that the model copied from its input `sentence`, with all that belongs to it in an answer."""
    kind = found.item.kind
    is_clocked = kind in (ItemKind.RANGE, ItemKind.DATE) and CLOCK.search(sentence) is None
    if is_clocked and (clock := _clock(CLOCK, text, found.end, notation)):
        return replace(found, end=clock.end())
    found = _with_numero(found, text, sentence, notation)
    if kind is ItemKind.DATE:
        return _with_date(found, text)
    if kind is ItemKind.QUANTITY:
        return with_unit(found, text, sentence)
    if kind is ItemKind.MONEY:
        return _with_currency_sign(found, text, notation)
    if kind is ItemKind.NUMERAL:
        return _with_numeral_stop(found, text, sentence, notation)
    if kind is ItemKind.NUMBER:
        if _is_counter(found, sentence, text) and (suffix := _ENGLISH_ORDINAL.match(text, found.end)):
            return replace(found, end=suffix.end())
        return with_ordinal(_with_german_ordinal(found, text, sentence, notation), text, notation)
    return found


def with_rest(found: FoundItem, text: str, sentence: str, notation: Notation) -> FoundItem:
    """Return an item that was put in the place of a number, with what the model wrote of its other words.

    These are names of months beside a date and the clock behind a time; behind other items, a longer unit or suffix
    (`100 mm` for `100 m`, `4711-Bug` for `4711-B`), and as many words as they have, if a clause ends behind both: `500
    emergency.` for `500 Euro.`.
    """
    item, start, end = found.item, found.start, found.end
    if item.kind is ItemKind.TIME:
        return _with_clock(found, text, notation)
    if item.kind is ItemKind.DATE:
        if (month := _MONTH_BEFORE.search(text, max(start - _LONGEST_MONTH, 0), start)) is not None:
            start = month.start()
        elif (month := _MONTH_BEHIND.match(text, end)) is not None:
            end = month.end()
        found = _with_date(replace(found, start=start, end=end), text)
    if item.kind in (ItemKind.DATE, ItemKind.RANGE) and CLOCK.search(sentence) is None:
        clock = _clock(CLOCK, text, found.end, notation)
        found = found if clock is None else replace(found, end=clock.end())
    if item.kind is ItemKind.DATE:
        return found
    if item.text[0] in "*•" and (stars := _STARS_BEFORE.search(text, max(start - _MAX_STARS, 0), start)) is not None:
        return replace(found, start=stars.start())
    number = NUMBERS.search(item.text)
    rest_of_item = "" if number is None else item.text[number.end() :]
    if (garbled := _garbled(rest_of_item).match(text, end)) is not None:
        return replace(found, end=garbled.end())
    if item.kind is ItemKind.MONEY and (currency := _CURRENCY_BEHIND.match(text, end)) is not None:
        return replace(found, end=currency.end())
    num_words = len(rest_of_item.split())
    if item.kind not in NUMERIC or not num_words or _CLAUSE_END.match(sentence, item.start + len(item.shown)) is None:
        return found
    rest = regex.compile(rf"(?:{_WORD}){{1,{num_words}}}+(?={_CLAUSE_END.pattern})").match(text, end)
    return found if rest is None else replace(found, end=rest.end())


def without_clock(found: FoundItem, text: str, notation: Notation) -> FoundItem:
    """Return a time in words with the `Uhr` that the model wrote behind what stood for it."""
    is_spoken = spoken_minutes(found.item.text) is not None
    clock = _clock(CLOCK, text, found.end, notation) if is_spoken else None
    return found if clock is None else replace(found, end=clock.end())


def with_ordinal(found: FoundItem, text: str, notation: Notation) -> FoundItem:
    """Return a found number with the suffix of an English ordinal that it needs, if it has one: `21st`, not `21th`."""
    suffix = _ENGLISH_ORDINAL.match(text, found.end)
    number = found.output or ""
    if suffix is None or not number.isdecimal() or not (notation.localizes or notation.target.startswith("en")):
        return found
    output, end = ordinal(number, notation.target), suffix.end()
    is_doubled = output.endswith(".") and text[end : end + 1] == "."  # of the sentence
    return replace(found, end=end + is_doubled, output=output)


def with_unit(found: FoundItem, text: str, sentence: str) -> FoundItem:
    """Return a quantity with its unit as the source has it, if the answer has other capitals, or letters behind it."""
    found = _with_small_digits(found, text)
    number = NUMBERS.search(found.item.text)
    unit = "" if number is None else found.item.text[number.end() :].strip()
    repeated = regex.compile(rf"(\s?){regex.escape(unit)}(?:\s{regex.escape(unit)})+(?!\w)").match(text, found.end)
    if unit and repeated is not None:
        return replace(found, end=repeated.end(), output=f"{found.output}{repeated[1]}{unit}")
    written = regex.compile(rf"(\s?){regex.escape(unit)}(?!\w)", regex.IGNORECASE).match(text, found.end)
    if len(unit) < 2 or written is None:
        return found
    consonants = "".join(set(filter(str.isalpha, unit.lower())) - set("aeiou"))
    rest = regex.compile(rf"\s[{consonants}/]{{2,6}}(?!\w)").match(text, written.end()) if consonants else None
    if rest is not None and rest.group() not in sentence:
        return replace(found, end=rest.end(), output=f"{found.output}{written[1]}{unit}")
    if written.group().strip() == unit:
        return found
    return replace(found, end=written.end(), output=f"{found.output}{written[1]}{unit}")


def _with_currency_sign(found: FoundItem, text: str, notation: Notation) -> FoundItem:
    """Return an amount whose currency sign the model left where its source has it, with the sign in its place."""
    sign = CURRENCY_SIGN.search(found.item.text)
    if sign is None or not notation.localizes:
        return found
    if (country := _COUNTRY_OF_DOLLARS.search(found.item.text)) is not None:
        return _with_country(found, text, country.group(), notation)
    before = text[found.start - 1 : found.start] == sign.group()
    behind = _MAGNITUDE_AND_SIGN.match(text, found.end)
    has_sign_behind = behind is not None and behind["sign"] == sign.group()
    if not (before or has_sign_behind):
        return found
    end = found.end if behind is None or not (has_sign_behind or behind["magnitude"]) else behind.end()
    if (name := _CURRENCY_BEHIND.match(text, end)) is not None:  # $60,000 dollars
        end = name.end()
    magnitude = "" if behind is None else behind["magnitude"] or ""
    amount = f"{found.output}{magnitude}"
    return replace(
        found, start=found.start - before, end=end, output=with_currency(amount, sign.group(), notation.target)
    )


def _with_country(found: FoundItem, text: str, country: str, notation: Notation) -> FoundItem:
    """Return an amount of a country's dollars with their sign where the target language has it: `US $ 20`."""
    before = regex.compile(rf"(?<!\w){country}\s?\$\s?$").search(text, max(found.start - 6, 0), found.start)
    if before is None:
        return found
    behind = _MAGNITUDE_AND_SIGN.match(text, found.end)
    magnitude = "" if behind is None else behind["magnitude"] or ""
    output = with_currency(f"{found.output}{magnitude}", f"{country}$", notation.target)
    return replace(found, start=before.start(), end=found.end + len(magnitude), output=output)


def with_currency_name(found: FoundItem, text: str, notation: Notation) -> FoundItem | None:
    """Return an amount in the place of a stand-in, with the name of its currency; None if the answer lacks the name."""
    name = currency_pattern(KNOWN_CURRENCY, notation.target).pattern
    behind = regex.compile(rf"[ \u00a0\u202f-]?(?:{name})\w*", regex.IGNORECASE).match(text, found.end)
    if behind is None:
        return None
    has_sign = text[found.start - 1 : found.start] == KNOWN_CURRENCY  # $350 dollars
    amount = notation.of(ItemKind.MONEY, found.item.text)
    return replace(found, start=found.start - has_sign, end=behind.end(), output=amount)


def _with_date(found: FoundItem, text: str) -> FoundItem:
    """Return a date with what the model wrote of it a second time: `Feb` before it, its year behind it."""
    start, end = found.start, found.end
    if found.item.text[:1].isalpha() and text[start : start + 1].isdecimal():
        month = _ABBREVIATED_MONTH_BEFORE.search(text, max(start - _LONGEST_MONTH, 0), start)
        start = start if month is None else month.start()
    if suffix := _ENGLISH_ORDINAL.match(text, end):
        end = suffix.end()
    year = _YEAR.search(found.item.text)
    if year is not None and (repeated := regex.compile(rf"(?:,?\s{year.group()}(?!\d))+").match(text, end)):
        end = repeated.end()
    return replace(found, start=start, end=end)


def _is_counter(found: FoundItem, sentence: str, text: str) -> bool:
    """Return whether a number stands in brackets of its own: `(2)`."""
    item = found.item
    return sentence[item.start - 1 : item.start] == "(" and sentence[item.start + len(item.shown) :][:1] == ")"


def _with_german_ordinal(found: FoundItem, text: str, sentence: str, notation: Notation) -> FoundItem:
    """Return a number with the full stop of an ordinal that the model copied: `the 3rd place` for `the 3. place`."""
    end, number = found.item.start + len(found.item.shown), found.output or ""
    has_comma = sentence[end : end + 2] == ".,"
    is_list = not has_comma and (found.item.start == 0 or _LIST.match(sentence) is not None)
    is_ordinal = not is_list and notation.source.startswith("de") and _ORDINAL_DOT.match(sentence, end)
    if not (is_ordinal and notation.localizes and number.isdecimal()):
        return found
    comma = "," if has_comma and _LOST_COMMA.match(text, found.end) else ""
    if not comma and not _ORDINAL_DOT.match(text, found.end):
        return found
    return replace(found, end=found.end + 1, output=f"{ordinal(number, notation.target)}{comma}")


def _with_numeral_stop(found: FoundItem, text: str, sentence: str, notation: Notation) -> FoundItem:
    """Return the Roman number of a ruler as the target language writes it: `Charles III.` in German."""
    name = _WORD_BEFORE.search(sentence, 0, found.item.start)
    is_ruler = name is not None and name[1] in RULERS
    if not (is_ruler and notation.localizes and found.output == found.item.shown) or text[found.end :][:1] in (".", ""):
        return found
    return replace(found, output=numeral(found.item.text, notation.target))


def _with_numero(found: FoundItem, text: str, sentence: str, notation: Notation) -> FoundItem:
    """Return a number or a code with the abbreviation of "number" before it as the target language writes it."""
    start = found.item.start
    sign = NUMERO.match(found.item.text) or _NUMERO_END.search(sentence, max(start - 6, 0), start)
    written = None if sign is None else _NUMERO_BEFORE.search(text, max(found.start - 10, 0), found.start)
    if written is None or not notation.localizes:
        return found
    return replace(found, start=written.start(), output=f"{numero(notation.target)}{found.output}")


def with_spaces(found: FoundItem, text: str, sentence: str) -> FoundItem:
    """Return an item with a space between it and a word before it, and without one before a mark behind it."""
    output, end = found.output or "", found.end
    if text[found.start - 1 : found.start].isalnum() and output[:1] != " ":
        output = f" {output}"
    behind = _SPACE_BEFORE_MARK.match(text, end)
    if behind is not None and not sentence[found.item.start + len(found.item.shown) :][:1].isspace():
        end = behind.end()
    return replace(found, end=end, output=output)


def _garbled(rest: str) -> "regex.Pattern[str]":
    """Return a pattern of the rest of an item, behind its number, with letters that follow directly.

    Behind a blank only the same letters and digits, or any behind consonants: `mit` is a word, and not the unit `m`.
    """
    end = regex.escape(rest.strip())
    if not end:
        return _NOTHING
    if rest[0] in "-/":
        return regex.compile(rf"{end}\w{{1,3}}(?!\w)")
    letters = r"\p{Ll}{1,6}" if _CONSONANTS.fullmatch(end) else _NOTHING.pattern
    if end[-1] == "L":
        end = f"(?i:{end})"  # litres, which models read in small letters
    return regex.compile(rf"\s?{end}(?:(?:\d|{end}){{0,3}}|{letters})(?!\w)")


def _clock(pattern: "regex.Pattern[str]", text: str, position: int, notation: Notation) -> "regex.Match[str] | None":
    """Return what stands for a clock at a position of an answer; elsewhere than in English, `am` is a word."""
    match = pattern.match(text, position)
    is_word = match is not None and match.group().strip().lower() == "am" and not notation.target.startswith("en")
    return None if is_word else match


def _with_clock(found: FoundItem, text: str, notation: Notation) -> FoundItem:
    """Return a time with what stands behind it: a meridiem was that of the other time, `Uhr` stands before a zone."""
    behind = _clock(_BEHIND_TIME, text, found.end, notation)
    if behind is None or found.output is None or found.output[-1:].lower() == "m":
        return found
    if not any(map(str.isdecimal, found.output)):
        return replace(found, end=behind.end())
    time, space, zone = found.output.partition(" ")
    return replace(found, end=behind.end(), output=f"{time}{behind['hour'] or ''}{space}{zone}")


def _with_small_digits(found: FoundItem, text: str) -> FoundItem:
    """Return a quantity whose unit has small digits, which tokenizers read as others: `m2` for `m²`."""
    number = NUMBERS.search(found.item.text)
    unit = "" if number is None else found.item.text[number.end() :].strip()
    plain = normalize("NFKC", unit)
    behind = None if plain == unit else regex.compile(rf"\s?{regex.escape(plain)}(?!\w)").match(text, found.end)
    return found if behind is None else replace(found, end=behind.end(), output=f"{found.output} {unit}")
