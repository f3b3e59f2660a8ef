"""Gettext catalogues: every message without a translation gets one. Existing translations stay."""

import io
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import polib

from server.documents.fragment import AllFragments, Rewrite
from server.documents.input.encoding import codec_of, read_part
from server.documents.input.limits import FileLimits
from server.interface.errors import InvalidDocument

_CHARSET = re.compile(r"(Content-Type:[^\"\n]{0,100}?charset=)([\w.:-]+)")
# polib joins a text of many lines line by line, in time quadratic in their number.
_MAX_LINES = 20_000
_BEGIN_OF_TEXT = re.compile(r'\s*(?:msg(?:ctxt|id|id_plural|str(?:\[\d+\])?)\s*)?"')
_KIND_OF_LINE = re.compile(rb"[ \t]*(\"|#~ *\"|#[^~])")


@dataclass(frozen=True, slots=True)
class _EmptyField:
    """An empty translation: its lines, its field (msgstr, or a plural form as msgstr[1]), and the text to translate."""

    begin: int
    end: int
    form: int | None
    text: str


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Rewrite the messages without a translation, with a plural both texts: the plural for every form but the first.

    All other lines stay as they are.
    """
    content = read_part(source, limits)
    _check_lengths(content)
    declared = _CHARSET.search(content.decode("latin-1"))
    codec = (codec_of(declared[2]) if declared else None) or "utf-8"
    catalogue = _parse(content, codec)
    lines = list(io.StringIO(content.decode(codec), newline=""))
    _check_ends(lines)
    entries = [entry for entry in catalogue if not entry.obsolete and not entry.fuzzy]
    fields = [field for entry in entries for field in _empty_fields(entry, lines)]

    # Several forms may have one text.
    wanted = list(dict.fromkeys(field.text for field in fields if any(map(str.isalpha, field.text))))
    fragments = (yield AllFragments((text,) for text in wanted)) if wanted else []
    translations = {text: "".join(map(str, fragment)) for text, fragment in zip(wanted, fragments, strict=True)}
    if sink is not None:
        sink.write(_encoded("".join(_filled(lines, fields, translations)), codec))


def _check_lengths(content: bytes) -> None:
    """Raise `InvalidDocument` for a text or a comment with more than 20,000 lines."""
    num_lines, kind_before = 0, b""
    for number, line in enumerate(content.splitlines(), 1):
        found = _KIND_OF_LINE.match(line)
        kind = found[1] if found else b""
        num_lines = num_lines + 1 if kind and kind == kind_before else 1
        kind_before = kind
        if num_lines > _MAX_LINES:
            raise InvalidDocument(
                f"a text or comment of a catalogue may have {_MAX_LINES} lines. The one around line {number} has more"
            )


def _check_ends(lines: Sequence[str]) -> None:
    """Raise `InvalidDocument` for a text without an end: polib takes its last character for a quotation mark."""
    for number, line in enumerate(lines, 1):
        begin = _BEGIN_OF_TEXT.match(line)
        if begin is not None and not line[begin.end() :].rstrip().endswith('"'):
            raise InvalidDocument(
                f"the catalogue cannot be read: the text in line {number} must end with a quotation mark"
            )


def _parse(content: bytes, codec: str) -> polib.POFile:
    # By path: polib would take a string that names a file for that file.
    with tempfile.NamedTemporaryFile(suffix=".po") as file:
        file.write(content)
        file.flush()
        try:
            return polib.pofile(file.name, encoding=codec)
        except (OSError, UnicodeError, LookupError, ValueError, IndexError, AttributeError) as error:
            reason = str(error).replace(file.name, "the file")
            raise InvalidDocument(f"the catalogue cannot be read: {reason}") from error


def _empty_fields(entry: polib.POEntry, lines: Sequence[str]) -> Iterator[_EmptyField]:
    """Yield the empty fields of an entry."""
    begin = max(0, (entry.linenum or 0) - 1)
    while begin < len(lines) and not lines[begin].lstrip().startswith("msgstr"):
        begin += 1
    while begin < len(lines) and lines[begin].lstrip().startswith("msgstr"):
        end = begin + 1
        while end < len(lines) and lines[end].lstrip().startswith('"'):
            end += 1
        if all(line.partition('"')[2].strip() == '"' for line in lines[begin:end]):
            form = re.match(r"\s*msgstr\[(\d)\]", lines[begin])
            is_first = form is None or form[1] == "0"
            text = entry.msgid if is_first else entry.msgid_plural
            yield _EmptyField(begin, end, None if form is None else int(form[1]), text)
        begin = end


def _filled(lines: Sequence[str], fields: Sequence[_EmptyField], translations: dict[str, str]) -> Iterator[str]:
    position = 0
    for field in fields:
        yield from lines[position : field.begin]
        translation = _with_line_ends(field.text, translations.get(field.text, field.text))
        if field.form is None:
            entry = polib.POEntry(msgid="", msgstr=translation)
        else:
            entry = polib.POEntry(msgid="", msgstr_plural={field.form: translation})
        last = lines[field.end - 1]
        line_end = last[len(last.rstrip("\r\n")) :]
        written = str(entry).removeprefix('msgid ""\n').removesuffix("\n")
        yield written.replace("\n", line_end or "\n") + line_end
        position = field.end
    yield from lines[position:]


def _with_line_ends(source: str, translation: str) -> str:
    """Begin and end the translation with a line break if its source does: msgfmt rejects any difference."""
    begin = "\n" if source.startswith("\n") else ""
    end = "\n" if source.endswith("\n") else ""
    return begin + translation.strip("\n") + end


def _encoded(text: str, codec: str) -> bytes:
    """Encode the catalogue in its own encoding, or in UTF-8, declared so, if a translation does not fit."""
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        return _CHARSET.sub(r"\1UTF-8", text, count=1).encode()
