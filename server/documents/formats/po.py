"""Gettext catalogues: every message that has no translation yet gets one. Those that people wrote stay."""

import io
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import polib

from server.documents.fragment import Rewrite
from server.documents.input.encoding import codec_of, read_part
from server.documents.input.limits import FileLimits
from server.interface.errors import InvalidDocument

_CHARSET = re.compile(r"(Content-Type:[^\"\n]{0,100}?charset=)([\w.:-]+)")
# polib puts a text of many lines together line by line, in time quadratic in their number.
_MAX_LINES = 20_000
_KIND_OF_LINE = re.compile(rb"[ \t]*(\"|#~ *\"|#[^~])")


@dataclass(frozen=True, slots=True)
class _Gap:
    """An empty translation: its lines, its field (msgstr, or a plural form as msgstr[1]), and what to translate."""

    begin: int
    end: int
    form: int | None
    text: str


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """The messages without a translation; of those with a plural both texts, the plural for every form behind the
    first. Lines that no translation is written to stay as they are.
    """
    content = read_part(source, limits)
    _check_lengths(content)
    declared = _CHARSET.search(content.decode("latin-1"))
    codec = (codec_of(declared[2]) if declared else None) or "utf-8"
    catalogue = _parse(content, codec)
    lines = list(io.StringIO(content.decode(codec), newline=""))
    entries = [entry for entry in catalogue if not entry.obsolete and not entry.fuzzy]
    gaps = [gap for entry in entries for gap in _gaps(entry, lines)]

    # Several forms may have one text.
    wanted = list(dict.fromkeys(gap.text for gap in gaps if any(map(str.isalpha, gap.text))))
    fragments = (yield [(text,) for text in wanted]) if wanted else []
    translations = {text: "".join(map(str, fragment)) for text, fragment in zip(wanted, fragments, strict=True)}
    if sink is not None:
        sink.write(_encoded("".join(_filled(lines, gaps, translations)), codec))


def _check_lengths(content: bytes) -> None:
    """Raise `InvalidDocument` for a text or a comment of so many lines that polib would take long for it."""
    num_lines, kind_before = 0, b""
    for number, line in enumerate(content.splitlines(), 1):
        found = _KIND_OF_LINE.match(line)
        kind = found[1] if found else b""
        num_lines = num_lines + 1 if kind and kind == kind_before else 1
        kind_before = kind
        if num_lines > _MAX_LINES:
            raise InvalidDocument(
                f"the text or comment around line {number} of the catalogue has more than {_MAX_LINES} lines"
            )


def _parse(content: bytes, codec: str) -> polib.POFile:
    # By path: a string could be taken for the name of some other file.
    with tempfile.NamedTemporaryFile(suffix=".po") as file:
        file.write(content)
        file.flush()
        try:
            return polib.pofile(file.name, encoding=codec)
        except (OSError, UnicodeError, LookupError, ValueError, IndexError, AttributeError) as error:
            reason = str(error).replace(file.name, "the file")
            raise InvalidDocument(f"the catalogue cannot be read: {reason}") from error


def _gaps(entry: polib.POEntry, lines: Sequence[str]) -> Iterator[_Gap]:
    """The fields of an entry that are empty."""
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
            yield _Gap(begin, end, None if form is None else int(form[1]), text)
        begin = end


def _filled(lines: Sequence[str], gaps: Sequence[_Gap], translations: dict[str, str]) -> Iterator[str]:
    position = 0
    for gap in gaps:
        yield from lines[position : gap.begin]
        translation = _with_line_ends(gap.text, translations.get(gap.text, gap.text))
        if gap.form is None:
            entry = polib.POEntry(msgid="", msgstr=translation)
        else:
            entry = polib.POEntry(msgid="", msgstr_plural={gap.form: translation})
        last = lines[gap.end - 1]
        line_end = last[len(last.rstrip("\r\n")) :]
        written = str(entry).removeprefix('msgid ""\n').removesuffix("\n")
        yield written.replace("\n", line_end or "\n") + line_end
        position = gap.end
    yield from lines[position:]


def _with_line_ends(source: str, translation: str) -> str:
    """msgfmt refuses a translation that begins or ends with a line break where its source does not, or the reverse."""
    begin = "\n" if source.startswith("\n") else ""
    end = "\n" if source.endswith("\n") else ""
    return begin + translation.strip("\n") + end


def _encoded(text: str, codec: str) -> bytes:
    """The catalogue in its own encoding, or as UTF-8, and declared as that, where a translation does not fit it."""
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        return _CHARSET.sub(r"\1UTF-8", text, count=1).encode()
