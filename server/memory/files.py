"""Files of translation memories: TMX 1.4b, TSV and PO, read segment by segment and written."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import polib
from lxml import etree

from server.documents.input.safe_xml import check_prolog, fit_for_xml
from server.interface.errors import InvalidDocument
from server.memory.store import Memory, Pair, Segment
from server.text.language_tags import primary_language

FORMATS = ("tmx", "tsv", "po")
_PROLOG_BYTES = 1_000_000
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_CODES = ("bpt", "ept", "it", "ph", "ut")  # hold markup of the program that wrote the file, not text
_TIME = "%Y%m%dT%H%M%SZ"
_BREAKS = re.compile(r"[\t\r\n]+")


def check_file(path: Path, name: str) -> None:
    """Raise `InvalidDocument` with the line and the reason if a file cannot be read."""
    kind = kind_of(name)
    if kind == "tmx":
        with path.open("rb") as file:
            check_prolog(file.read(_PROLOG_BYTES), name, allow_doctype=True)
            file.seek(0)
            try:
                expat.ParserCreate().ParseFile(file)
            except expat.ExpatError as error:
                raise InvalidDocument(f"{name} is not well-formed XML: {error}") from error
    elif kind == "tsv":
        for _ in _tsv_lines(path, name):
            pass
    else:
        _catalogue(path, name)


def kind_of(name: str) -> str:
    """Return the format that a name of a file stands for. Raises `InvalidDocument`."""
    kind = name.rpartition(".")[2].lower()
    if kind not in FORMATS:
        raise InvalidDocument(f"a translation memory must be a .tmx, .tsv or .po file. Given: {name[-60:]}")
    return kind


def languages_of(path: Path, name: str) -> tuple[str | None, str | None]:
    """Return the source and the target language that a file declares; None for what it leaves open."""
    kind = kind_of(name)
    if kind == "tmx":
        source = next((pair_source for pair_source, _ in _tmx(path, None)), None)
        return source, None
    return None, (_catalogue(path, name).metadata.get("Language") or None) if kind == "po" else None


def read_pairs(path: Path, name: str, source: str | None, target: str | None) -> Iterator[Pair | None]:
    """Yield the pairs of a file that was checked; None for an entry without a source or a translation.

    `source` and `target` are the languages of files that do not name them; of TMX, `source` overrides the header's.
    """
    kind = kind_of(name)
    if kind == "tmx":
        for _, pair in _tmx(path, source):
            yield pair
    elif kind == "tsv":
        for fields in _tsv_lines(path, name):
            yield None if fields is None else Pair(fields[0], target or "", fields[1], next(iter(fields[2:]), None))
    else:
        for entry in _catalogue(path, name):
            if entry.obsolete or entry.fuzzy:
                continue
            texts = [(entry.msgid, entry.msgstr)]
            if entry.msgid_plural:
                forms = [entry.msgstr_plural[index] for index in sorted(entry.msgstr_plural)]
                texts = [(entry.msgid, forms[0]), (entry.msgid_plural, forms[-1])] if len(forms) == 2 else []
            for text, translation in texts:
                yield Pair(text, target or "", translation, entry.msgctxt) if text and translation else None


def write_segments(kind: str, memory: Memory, segments: Iterable[Segment], file: TextIO) -> None:
    """Write a memory in one of the formats."""
    if kind == "tmx":
        file.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header creationtool="Kvasir" '
            'creationtoolversion="1" segtype="sentence" o-tmf="Kvasir" adminlang="en" datatype="plaintext" '
            f"srclang={quoteattr(memory.source)}/><body>\n"
        )
        for each in segments:
            author = "" if each.author is None else f" changeid={quoteattr(fit_for_xml(each.author))}"
            context = "" if each.context is None else f'<prop type="x-context">{_xml(each.context)}</prop>'
            file.write(
                f'<tu creationdate="{each.created.strftime(_TIME)}" changedate="{each.changed.strftime(_TIME)}"'
                f"{author}>{context}<tuv xml:lang={quoteattr(memory.source)}><seg>{_xml(each.source)}</seg></tuv>"
                f"<tuv xml:lang={quoteattr(each.language)}><seg>{_xml(each.target)}</seg></tuv></tu>\n"
            )
        file.write("</body></tmx>\n")
    elif kind == "tsv":
        for each in segments:
            fields = (each.source, each.target, *(() if each.context is None else (each.context,)))
            file.write("\t".join(_BREAKS.sub(" ", field) for field in fields) + "\n")
    else:
        catalogue = polib.POFile(wrapwidth=0)
        catalogue.metadata = {"Language": next(iter(memory.targets), ""), "Content-Type": "text/plain; charset=utf-8"}
        catalogue.extend(
            polib.POEntry(msgid=each.source, msgstr=each.target, msgctxt=each.context) for each in segments
        )
        file.write(f"{catalogue}\n")


def _xml(text: str) -> str:
    return escape(fit_for_xml(text))


def _tmx(path: Path, source: str | None) -> Iterator[tuple[str, Pair | None]]:
    """Yield the source language and a pair for each translation of a unit; None for a unit without one."""
    with path.open("rb") as file:
        events = etree.iterparse(
            file, events=("start", "end"), tag=("header", "tu"), resolve_entities=False, no_network=True, load_dtd=False
        )
        for event, element in events:
            if element.tag == "header":
                source = source or element.get("srclang")
            elif event == "end":
                yield from _pairs_of(element, element.get("srclang") or source or "*all*")
                element.clear()
                while (before := element.getprevious()) is not None and (parent := before.getparent()) is not None:
                    parent.remove(before)  # the tree would grow with the file


def _pairs_of(unit: etree._Element, language: str) -> Iterator[tuple[str, Pair | None]]:
    variants = [(each.get(_LANGUAGE) or each.get("lang") or "", each.find("seg")) for each in unit.findall("tuv")]
    texts = [(tag, _text(segment).strip()) for tag, segment in variants if segment is not None and tag]
    first = next((each for each in texts if language == "*all*" or _is_same(each[0], language)), None)
    if first is None or len(texts) == 1:
        yield language, None
        return
    context = next((prop.text for prop in unit.findall("prop") if "context" in (prop.get("type") or "")), None)
    for each in texts:
        if each is not first:
            yield first[0], Pair(first[1], each[0], each[1], context)


def _is_same(tag: str, other: str) -> bool:
    return tag.lower() == other.lower() or primary_language(tag) == primary_language(other)


def _text(element: etree._Element) -> str:
    parts = [element.text or ""]
    for child in element:
        if child.tag not in _CODES and isinstance(child.tag, str):
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _tsv_lines(path: Path, name: str) -> Iterator[list[str] | None]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                fields = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n").split("\t")
            except UnicodeDecodeError as error:
                raise InvalidDocument(f"{name}, line {number}: not UTF-8: {error.reason}") from error
            if fields == [""]:
                continue
            if not 2 <= len(fields) <= 3:
                raise InvalidDocument(
                    f"{name}, line {number}: must be a source, a translation and perhaps a context, separated by tabs. "
                    f"Given: {len(fields)} fields"
                )
            fields = [field.strip() for field in fields]
            yield fields if fields[0] and fields[1] else None


def _catalogue(path: Path, name: str) -> polib.POFile:
    try:
        return polib.pofile(str(path))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InvalidDocument(f"{name} is not a catalogue of gettext: {error}") from error
