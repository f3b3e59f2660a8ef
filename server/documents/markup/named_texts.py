"""Texts of cells that formulas of a spreadsheet name: translated, they would no longer be found."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex

_LITERAL = r'"(?P<{}>(?:[^"]|"")*+)"'
_COMPARED = regex.compile(rf"(?:[=<>]\s*+{_LITERAL.format('right')}|{_LITERAL.format('left')}\s*+[=<>])")
_ANY_LITERAL = regex.compile(_LITERAL.format("any"))
_SEARCHING = regex.compile(r"(?:COUNT|SUM|AVERAGE|MAX|MIN)IFS?\(|MATCH\(|LOOKUP\(|SWITCH\(", regex.IGNORECASE)
# A criterion of COUNTIF and the like: an operator, and a text in which * and ? stand for any characters.
_OPERATOR = regex.compile(r"\A\s*+(?:<>|[<>]?=|[<>])")
_WILDCARD = regex.compile(r"~[*?~]|[*?]")
_MAX_PATTERNS = 200


@dataclass(frozen=True, slots=True)
class NamedTexts:
    """Texts that something in a spreadsheet names, without regard to case and white space at their ends."""

    texts: frozenset[str]
    pattern: "regex.Pattern[str] | None" = None

    @classmethod
    def of(cls, texts: Iterable[str], criteria: Iterable[str]) -> "NamedTexts":
        """Return the texts, and those that match criteria of formulas."""
        names = set(map(_naming, criteria))
        patterns = [each for each in sorted(names) if _WILDCARD.search(each) is not None and each.strip("*? ")]
        pattern = "|".join(map(_pattern, patterns[:_MAX_PATTERNS]))
        return cls(
            frozenset(names | set(map(_naming, texts))), regex.compile(pattern, regex.DOTALL) if pattern else None
        )

    def __contains__(self, text: str) -> bool:
        """Return whether a text of a cell is one of them."""
        name = _naming(text)
        return name in self.texts or (self.pattern is not None and self.pattern.fullmatch(name) is not None)


def compared_texts(formula: str, *, is_condition: bool = False) -> Iterator[str]:
    """Yield the texts that a formula compares with cells, or looks up in them; all of its texts in a condition."""
    is_search = is_condition or _SEARCHING.search(formula) is not None
    for literal in (_ANY_LITERAL if is_search else _COMPARED).finditer(formula):
        text = next(each for each in literal.groups() if each is not None).replace('""', '"')
        yield _OPERATOR.sub("", text) if is_search else text


def _naming(text: str) -> str:
    """Return a text as formulas compare it."""
    return text.strip().casefold()


def _pattern(criterion: str) -> str:
    """Return the regular expression of a text with wildcards; it takes the first place of each part, and no other."""
    parts, position = [""], 0
    for mark in _WILDCARD.finditer(criterion):
        parts[-1] += regex.escape(criterion[position : mark.start()])
        if mark[0] == "*":
            parts.append("")
        else:
            parts[-1] += "." if mark[0] == "?" else regex.escape(mark[0][1])
        position = mark.end()
    parts[-1] += regex.escape(criterion[position:])
    first, *others = parts
    if not others:
        return first
    return f"{first}{''.join(f'(?>.*?{part})' for part in others[:-1])}.*{others[-1]}"
