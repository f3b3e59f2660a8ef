"""Gettext catalogues and templates: every message without a translation gets one. Existing translations stay."""

import gettext
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from typing import BinaryIO

import polib
import regex

from server.documents.fragment import AllFragments, CountedRewrite, DocumentCounts
from server.documents.input.encoding import codec_of, read_part
from server.documents.input.limits import FileLimits
from server.interface.errors import InvalidDocument

_CHARSET = regex.compile(r"(Content-Type:[^\"\n]{0,100}?charset=)([\w.:-]+)")
_TOKEN = regex.compile(
    r"(?P<comment>#[^\r\n]*+)|(?P<keyword>msgctxt|msgid_plural|msgid|msgstr)\s*+(?:\[\s*+(?P<form>[0-9]{1,3})\s*+\])?+"
    r"|\"(?P<string>(?:[^\"\\\r\n]++|\\[^\r\n])*+)\"|(?P<domain>domain)(?=\s)|(?P<mistake>[^\s\ufeff])"
)
_PLURAL_FORMS = regex.compile(r"Plural-Forms:[^\"\\]*+(?:\\n)?+")
_RULE = regex.compile(r"nplurals\s*+=\s*+([0-9]{1,3})\s*+;\s*+plural\s*+=\s*+([^;\\]++)")
_LANGUAGE = regex.compile(r"Language:([ \t]*+)([\w@.-]*+)")
_MAX_FORMS = 10
_NUMBERS = range(1000)  # for which a rule is tried: all known ones repeat after 100
_GERMANIC = (2, "n != 1")  # what gettext takes without a rule

# Directives of printf and its relatives, and of formats with braces: programs put values there.
_PRINTF = regex.compile(
    r"%(?:(?:\([^()]*+\)|\[\d++\]|\d++(?:\$|:(?!\s)))?+[-+ #0'I]*+(?:\d++|\*(?:\d++\$)?+)?+(?:\.(?:\d++|\*)?+)?+"
    r"(?:hh|h|ll|l|L|q|j|z|t)?+[A-Za-z@%<>]|L?\d++|\|[^|\s]++\|)"
)
_TILDES = regex.compile(r"~(?:[-+]?+\d++|'.|[,#:@V])*+[^\s\d]")
_BRACES = regex.compile(r"\{\{|\}\}|\{[^{}\s]*+\}")
# Formats whose directives are not those of printf.
_OTHER_DIRECTIVES = {
    **dict.fromkeys(("c++", "csharp", "java", "perl-brace", "python-brace", "rust"), _BRACES),
    **dict.fromkeys(("lisp", "scheme"), _TILDES),
}
_NUMBERED_FORMATS = ("c", "objc", "php")  # whose directives may be numbered: %2$s


@dataclass(slots=True)
class _Field:
    """A string or several that are one, with the place from the first to the last of them."""

    begin: int
    end: int
    form: int | None = None
    text: str = ""


@dataclass(slots=True)
class _Entry:
    """A message. `flags` are those of its comments."""

    flags: set[str] = field(default_factory=set)
    message: _Field | None = None
    plural: _Field | None = None
    translations: list[_Field] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Plural forms: their number, the form of 1, and whether no other number has it."""

    num_forms: int
    form_of_one: int = 0
    is_for_one_alone: bool = True


@dataclass(frozen=True, slots=True)
class _Gap:
    """A translation that is missing: its place, what stands in front of it if it is new, and the text to translate."""

    begin: int
    end: int
    keyword: str
    text: str
    flags: frozenset[str]


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, language: str | None = None) -> CountedRewrite:
    """Rewrite the messages without a translation. All other characters stay.

    A form of a plural is made from the plural text, but the form of 1 from the singular if no other number has it, or
    if both texts have the same directives. Forms that are missing are written. A message of which a translation lost a
    directive stays: programs would fail with it. A catalogue without a rule for plurals gets that of its language or of
    `language`.
    """
    content = read_part(source, limits)
    declared = _CHARSET.search(content.decode("latin-1"))
    known = codec_of(declared[2]) if declared else None
    try:
        text = content.decode(known or "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidDocument(f"the catalogue cannot be read: it is not {error.encoding}: {error.reason}") from error
    header, entries = _read(text)
    open_entries = [entry for entry in entries if "fuzzy" not in entry.flags]
    rule, changes = _plural_rule(text, header, open_entries, language)
    if header is None:  # and nothing that a form could contradict
        forms = [each.form for entry in open_entries for each in entry.translations if each.form is not None]
        rule = replace(rule, num_forms=max([*forms, rule.num_forms - 1]) + 1)
    line_end = next((end for end in ("\r\n", "\n", "\r") if end in text), "\n")
    gaps = [tuple(_gaps(entry, rule, line_end)) for entry in open_entries]
    if header is not None:
        changes += [change for entry in open_entries for change in _surplus(entry, rule)]
    translations = yield AllFragments((gap.text,) for gap in chain.from_iterable(gaps))
    num_refused = 0
    found = iter(translations)
    for of_message in gaps:
        theirs = [*islice(found, len(of_message))]
        written = [_with_directives(gap, "".join(map(str, each))) for gap, each in zip(of_message, theirs, strict=True)]
        if None in written:  # a plural has all of its forms or none
            num_refused += sum(each != (gap.text,) for gap, each in zip(of_message, theirs, strict=True))
        else:
            changes += [
                (gap.begin, gap.end, gap.keyword + _quoted(str(each), line_end))
                for gap, each in zip(of_message, written, strict=True)
            ]
    if sink is not None:
        sink.write(_encoded(_changed(text, changes), known) if any(gaps) and changes else content)
    return DocumentCounts(num_translated=-num_refused)


def _read(text: str) -> tuple[_Entry | None, list[_Entry]]:
    """Return the header, and the entries. Raises `InvalidDocument` with the line of a mistake."""
    entries: list[_Entry] = [_Entry()]
    header: _Entry | None = None
    last: _Field | None = None
    strings: list[str] = []

    def end_field() -> None:
        if last is not None:
            last.text = polib.unescape("".join(strings))
        strings.clear()

    for token in _TOKEN.finditer(text):
        if token["mistake"] is not None or (token["string"] is not None and last is None):
            line = text.count("\n", 0, token.start()) + 1
            raise InvalidDocument(
                f"the catalogue cannot be read: the text in line {line} must stand behind a keyword such as msgid, and "
                "end with a quotation mark"
            )
        if (string := token["string"]) is not None:
            assert last is not None
            last.begin, last.end = last.begin if strings else token.start(), token.end()
            strings.append(string)
            continue
        end_field()
        is_new = entries[-1].translations and token["keyword"] != "msgstr"
        if is_new:
            entries.append(_Entry())
        entry = entries[-1]
        last = None
        if token["comment"] is not None:
            if token["comment"].startswith("#,"):
                entry.flags.update(flag.strip() for flag in token["comment"][2:].split(","))
        elif token["domain"] is not None:
            last = _Field(token.end(), token.end())
        else:
            last = _Field(token.end(), token.end(), None if token["form"] is None else int(token["form"]))
            match token["keyword"]:
                case "msgid":
                    entry.message = last
                case "msgid_plural":
                    entry.plural = last
                case "msgstr":
                    entry.translations.append(last)
    end_field()
    complete = [entry for entry in entries if entry.message is not None and entry.translations]
    header = next((entry for entry in complete if entry.message is not None and not entry.message.text), None)
    return header, [entry for entry in complete if entry is not header]


def _plural_rule(
    text: str, header: _Entry | None, entries: Sequence[_Entry], language: str | None
) -> tuple[_Rule, list[tuple[int, int, str]]]:
    """Return the rule of a catalogue, and changes that declare what is missing of it and of the language."""
    begin, end = (0, 0) if header is None else (header.translations[0].begin, header.translations[0].end)
    written = text[begin:end]
    stated = _LANGUAGE.search(written)
    changes = []
    if stated is not None and not stated[2] and language is not None:
        place = begin + stated.end(1)
        changes.append((place, place, " " * (not stated[1]) + language.replace("-", "_")))
    declared = _RULE.search(written)
    rule = None if declared is None else _rule(int(declared[1]), declared[2])
    if rule is not None:
        return rule, changes
    num_forms, expression = _rule_of_language((stated and stated[2]) or language)
    own = _rule(num_forms, expression) or _Rule(2)
    if header is None or not any(entry.plural for entry in entries):
        return own, changes
    line = f"Plural-Forms: nplurals={num_forms}; plural={expression};"
    if (old := _PLURAL_FORMS.search(written)) is not None:
        changes.append((begin + old.start(), begin + old.end(), line + "\\n" * old[0].endswith("\\n")))
    else:
        before = "\\n" * (not written.endswith('\\n"') and written != '""')
        line_end = "\r\n" if "\r\n" in text else "\n"
        changes.append((end - 1, end, f'{before}"{line_end}"{line}\\n"'))
    return own, changes


def _rule_of_language(language: str | None) -> tuple[int, str]:
    if language is None:
        return _GERMANIC
    from babel import Locale, UnknownLocaleError
    from babel.messages.plurals import get_plural

    try:
        found = get_plural(Locale.parse(language.partition("@")[0].replace("-", "_")))
    except (ValueError, UnknownLocaleError):
        return _GERMANIC
    return found.num_plurals, found.plural_expr


def _rule(num_forms: int, expression: str) -> _Rule | None:
    if not 0 < num_forms <= _MAX_FORMS:
        return None
    try:
        form_of: Callable[[int], int] = gettext.c2py(expression.strip())
        forms = [form_of(number) for number in _NUMBERS]
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return _Rule(num_forms, forms[1], forms.count(forms[1]) == 1)


def _gaps(entry: _Entry, rule: _Rule, line_end: str) -> Iterator[_Gap]:
    """Yield the empty fields of an entry, and those that it lacks."""
    assert entry.message is not None
    flags = frozenset(entry.flags)
    singular = entry.message.text
    plural = singular if entry.plural is None else entry.plural.text
    for_one = singular if rule.is_for_one_alone or _directives(singular) == _directives(plural) else plural
    for each in entry.translations:
        if not each.text and (each.form is None or each.form < rule.num_forms):
            text = singular if each.form is None else for_one if each.form == rule.form_of_one else plural
            yield _Gap(each.begin, each.end, "", text, flags)
    if entry.plural is None:
        return
    end = entry.translations[-1].end
    for form in range(rule.num_forms):
        if form not in [each.form for each in entry.translations]:
            keyword = f"{line_end}msgstr[{form}] "
            yield _Gap(end, end, keyword, for_one if form == rule.form_of_one else plural, flags)


def _surplus(entry: _Entry, rule: _Rule) -> Iterator[tuple[int, int, str]]:
    """Yield the changes that remove the last, empty forms of an entry that the rule does not have."""
    for before, last in reversed(list(pairwise(entry.translations))):
        if last.form is None or last.form < rule.num_forms or last.text:
            return
        yield before.end, last.end, ""


def _directives(text: str) -> list[str]:
    return _PRINTF.findall(text) + _BRACES.findall(text)


def _with_directives(gap: _Gap, translation: str) -> str | None:
    """Return the translation with the directives of its source in an order that programs read; None if it has others.

    Directives of printf take their values in order, unless they have numbers.
    """
    formats = [
        flag.removesuffix("-format")
        for flag in gap.flags
        if flag.endswith("-format") and not flag.startswith(("no-", "possible-"))
    ]
    if not formats or not translation:
        return translation or None
    pattern = next((_OTHER_DIRECTIVES[name] for name in formats if name in _OTHER_DIRECTIVES), _PRINTF)
    wanted, found = pattern.findall(gap.text), pattern.findall(translation)
    if Counter(wanted) != Counter(found):
        return None
    values = [directive for directive in wanted if directive != "%%"]
    is_in_order = values == [directive for directive in found if directive != "%%"]
    if pattern is _BRACES or is_in_order or all(regex.match(r"%(?:\(|L?\d++\$?)", each) for each in values):
        return translation
    if formats[0] not in _NUMBERED_FORMATS or any("$" in each or "*" in each for each in values):
        return None
    places = {value: iter([index for index, each in enumerate(values, 1) if each == value]) for value in values}
    return pattern.sub(
        lambda directive: "%%" if directive[0] == "%%" else f"%{next(places[directive[0]])}${directive[0][1:]}",
        translation,
    )


def _quoted(text: str, line_end: str) -> str:
    """Return a text as strings of a catalogue, wrapped into lines."""
    written = str(polib.POEntry(msgid="", msgstr=text)).partition("msgstr ")[2]
    return written.rstrip("\n").replace("\n", line_end)


def _changed(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    position = 0
    for begin, end, written in sorted(changes, key=lambda change: change[:2]):
        parts += [text[position:begin], written]
        position = end
    return "".join([*parts, text[position:]])


def _encoded(text: str, known: str | None) -> bytes:
    """Encode the catalogue in its own encoding, or in UTF-8, declared so, if that is unknown or too small."""
    try:
        if known is not None:
            return text.encode(known)
    except UnicodeEncodeError:
        pass
    return _CHARSET.sub(r"\1UTF-8", text, count=1).encode()
