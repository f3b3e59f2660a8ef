"""Scripts of letters and of languages."""

import unicodedata
from functools import lru_cache

_LAST_LATIN = "\N{LATIN SMALL LETTER Y WITH STROKE}"  # of the first blocks; punctuation lies behind it as well
_MIN_SHARE = 0.5  # of the letters

# Languages that are not written in Latin letters, by the first words of the names of their letters.
_LANGUAGES = {
    "CYRILLIC": "ru uk be bg mk sr kk ky mn tg tt ba cv os",
    "GREEK": "el",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
    "HEBREW": "he yi iw ji",
    "ARABIC": "ar fa ur ps ug sd ckb dv",
    "DEVANAGARI": "hi mr ne sa",
    "BENGALI": "bn as",
    "GURMUKHI": "pa",
    "GUJARATI": "gu",
    "ORIYA": "or",
    "TAMIL": "ta",
    "TELUGU": "te",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "SINHALA": "si",
    "THAI": "th",
    "LAO": "lo",
    "MYANMAR": "my",
    "KHMER": "km",
    "TIBETAN": "bo dz",
    "ETHIOPIC": "am ti",
    "HANGUL": "ko",
    "CJK": "zh ja ko cmn yue",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
}
_SCRIPTS: dict[str, frozenset[str]] = {}
for _script, _codes in _LANGUAGES.items():
    for _code in _codes.split():
        _SCRIPTS[_code] = _SCRIPTS.get(_code, frozenset()) | {_script}
_LATIN_TOO = frozenset(("sr", "kk", "tt", "mn"))  # written in both
_LATIN = frozenset(("LATIN",))


@lru_cache(maxsize=1024)
def scripts_of(language: str) -> frozenset[str]:
    """Return the scripts of a language, by its code of two letters."""
    return _SCRIPTS.get(language, _LATIN) | (_LATIN if language in _LATIN_TOO else frozenset())


def main_script(text: str) -> str | None:
    """Return the script that at least half of the letters have, other than Latin; None for all other texts."""
    if not text or max(text) <= _LAST_LATIN:
        return None
    counts: dict[str, int] = {}
    num_letters = 0
    for character in text:
        if character.isalpha():
            num_letters += 1
            if character > _LAST_LATIN:
                script = _script_of(character)
                counts[script] = counts.get(script, 0) + 1
    counts.pop("LATIN", None)
    if not counts:
        return None
    most = max(counts, key=lambda each: counts[each])
    return most if counts[most] >= _MIN_SHARE * num_letters else None


@lru_cache(maxsize=4096)
def _script_of(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]
