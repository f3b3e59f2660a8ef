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


def opens(text: str, position: int) -> bool:
    """Return whether a mark at a position of a text opens a quotation."""
    return position == 0 or text[position - 1].isspace() or text[position - 1] in "([{"


def with_marks_of(target: str, text: str, source: str) -> str:
    """Return a text of equal length with the quotation marks of another language."""
    if DOUBLE_MARKS.isdisjoint(text):
        return text
    return "".join(
        quotation_mark(each, opens(text, index), source, target) if each in DOUBLE_MARKS else each
        for index, each in enumerate(text)
    )


def quotation_mark(mark: str, is_opening: bool, source: str, target: str) -> str:
    """Return a quotation mark of the source language as the target language writes it; other signs as they are."""
    theirs, ours = (_MARKS.get(language.partition("-")[0]) for language in (source, target))
    if theirs is None or ours is None or mark != theirs[0 if is_opening else 1]:
        return mark
    return ours[0 if is_opening else 1]
