"""Times of day and ranges of them, found again in a translation, and written as its language does.

`7:30 pm`, `17 Uhr`, `9am–5pm`, `9–17 Uhr`, `10:30 CET`, `8 Uhr abends`, `8 in the evening`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import regex

from server.text.items.numbers import locale_of
from server.text.items.spoken_times import SPOKEN_TIME, in_words, spoken_minutes
from server.text.items.words import TO, spelled

Range = tuple[int, int]  # of characters


class Answer(Protocol):
    """A translation in which items are looked for."""

    text: str
    target_language: str

    def first(self, pattern: "regex.Pattern[str]", accept: Callable[[Range], bool] | None = None) -> Range | None:
        """Return the first match that is no part of another item, and is accepted."""
        ...


_GAP = "[ \u00a0\u202f]?"
_MERIDIEM = r"(?:[AaPp]\.[Mm]\.|[AaPp][Mm]\b)"
_HOUR = r"\d{1,2}(?:[:.]\d{2})?"
_ZONES = r"(?:UTC|GMT|CES?T|ME(?:SZ|Z)|[ECMP][SD]T|BST|IST|JST|WES?T|EES?T)(?:[-+−]\d{1,2}(?::?\d{2})?)?(?!\w)"
_PART_OF_DAY = (
    r"(?:in the (?:morning|afternoon|evening)|at night|morgens|früh|vormittags|mittags|nachmittags|abends|nachts)\b"
)

# Up to `12 Uhr` a number is enough: translations write `at five`, `at 5 o'clock` and `5 a.m.` for it.
CLOCK_TIME = (
    rf"(?<![\w:.,/–-]){_HOUR}(?: Uhr| o['’]clock) {_PART_OF_DAY}"
    # Elsewhere, `8 in the morning` may be eight people.
    rf"|(?<=\b(?:about|after|around|at|before|by|from|since|till|until) ){_HOUR} {_PART_OF_DAY}"
    rf"|(?<![\w:.,/-]){_HOUR}(?:{_GAP}{_MERIDIEM})?{_GAP}[-–]{_GAP}{_HOUR}(?:{_GAP}{_MERIDIEM}| Uhr\b)"
    rf"|(?<![\w:.,/-])\d{{1,2}}:\d{{2}}{_GAP}[-–]{_GAP}\d{{1,2}}:\d{{2}}(?![\w:])"
    rf"|(?<![\w:.])\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:{_GAP}{_MERIDIEM}| Uhr\b)?(?: {_ZONES})?(?![\w:])"
    rf"|(?<![\w:.,]){_HOUR}{_GAP}{_MERIDIEM}"
    rf"|(?<![\w:.,/–-])(?:\d{{1,2}}\.\d{{2}}|1[3-9]|2[0-3]) ?Uhr\b|{SPOKEN_TIME}"
)
_ZONE = regex.compile(r" (?![AP]M\b)[A-Z]{2,4}(?:[-+−][\d:]+)?$")
_ZONES_IN_GERMAN = {"CET": "MEZ", "CEST": "MESZ", "EET": "OEZ", "WET": "WEZ"}
_DIGITS = regex.compile(r"\d++")
_LETTER = regex.compile(r"([ap])\.?\s?m", regex.IGNORECASE)
_PART = regex.compile(_PART_OF_DAY, regex.IGNORECASE)
_JOINT = regex.compile(r"\s?[-–—]\s?")


def _ranges(meridiem: str) -> "regex.Pattern[str]":
    named = rf"\d{{1,2}}(?:[:.]\d{{2}})?(?:\s?(?:{meridiem}|Uhr\b|h\b|o['’]clock))?"
    return regex.compile(
        rf"(?<![\d:.,])(?P<first>{named})(?:\s?[-–—]\s?|{TO})(?P<last>{named})(?!\d|[:.]\d)", regex.IGNORECASE
    )


def _times(meridiem: str) -> "regex.Pattern[str]":
    return regex.compile(
        r"(?<![\d:.,])\d{1,2}(?:(?:[:.]|\s?[h]\s?)\d{2}(?::\d{2})?"
        rf"|(?=\s?(?:{meridiem}|Uhr|h\b|o['’]clock|in the|at night)))"
        rf"(?:\s?(?:{meridiem})|(?:\s(?:Uhr|o['’]clock))?\s{_PART_OF_DAY})?(?!\d)",
        regex.IGNORECASE,
    )


# Elsewhere than in English, `am` is a word: "um 15:30 am Montag".
_ENGLISH, _ELSEWHERE = r"[ap]\.?\s?m\b\.?", r"[ap]\.\s?m\b\.?|pm\b"
_RANGES, _TIMES = _ranges(_ENGLISH), _times(_ENGLISH)
_RANGES_ELSEWHERE, _TIMES_ELSEWHERE = _ranges(_ELSEWHERE), _times(_ELSEWHERE)
# Words behind a time with twelve hours for a half of the day.
_HALVES = (
    *("abend", "nachmittag", "morgen", "vormittag", "nacht", "mittag", "früh", "soir", "matin", "après-midi", "tarde"),
    *("mañana", "noche", "sera", "mattin", "pomeriggio", "manhã", "noite"),
    *("afternoon", "evening", "at night"),
)
_OPEN = ("o'clock", "o’clock")
# Behind the hour in words.
_CLOCK = rf"\s(?:(?:o['’]clock|Uhr)(?:\s{_PART_OF_DAY})?|[ap]\.?m\b\.?|{_PART_OF_DAY})"
_SPOKEN = regex.compile(SPOKEN_TIME)
_HALF_DAY = 12 * 3600


def seconds_of(time: str) -> int | None:
    """Return the second of the day that a time means; None if it is no time."""
    hour, minute, second, *_ = *map(int, _DIGITS.findall(time)[:3]), 0, 0, 0
    if hour > 24 or minute > 59 or second > 59 or _DIGITS.search(time) is None:
        return None
    is_second_half = _is_second_half(time, hour)
    hour = hour % 24 if is_second_half is None else hour % 12 + 12 * is_second_half
    return (hour * 60 + minute) * 60 + second


def _is_second_half(time: str, hour: int) -> bool | None:
    """Return whether a time with twelve hours is after noon; None if it has no word for that."""
    if meridiem := _LETTER.search(time):
        return meridiem[1].lower() == "p"
    part = _PART.search(time)
    if part is None or hour > 12:
        return None
    word = part.group().lower()
    if word in ("at night", "nachts"):
        return 6 <= hour < 12
    if word == "mittags":
        return hour != 11
    return word in ("in the afternoon", "in the evening", "nachmittags", "abends")


def localized_time(item: str, target: str) -> str:
    """Return a time or a range as the target language writes it: with 24 hours, and without a word, if it does so.

    `17 Uhr` becomes `17:00` everywhere.
    """
    if (minutes := spoken_minutes(item)) is not None:
        return in_words(minutes, target)
    zone = _ZONE.search(item)
    if zone is not None:
        code = zone.group()[1:]
        german = _ZONES_IN_GERMAN
        names = german if target.partition("-")[0] == "de" else {name: code for code, name in german.items()}
        return f"{localized_time(item[: zone.start()], target)} {names.get(code, code)}"
    times = _times_of(item)
    names_half = _has_meridiem(item) or _PART.search(item) is not None
    if times is None or not ("Uhr" in item or (names_half and _has_24_hours(target))):
        return item
    return "–".join(map(_with_24_hours, times))


def _has_24_hours(language: str) -> bool:
    return "H" in str(locale_of(language).time_formats["short"].pattern)


def _with_24_hours(time: int) -> str:
    seconds = f":{time % 60:02d}" if time % 60 else ""
    return f"{time // 3600}:{time // 60 % 60:02d}{seconds}"


def is_unusual_time(written: str, target: str) -> bool:
    """Return whether a translation has hours alone, `9–17`, or the 12 hours of another language."""
    if _has_meridiem(written):
        return _has_24_hours(target)
    return _JOINT.search(written) is not None and ":" not in written and not any(map(str.isalpha, written))


def find_time(answer: Answer, item: str) -> Range | None:
    """Return where an answer has a time, or a range of them."""
    if (minutes := spoken_minutes(item)) is not None:
        return _find_spoken(answer, minutes)
    zone = _ZONE.search(item)
    wanted = _times_of(item if zone is None else item[: zone.start()])
    if wanted is None:
        return answer.first(regex.compile(rf"(?<!\w){regex.escape(item)}(?!\w)"))
    if len(wanted) == 2:
        ranges = _RANGES if answer.target_language.startswith("en") else _RANGES_ELSEWHERE
        return answer.first(ranges, lambda found: _times_of(answer.text[slice(*found)]) == wanted)
    if zone is not None:
        return _find_with_zone(answer, wanted[0], zone.group()[1:])
    has_part = _PART.search(item) is not None
    has_half = has_part or _has_meridiem(item) or item.endswith("Uhr")
    words_behind = () if not has_half else _HALVES if has_part else (*_HALVES, *_OPEN)
    found = answer.first(_times_in(answer), lambda found: _is_same(answer.text, found, wanted[0], words_behind))
    if found is not None or not (has_part or item.endswith("Uhr")):
        return found
    hour = wanted[0] // 3600
    words = spelled(hour % 12 or 12, answer.target_language, is_ordinal=False)
    if words is None or wanted[0] % 3600:
        return None
    halves = (hour >= 12,) if has_part and hour > 12 else (None, hour >= 12)
    return answer.first(
        regex.compile(words.pattern + _CLOCK, regex.IGNORECASE),
        lambda found: _is_second_half(answer.text[slice(*found)], hour % 12 or 12) in halves,
    )


def _times_in(answer: Answer) -> "regex.Pattern[str]":
    return _TIMES if answer.target_language.startswith("en") else _TIMES_ELSEWHERE


def _find_spoken(answer: Answer, minutes: int) -> Range | None:
    """Find a time of twelve hours, in words or in digits."""
    written = answer.first(_SPOKEN, lambda found: spoken_minutes(answer.text[slice(*found)]) == minutes)

    def is_same(found: Range) -> bool:
        value = seconds_of(answer.text[slice(*found)])
        return value is not None and value % _HALF_DAY == minutes * 60

    return written or answer.first(_times_in(answer), is_same)


def _find_with_zone(answer: Answer, time: int, zone: str) -> Range | None:
    behind = _zone_pattern(zone)

    def is_same(found: Range) -> bool:
        return behind.match(answer.text, found[1]) is not None and _is_same(answer.text, found, time)

    found = answer.first(_times_in(answer), is_same)
    match = None if found is None else behind.match(answer.text, found[1])
    return found if found is None or match is None else (found[0], match.end())


def _is_same(text: str, found: Range, time: int, words_behind: Sequence[str] = ()) -> bool:
    """Return whether a time in a text is the one that is looked for; before these words it may have twelve hours."""
    written = text[slice(*found)]
    value = seconds_of(written)
    if value is None or (_has_meridiem(written) and not _may_have_meridiem(written)):
        return False
    if value == time:
        return True
    behind = text[found[1] : found[1] + 24].lower()
    return value % _HALF_DAY == time % _HALF_DAY and any(word in behind for word in words_behind)


def _times_of(text: str) -> tuple[int, ...] | None:
    """Return the seconds of a time, or of both times of a range; None if one is no time."""
    match = _RANGES.fullmatch(text)
    if match is None:
        time = seconds_of(text)
        return None if time is None else (time,)
    first, last = seconds_of(match["first"]), seconds_of(match["last"])
    if first is None or last is None:
        return None
    if _has_meridiem(match["last"]) and not _has_meridiem(match["first"]) and first <= _HALF_DAY:
        # 10–11 am, 9–5 pm
        half = last - last % _HALF_DAY
        first = first % _HALF_DAY + (half if first % _HALF_DAY < last % _HALF_DAY else _HALF_DAY - half)
    return first, last


def _has_meridiem(time: str) -> bool:
    return _LETTER.search(time) is not None


def _may_have_meridiem(time: str) -> bool:
    return int(_DIGITS.findall(time)[0]) <= 12


def _zone_pattern(zone: str) -> "regex.Pattern[str]":
    """Return a pattern of a time zone behind a time, in either language."""
    codes = {zone, *(code for pair in _ZONES_IN_GERMAN.items() if zone in pair for code in pair)}
    return regex.compile(
        rf"[\s(,]*(?:Uhr\s|[ap]\.?m\.?\s|h\s|heures\s)?\(?(?:{'|'.join(map(regex.escape, codes))})(?!\w)",
        regex.IGNORECASE,
    )
