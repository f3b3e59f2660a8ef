"""Files of translation memories: TMX 1.4b, TSV and PO, read segment by segment and written."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, TextIO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import polib
from lxml import etree

from server.documents.input.safe_xml import check_prolog, fit_for_xml
from server.interface.errors import InvalidDocument
from server.memory.store import Memory, Pair, Segment
from server.text.language_tags import primary_language
from server.text.spans import SpanKind, find_spans

FORMATS = ("tmx", "tsv", "po")
_PROLOG_BYTES = 1_000_000
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_ANY_LANGUAGE = "*all*"  # of units whose variants are all sources
_CODES = ("bpt", "ept", "it", "ph", "ut")  # hold markup of the program that wrote the file, not text
_BREAKING_CODES = ("ph", "ut")  # the others begin or end a format, perhaps within a word
_TIME = "%Y%m%dT%H%M%SZ"
_BREAKS = re.compile(r"[\t\r\n]+")


def check_file(path: Path, name: str) -> None:
    """Raise `InvalidDocument` with the line and the reason if a file cannot be read."""
    kind = kind_of(name)
    if kind == "tmx":
        with path.open("rb") as file:
            check_prolog(file.read(_PROLOG_BYTES), name, allow_doctype=True)
            file.seek(0)
            parser = expat.ParserCreate()

            def reject_entity(entity: str, _is_parameter: bool) -> NoReturn:
                raise InvalidDocument(f"{name}, line {parser.CurrentLineNumber}: the entity {entity!r} is unknown")

            def check_root(root: str, _attributes: Mapping[str, str]) -> None:
                if root.rpartition(":")[2] != "tmx":
                    raise InvalidDocument(f"{name} is not a translation memory: its root is <{root[:60]}>, not <tmx>")
                parser.StartElementHandler = None

            parser.SkippedEntityHandler, parser.StartElementHandler = reject_entity, check_root
            try:
                parser.ParseFile(file)
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
        return next((source for source, _ in _tmx(path, name, None, None)), None), None
    return None, (_catalogue(path, name).metadata.get("Language") or None) if kind == "po" else None


def read_pairs(path: Path, name: str, source: str | None, target: str | None) -> Iterator[Pair | None]:
    """Yield the pairs of a file that was checked; None for an entry without a source or a translation.

    `source` and `target` are the languages of files that do not name them; those that are wanted of TMX.
    """
    kind = kind_of(name)
    if kind == "tmx":
        for _, pair in _tmx(path, name, source, target):
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


def _tmx(path: Path, name: str, source: str | None, target: str | None) -> Iterator[tuple[str, Pair | None]]:
    """Yield the source language and a pair for each translation of a unit; None for a unit without one.

    Without a `source`, the header's is that of all units, or the first unit's.
    """
    with path.open("rb") as file:
        events = etree.iterparse(
            file, tag=("{*}header", "{*}tu"), resolve_entities=False, no_network=True, load_dtd=False,
            remove_comments=True, remove_pis=True,
        )  # fmt: skip
        try:
            for _, element in events:
                if element.tag.endswith("header"):
                    source = source or _language(element.get("srclang"))
                    continue
                variants = list(_variants(element))
                source = source or _language(element.get("srclang")) or next((tag for tag, *_ in variants), None)
                for pair in _pairs_of(element, variants, source, target):
                    yield source or "", pair
                element.clear()
                while (before := element.getprevious()) is not None and (parent := before.getparent()) is not None:
                    parent.remove(before)  # the tree would grow with the file
        except etree.XMLSyntaxError as error:
            raise InvalidDocument(f"{name} is too complex: {error.msg}") from error


def _language(declared: str | None) -> str | None:
    return None if declared is None or declared.lower() == _ANY_LANGUAGE else declared


def _variants(unit: etree._Element) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield the language and the text of each variant of a unit, and the attributes of both."""
    for each in unit.iterfind("{*}tuv"):
        tag, segment = each.get(_LANGUAGE) or each.get("lang"), each.find("{*}seg")
        if tag and segment is not None:
            facts = {str(name): str(value) for name, value in (*unit.items(), *each.items())}
            yield tag, _text(segment).strip(), facts


def _pairs_of(
    unit: etree._Element, variants: Sequence[tuple[str, str, Mapping[str, str]]], source: str | None, target: str | None
) -> Iterator[Pair | None]:
    tags = [tag for tag, *_ in variants]
    first = _nearest(source, tags)
    others = [tag for tag in tags if tag != first]
    wanted = others if target is None else [_nearest(target, others)]
    found = [each for each in variants if each[0] in wanted]
    if first is None or not found:
        yield None
        return
    text = variants[tags.index(first)][1]
    context = next((prop.text for prop in unit.iterfind("{*}prop") if "context" in (prop.get("type") or "")), None)
    for tag, translation, facts in found:
        author = facts.get("changeid") or facts.get("creationid")
        created, changed = _time(facts.get("creationdate")), _time(facts.get("changedate"))
        yield Pair(text, target or tag, translation, context, author, created or changed, changed or created)


def _nearest(language: str | None, tags: Sequence[str]) -> str | None:
    """Return the tag of this language, else the first of another region."""
    same = [tag for tag in tags if primary_language(tag) == primary_language(language or "")]
    return min(same, key=lambda tag: tag.lower() != (language or "").lower(), default=None)


def _time(written: str | None) -> datetime | None:
    try:
        return None if written is None else datetime.strptime(written, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _text(element: etree._Element) -> str:
    """Return the text of a segment without its codes, apart from placeholders, which a translation must have."""
    text = element.text or ""
    for child in element:
        following = child.tail or ""
        code = str(child.tag).rpartition("}")[2]
        if code not in _CODES:
            text += _text(child)
        elif _is_placeholder(content := child.text or ""):
            text += content
        elif code in _BREAKING_CODES and text[-1:].isalnum() and following[:1].isalnum():
            text += " "  # a break or a picture stands between two words
        text += following
    return text


def _is_placeholder(content: str) -> bool:
    """Return whether a code is a variable such as {name} or %s, not a tag."""
    spans = [] if content.startswith("<") else find_spans(content)
    return [(each.start, each.end, each.kind) for each in spans] == [(0, len(content), SpanKind.PLACEHOLDER)]


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
