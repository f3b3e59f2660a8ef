"""Times in words, which models often get wrong: `half past eight`, `quarter to 9`, `halb neun`, `Viertel nach 7`."""

import regex

_HOURS = {
    "en": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
    "de": ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"],
}
# Before the hour, and the minutes that it adds to that.
_BEFORE = {
    "en": {"half past": 30, "quarter past": 15, "quarter to": -15},
    "de": {"halb": -30, "Viertel nach": 15, "Viertel vor": -15},
}
# Behind a number that is no hour.
_NO_HOURS = r" (?:Stunde|Liter|Meter|Kilo|Tage|of\b|million|Million)"


def _pattern(language: str) -> str:
    names = "|".join(f"(?i:{name})" for name in _BEFORE[language])
    return rf"(?<!\w)(?:{names}) (?:{'|'.join(_HOURS[language])}|1[0-2]|[1-9])(?![\w%]|[.,:/–-]\d|{_NO_HOURS})"


SPOKEN_TIME = "|".join(map(_pattern, _BEFORE))
_SPOKEN_TIME = regex.compile(SPOKEN_TIME)
_HALF_DAY = 12 * 60


def has_spoken_time(text: str) -> bool:
    """Return whether a text has a time in words. Most texts have none of a few letters that each of them has."""
    may_have = "alb " in text or "uarter " in text or "alf past " in text or "iertel " in text
    return may_have and _SPOKEN_TIME.search(text) is not None


def spoken_minutes(text: str) -> int | None:
    """Return the minutes since noon or midnight of a time in words; None if it is none."""
    if _SPOKEN_TIME.fullmatch(text) is None:
        return None
    before, _, hour = text.rpartition(" ")
    for language, minutes_of in _BEFORE.items():
        names = {name.lower(): minutes for name, minutes in minutes_of.items()}
        if before.lower() in names:
            number = int(hour) if hour.isdecimal() else _HOURS[language].index(hour) + 1
            return (number * 60 + names[before.lower()]) % _HALF_DAY
    return None


def in_words(minutes: int, language: str) -> str:
    """Return a time on a quarter of an hour in words; with twelve hours in digits where a language has none here."""
    language = language.partition("-")[0]
    for name, added in _BEFORE.get(language, {}).items():
        hour, rest = divmod((minutes - added) % _HALF_DAY, 60)
        if not rest:
            return f"{name} {_HOURS[language][hour - 1]}"
    return f"{minutes // 60 or 12}:{minutes % 60:02d}"
