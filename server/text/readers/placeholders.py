"""Placeholders: variables, addresses, quantities and other parts of texts that must not change in translation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import regex

from server.interface.interruption import checkpoint
from server.text.readers.unknown_characters import UnknownCharacters


class Kind(Enum):
    """How a sentence depends on a placeholder."""

    WORD = auto()  # it has the position of a noun or a number
    MARK = auto()  # the sentence is complete without it
    OPENING = auto()  # a tag whose closing follows
    CLOSING = auto()


@dataclass(frozen=True, slots=True)
class Found:
    """A placeholder `text[start:end]`. Tags have a `name`."""

    start: int
    end: int
    kind: Kind
    name: str = ""


_UNITS = (
    r"km/h|m/s|mph|[kcmµμn]?m[²³23]?|in²|ft|yd|lbs?|oz|[kmµ]?g|t|[mcd]?l|[kKMGTP]i?[Bb](?:it|yte)?s?(?:/s|ps)?|[Mkm]?bps|"
    r"[kMG]?Hz|[kMGm]?Wh?|[kmµ]?V|[mk]?Ah?|[kM]?J|kcal|[kMh]?Pa|dB|°\s?[CF]|°|px|pt|dpi|ppm|[mµn]?s|"
    r"USD|EUR|GBP|CHF|JPY|€|£|\$|¥|%|‰"
)
_NUMBER = r"[-+±]?\d++(?:[.,'\u00a0\u202f]\d++)*+"

# Brackets belong to an address in pairs, and punctuation inside it.
_IN_BRACKETS = r"[^\s<>\"“”«»(){}]*+"
_ADDRESS = (
    rf"(?:(?:[.,;:!?\]}}'’…]|\((?!{_IN_BRACKETS}\)))*+"
    rf"(?:\({_IN_BRACKETS}\)|\{{{_IN_BRACKETS}\}}|[^\s<>\"“”«»().,;:!?\]}}'’…]))++"
)
FILE_ENDINGS = (
    r"\.(?:pdf|docx?|xlsx?|pptx?|txt|csv|json|xml|html?|ya?ml|py|js|ts|c|cpp|h|java|sh|exe|zip|gz|png|jpe?g|gif|svg|"
    r"mp[34]|log|ini|toml|md|org|com|net)\b"
)

# Alternatives are tried in this order at each position. Hostile texts must not take long: repetitions with an uncertain
# end are possessive, and no alternative reads far from many positions.
_PATTERNS = (
    # addresses
    rf"(?:(?:https?|ftp|file|wss?|git|ssh)://|www\.|mailto:){_ADDRESS}",
    r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+)++",
    # variables: {{name}} ${NAME} %{name} #{name} {name} {0} {n, plural, one {# file} other {# files}} %(name)s %name%
    # %1$s %d %NAME% $NAME
    r"\{\{[^{}\n]*+\}\}|[$%#@]?\{(?:[^{}\n]++|\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\})*+\}",
    r"(?<![\d%])%[A-Za-z][A-Za-z0-9_]++%(?![\w%])",
    r"%\([\w.]++\)[-+0#]*+\d*+(?:\.\d++)?[a-zA-Z]",
    r"(?<!\d)%(?:\d++\$)?+[-+0#]*+(?:\d++|\*)?+(?:\.\d++)?+(?:hh|h|ll|l|q|L|z|t|j)?[diouxXeEfFgGcCsSapn@](?![a-zA-Z]{2})",
    r"%[A-Z][A-Z0-9_]++%|%%",
    r"\$[A-Za-z_]\w*",
    r"\[\[[^\[\]\n]*+\]\]|__[A-Za-z0-9_]+?__",
    # names for programs: paths, files, options, snake_case, versions
    r"(?<![\w/])(?:~|\.{1,2})?(?:/[\w.@~+-]++){2,}+/?|\b[A-Za-z]:\\[\w\\.-]+",
    rf"\b[\w-]{{1,255}}+{FILE_ENDINGS}",
    r"(?<![\w-])--[a-z][\w-]*",
    r"\b\w[^\W_]*+_\w++",
    r"\bv\d+(?:\.\d+)*(?:-[\w.]+)?\b|\b\d+(?:\.\d+){2,}(?:-[\w.]+)?\b",
    # quantities
    rf"(?<![\w.,]|\d['\u00a0\u202f])(?:[€£$¥]\s?{_NUMBER}|{_NUMBER}[\s\u00a0\u202f]?(?:{_UNITS})(?![\w%]))",
    r"(?<![\w.,])\d++[.,]\d++(?![\w.,]*\d)",
    # people and topics
    r"(?<![\w/&])[@#]\w+(?:[.-]\w+)*",
)
_WORD = regex.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS))
# Tags, character references and escaped line breaks in plain text.
_MARK = regex.compile(
    r"</?(?:(?P<name>[A-Za-z][\w:.-]*+)(?:\s[^<>\n]*+)?|(?P<name>\d++)\s?)/?>|&(?:#\d++|#x[\da-fA-F]++|[A-Za-z]\w++);|\\[nrt](?![a-z]{2})"
)
# \X alone goes back from each letter of a flag to the first of a row of flags.
_GRAPHEME_OR_WORD = regex.compile(r"[\w\p{M}]+|\p{Regional_Indicator}{1,2}+[\p{M}\u200d]*+|\X")

# The longest placeholder: a longer match is rather a mistake in the text than a variable.
_MAX_CHARACTERS = 2000


def find_placeholders(text: str, unknown: UnknownCharacters) -> list[Found]:
    """Return the placeholders of a text, in their order and without overlaps."""
    found = _marks(text)
    words = (Found(*match.span(), Kind.WORD) for match in _WORD.finditer(text))
    found = _merged(found, (word for word in words if word.end - word.start <= _MAX_CHARACTERS))
    return found if unknown.all_known(text) else _merged(found, _lost(text, unknown))


def _marks(text: str) -> list[Found]:
    """Return marks, and tags in pairs; tags that are not properly nested and closed are marks."""
    found: list[Found] = []
    open_: list[int] = []  # indices in `found`
    num_open = Counter[str]()
    for match in _MARK.finditer(text):
        checkpoint()
        name, written = match["name"] or "", match.group()
        kind = Kind.MARK
        if name and written.startswith("</") and num_open[name]:
            index = -1
            while index < 0 or found[index].name != name:
                index = open_.pop()
                num_open[found[index].name] -= 1
            found[index] = replace(found[index], kind=Kind.OPENING)
            kind = Kind.CLOSING
        elif name and not written.startswith("</") and not written.endswith("/>"):
            open_.append(len(found))
            num_open[name] += 1
        found.append(Found(*match.span(), kind, name))
    return found


def _lost(text: str, unknown: UnknownCharacters) -> Iterator[Found]:
    """Yield words and symbols with characters that the model would lose."""
    for match in _GRAPHEME_OR_WORD.finditer(text):
        checkpoint()
        content = match.group()
        if any(map(unknown.is_lost, content)):
            yield Found(*match.span(), Kind.WORD if any(map(str.isalnum, content)) else Kind.MARK)


def _merged(found: Sequence[Found], others: Iterable[Found]) -> list[Found]:
    """Return what was found, with those of the others that do not overlap it; both are in their order."""
    merged: list[Found] = []
    index = 0
    for other in others:
        checkpoint()
        while index < len(found) and found[index].end <= other.start:
            merged.append(found[index])
            index += 1
        if index == len(found) or other.end <= found[index].start:
            merged.append(other)
    return [*merged, *found[index:]]
