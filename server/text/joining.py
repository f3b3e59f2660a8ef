"""The blank between two sentences of a translation, by the scripts of both languages."""

from functools import lru_cache

from babel.core import get_global

from server.text.language_tags import primary_language
from server.text.spans import UNSPACED

# Scripts whose sentences have no blank between them (Unicode's names). Thai and Lao have blanks there, and only there.
_SCRIPTS_WITHOUT_BLANKS = frozenset(("Hans", "Hant", "Hani", "Hanb", "Jpan", "Hrkt", "Hira", "Kana", "Bopo"))


@lru_cache(maxsize=1024)
def is_unspaced(language: str) -> bool:
    """Return whether a language is written without blanks between sentences."""
    subtags = [each.title() for each in language.replace("-", "_").split("_")[1:] if len(each) == 4]
    if subtags:
        return subtags[0] in _SCRIPTS_WITHOUT_BLANKS
    likely = str(get_global("likely_subtags").get(primary_language(language), "")).split("_")
    return len(likely) > 1 and likely[1] in _SCRIPTS_WITHOUT_BLANKS


def between(gap: str, before: str, target: str) -> str:
    """Return what stands between the translations of two sentences with this gap; `before` ends the first one."""
    if gap.strip(" \u3000"):
        return gap  # a line break, a tab: structure of the text
    if is_unspaced(target):
        return ""
    return gap if gap or UNSPACED.match(before[-1:]) is None else " "
