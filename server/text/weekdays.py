"""Abbreviated days of the week beside dates, times and parts of the day: `Mo., 5. Mai`, `Sat. at 4`, `on Fri.`."""

from collections.abc import Mapping

_ENGLISH_DAY = r"(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\."
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_PARTS_OF_DAY = "morning|noon|afternoon|evening|night"

# By language, a pattern with their full stops. `Fr. 20` are francs, and `the Sun.` is a star.
WEEKDAYS: Mapping[str, str] = {
    "de": r"(?:Mo|Di|Mi|Do|Sa|So)\.(?=,?\s+(?:de[nm]\s+)?\d)|Fr\.(?=(?:,|,?\s+de[nm])\s+\d)",
    "en": rf"(?<!\b[Tt]he )(?<![-–])(?:{_ENGLISH_DAY}"
    rf"(?=,?\s+(?:\d|(?:at|from)\s\d|to\s{_ENGLISH_DAY}|{_MONTHS}|{_PARTS_OF_DAY}))"
    rf"|(?<=\b[Oo]n ){_ENGLISH_DAY}(?=[,;:)]|\s+[a-z(]))",
}
# By language and the first two letters, which are enough.
_NAMES: Mapping[str, str] = {
    "de": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
    "en": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
}
WEEKDAY_ENDS: Mapping[str, tuple[str, ...]] = {
    "de": tuple(f"{name[:2]}." for name in _NAMES["de"].split()),
    "en": (*(f"{name[:3]}." for name in _NAMES["en"].split()), "Tues.", "Thur.", "Thurs."),
}

# Before a date: `Di., 6.5.`
BEFORE_DATES: Mapping[str, tuple[str, ...]] = {
    "de": tuple(f"{day}, " for name in _NAMES["de"].split() for day in (name, f"{name[:2]}.", name[:2])),
}


def weekday(written: str, language: str) -> str:
    """Return the name of an abbreviated day of the week."""
    return next(name for name in _NAMES[language].split() if name.startswith(written[:2]))
