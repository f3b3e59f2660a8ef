"""Quotation marks by language, from the delimiters of CLDR; languages with blanks inside of them are left out."""

from collections.abc import Mapping

DOUBLE_MARKS = frozenset("“”„‟«»")
_MARKS: Mapping[str, str] = {
    **dict.fromkeys(("en", "nl", "pt", "da"), "“”"),
    **dict.fromkeys(("de", "cs"), "„“"),
    **dict.fromkeys(("es", "it", "nb", "ru"), "«»"),
    **dict.fromkeys(("pl", "ro"), "„”"),
    **dict.fromkeys(("sv", "fi"), "””"),
}


def quotation_mark(mark: str, opens: bool, source: str, target: str) -> str:
    """Return a quotation mark of the source language as the target language writes it; other signs as they are."""
    theirs, ours = (_MARKS.get(language.partition("-")[0]) for language in (source, target))
    if theirs is None or ours is None or mark != theirs[0 if opens else 1]:
        return mark
    return ours[0 if opens else 1]
