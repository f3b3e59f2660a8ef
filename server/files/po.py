"""Gettext catalogues: every message that has no translation yet gets one. Those that people wrote stay."""

import tempfile
from typing import BinaryIO

import polib

from server.errors import InvalidDocument
from server.files.archive import Rewrite
from server.files.encoding import read_part
from server.files.limits import FileLimits

_WIDTH = 78  # of a line, as gettext's own tools wrap them


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """The messages without a translation; of those with a plural both texts, the plural for every form behind the
    first.
    """
    catalogue = _parse(read_part(source, limits))
    waiting = [entry for entry in catalogue if not entry.obsolete and not entry.translated() and not entry.fuzzy]
    texts = [text for entry in waiting for text in _texts(entry)]
    wanted = [text for text in texts if any(map(str.isalpha, text))]
    translated = iter((yield [(text,) for text in wanted]) if wanted else ())
    results = iter(["".join(map(str, next(translated))) if any(map(str.isalpha, text)) else text for text in texts])
    for entry in waiting:
        first, *others = [_with_line_ends(text, next(results)) for text in _texts(entry)]
        if others:
            forms = sorted(entry.msgstr_plural) or [0, 1]
            entry.msgstr_plural = {form: others[0] if index else first for index, form in enumerate(forms)}
        else:
            entry.msgstr = first
    if sink is not None:
        sink.write((str(catalogue)).encode(catalogue.encoding, "replace") + b"\n")


def _parse(content: bytes) -> polib.POFile:
    # By path: a string could be taken for the name of some other file.
    with tempfile.NamedTemporaryFile(suffix=".po") as file:
        file.write(content)
        file.flush()
        try:
            return polib.pofile(file.name, wrapwidth=_WIDTH)
        except (OSError, UnicodeDecodeError, LookupError, ValueError, IndexError, AttributeError) as error:
            reason = str(error).replace(file.name, "the file")
            raise InvalidDocument(f"the catalogue cannot be read: {reason}") from error


def _texts(entry: polib.POEntry) -> list[str]:
    return [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]


def _with_line_ends(source: str, translation: str) -> str:
    """msgfmt refuses a translation that begins or ends with a line break where its source does not, or the reverse."""
    begin = "\n" if source.startswith("\n") else ""
    end = "\n" if source.endswith("\n") else ""
    return begin + translation.strip("\n") + end
