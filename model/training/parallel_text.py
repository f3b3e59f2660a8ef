"""Readers of parallel text: a pair a line, source TAB target; translation memories (TMX, XLIFF 1.2 and 2); gettext.

Files can be compressed with xz.
"""

import lzma
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

import polib
from lxml import etree

Pair = tuple[str, str]
Languages = tuple[str, str]

_LANGUAGE: Final = "{http://www.w3.org/XML/1998/namespace}lang"
# Elements whose content is a code of the document's format and not text.
_CODES: Final = frozenset({"", "bpt", "ept", "ph", "it", "ut", "sub", "x", "bx", "ex", "sc", "ec", "cp"})
_UNTRANSLATED: Final = frozenset({"new", "initial", "needs-translation"})


def read_pairs(path: Path, languages: Languages | None = None, *, swap_columns: bool = False) -> Iterator[Pair]:
    """Yield the (source, target) pairs of a file.

    `.tmx`, `.xliff` and `.xlf` require the `languages` of source and target, which select the sides. In every other
    file the first column or message is the source; with `swap_columns`, the second.

    Raises ValueError with the file and the place of the error: a line that is not UTF-8 or has not two columns of text,
    a memory that is not well-formed or has other languages, a compressed file that is damaged or truncated.
    """
    suffix = path.with_suffix("").suffix if path.suffix == ".xz" else path.suffix
    if suffix.lower() not in (".tmx", ".xliff", ".xlf", ".po"):
        yield from _read_columns(path, swap_columns=swap_columns)
        return
    content = b"".join(_lines(path))
    try:
        if suffix.lower() == ".po":
            yield from read_catalogue(content, swap_columns=swap_columns)
            return
        if languages is None:
            raise ValueError("a translation memory is read with --source and --target only")
        yield from (read_tmx if suffix.lower() == ".tmx" else read_xliff)(content, languages)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read_columns(path: Path, *, swap_columns: bool) -> Iterator[Pair]:
    for number, line in enumerate(_lines(path), start=1):
        try:
            # A byte order mark is not part of the first word.
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 at byte {error.start + 1} of the line") from error
        columns = text.rstrip("\r\n").split("\t")
        if len(columns) != 2 or not all(column.strip() for column in columns):
            raise ValueError(f"{path}, line {number}: a line must have two columns of text. Given: {len(columns)}")
        first, second = columns
        yield (second, first) if swap_columns else (first, second)


def _lines(path: Path) -> Iterator[bytes]:
    open_file = lzma.open if path.suffix == ".xz" else open
    with open_file(path, "rb") as lines:
        try:
            yield from lines
        except (EOFError, lzma.LZMAError) as error:
            raise ValueError(f"{path} is damaged, truncated or not compressed with xz: {error}") from error


def read_tmx(content: bytes, languages: Languages) -> Iterator[Pair]:
    """Yield the pairs of the units that have both languages. Raises ValueError with the languages found otherwise."""
    found: set[str] = set()
    is_empty = True
    for unit in _elements(content, "tu"):
        variants: dict[str, str] = {}
        for variant in unit:
            if _local_name(variant) == "tuv":
                language = variant.get(_LANGUAGE) or variant.get("lang") or ""
                segment = next((child for child in variant if _is_named(child, "seg")), None)
                variants.setdefault(_primary(language), "" if segment is None else _text(segment))
        found |= variants.keys()
        source, target = (variants.get(_primary(language), "") for language in languages)
        if source and target:
            is_empty = False
            yield source, target
    if is_empty:
        listed = ", ".join(sorted(found)) or "none"
        raise ValueError(
            f"no unit has the languages {languages[0]} and {languages[1]}. Languages of the file: {listed}"
        )


def read_xliff(content: bytes, languages: Languages) -> Iterator[Pair]:
    """Yield the translated segments. The file can have the languages in either direction. Raises ValueError otherwise.

    Segments without a target, or with a state before translation, are skipped.
    """
    is_swapped = False
    for element in _elements(content, "file", "xliff", "trans-unit", "segment", starts=True):
        name = _local_name(element)
        if name in ("file", "xliff"):
            written = [element.get(key) for key in ("source-language", "target-language")]
            if written == [None, None]:
                written = [element.get(key) for key in ("srcLang", "trgLang")]
            if written != [None, None]:
                is_swapped = _is_swapped(written, languages)
            continue
        source, target = (next((child for child in element if _is_named(child, tag)), None) for tag in _SIDES)
        if source is None or target is None or element.get("translate") == "no":
            continue
        if {element.get("state"), target.get("state")} & _UNTRANSLATED:
            continue
        pair = _text(source), _text(target)
        if all(pair):
            yield pair[::-1] if is_swapped else pair


def read_catalogue(content: bytes, *, swap_columns: bool) -> Iterator[Pair]:
    """Yield the translated messages of a gettext catalogue, and singular and plural of those that have both.

    Fuzzy and obsolete messages are skipped. The messages are the source; with `swap_columns`, the translations.
    """
    try:
        catalogue = polib.pofile(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start + 1}") from error
    except OSError as error:
        raise ValueError(f"not a gettext catalogue: {error}") from error
    for entry in catalogue.translated_entries():
        forms = [form for _, form in sorted(entry.msgstr_plural.items())]
        pairs = [(entry.msgid, forms[0]), (entry.msgid_plural, forms[-1])] if forms else [(entry.msgid, entry.msgstr)]
        for written in pairs:
            pair = _in_one_line(written[0]), _in_one_line(written[1])
            if all(pair):
                yield pair[::-1] if swap_columns else pair


_SIDES: Final = ("source", "target")


def _elements(content: bytes, *names: str, starts: bool = False) -> Iterator[etree._Element]:
    """Yield elements of these names, one at a time, and free them; with `starts`, `file` and `xliff` at their start.

    Raises ValueError for a file that is not well-formed. Entities are not resolved, and nothing is loaded.
    """
    events = ("start", "end") if starts else ("end",)
    try:
        for event, element in etree.iterparse(
            BytesIO(content), events=events, tag=[f"{{*}}{name}" for name in names], resolve_entities=False,
            no_network=True, load_dtd=False, huge_tree=False,
        ):  # fmt: skip
            is_frame = _local_name(element) in ("file", "xliff")
            if is_frame == (event == "start"):
                yield element
            if event == "end":
                element.clear()
                while (previous := element.getprevious()) is not None and (parent := element.getparent()) is not None:
                    parent.remove(previous)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"not well-formed XML: {error}") from error


def _text(element: etree._Element) -> str:
    """Return the text of a segment without codes, on one line."""
    return _in_one_line("".join(_texts(element)))


def _texts(element: etree._Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if _local_name(child) not in _CODES:
            yield from _texts(child)
        yield child.tail or ""


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _local_name(element: etree._Element) -> str:
    tag: object = element.tag  # a function for comments and processing instructions
    return etree.QName(tag).localname if isinstance(tag, str) else ""


def _is_named(element: etree._Element, name: str) -> bool:
    return _local_name(element) == name


def _primary(language: str) -> str:
    """Return the first part of a tag: `de` of `de-AT`."""
    return language.replace("_", "-").partition("-")[0].lower()


def _is_swapped(written: list[str | None], languages: Languages) -> bool:
    """Return whether a file has the languages in the other direction. Raises ValueError if it has others.

    A language that the file does not name can be either.
    """
    found = [None if each is None else _primary(each) for each in written]
    wanted = [_primary(language) for language in languages]
    for direction in (wanted, wanted[::-1]):
        if all(each in (None, language) for each, language in zip(found, direction, strict=True)):
            return direction != wanted
    raise ValueError(
        f"the file must have the languages {languages[0]} and {languages[1]}. Given: {written[0]} and {written[1]}"
    )
