"""XLIFF 1.2 and 2.0: targets of the units that have none, or whose target is not yet translated."""

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import BinaryIO

from lxml import etree

from server.documents.fragment import Atom, Fragment, Inline, Rewrite, Wrap, as_window, has_words, joined, next_window
from server.documents.input import safe_xml
from server.documents.input.encoding import read_part
from server.documents.input.limits import FileLimits
from server.interface.errors import DocumentTooComplex, InvalidDocument

_NAMESPACES = {
    "urn:oasis:names:tc:xliff:document:1.1": 1,
    "urn:oasis:names:tc:xliff:document:1.2": 1,
    "urn:oasis:names:tc:xliff:document:2.0": 2,
    "urn:oasis:names:tc:xliff:document:2.1": 2,
    "urn:oasis:names:tc:xliff:document:2.2": 2,
}
_WINDOW_SEGMENTS = 1000
_MAX_DEPTH = 64
_MAX_NODES = 50_000
_UNTRANSLATED = ("new", "needs-translation", "initial")
# Pairs that may move with their words; all other elements are placeholders that stay as they are.
_SPANS = ("g", "mrk", "pc", "sub")
# Empty elements, or such that contain code, that begin and end a pair, and attributes that name it.
_BEGINS, _ENDS = ("bpt", "bx", "sc"), ("ept", "ex", "ec")
_PAIR_NAMES = ("startRef", "rid", "id")
# What names or shows the code of a placeholder, besides its text; Angular's placeholders have no other sign.
_CODE_NAMES = ("equiv-text", "equiv", "disp")
_LINE_BREAK = re.compile(r"(?i:\s*<br\s*/?>\s*)|\n|LINE_BREAK")


class _Segment:
    """A source with the place of its target."""

    def __init__(self, source: etree._Element, target: etree._Element | None, version: int) -> None:
        self.source = source
        self.target = target
        self._version = version
        # One element, or the two that are around a text.
        self._elements: list[tuple[etree._Element, ...]] = []
        self.before = self.after = ""
        self.fragment = self._stripped(self._read(source, 0))

    def replace(self, translation: Fragment) -> None:
        """Write the translation as the target."""
        target = self.target
        if target is None:
            target = etree.Element(_sibling_name(self.source, "target"))
            self.source.addnext(target)
            # The white space between the two elements continues behind the source.
            target.tail, self.source.tail = self.source.tail, _indentation(self.source)
        for child in list(target):
            target.remove(child)
        target.text = None
        if self._version == 1:
            target.set("state", "translated")
        elif (segment := self.source.getparent()) is not None:
            segment.set("state", "translated")
        _append_text(target, self.before)
        self._write(translation, target)
        _append_text(target, self.after)

    def _read(self, parent: etree._Element, depth: int) -> Fragment:
        if depth > _MAX_DEPTH:
            raise InvalidDocument(f"elements of an XLIFF unit may be nested {_MAX_DEPTH} deep. Given: deeper")
        nodes: list[Inline] = [parent.text or ""]
        opened: list[tuple[str, int]] = []  # name of a pair, and the place of its beginning among the nodes
        for child in parent:
            if len(self._elements) >= _MAX_NODES:
                raise DocumentTooComplex(f"an XLIFF unit may have {_MAX_NODES} elements. Given: more")
            if isinstance(child.tag, str):
                self._elements.append((child,))
                key = len(self._elements)
                name = etree.QName(child).localname
                inside = self._read(child, depth + 1) if name in _SPANS and not _is_protected(child) else ()
                if name in _ENDS and opened and opened[-1][0] == _pair_name(child):
                    self._close(nodes, opened.pop()[1], child)
                else:
                    nodes.append(Wrap(key, inside, is_soft=False) if has_words(inside) else _atom(key, child))
                    if name in _BEGINS and len(opened) < _MAX_DEPTH - depth:
                        opened.append((_pair_name(child), len(nodes) - 1))
            nodes.append(child.tail or "")
        return joined(nodes)

    def _close(self, nodes: list[Inline], first: int, end: etree._Element) -> None:
        """Put the nodes from `first`, the beginning of a pair, to its end into one wrap, or into two atoms."""
        begin, inside = nodes[first], joined(nodes[first + 1 :])
        assert isinstance(begin, Atom)
        if has_words(inside):
            self._elements[begin.key - 1] += (end,)
            nodes[first:] = [Wrap(begin.key, inside, is_soft=False)]
        else:
            nodes.append(Atom(len(self._elements)))

    def _stripped(self, fragment: Fragment) -> Fragment:
        """Move white space at the ends of the fragment to `before` and `after`."""
        nodes = list(fragment)
        if nodes and isinstance(nodes[0], str):
            text = nodes[0].lstrip()
            self.before, nodes[0] = nodes[0][: len(nodes[0]) - len(text)], text
        if nodes and isinstance(nodes[-1], str):
            text = nodes[-1].rstrip()
            self.after, nodes[-1] = nodes[-1][len(text) :], text
        return joined(nodes)

    def _write(self, fragment: Fragment, parent: etree._Element) -> None:
        for node in fragment:
            if isinstance(node, str):
                _append_text(parent, node)
                continue
            source, *ends = self._elements[node.key - 1]
            element = etree.SubElement(parent, source.tag)
            for name, value in source.attrib.items():
                element.set(name, value)
            if isinstance(node, Wrap) and not ends:
                self._write(node.children, element)
                continue
            element.text = source.text
            element.extend(deepcopy(list(source)))
            if isinstance(node, Wrap):
                self._write(node.children, parent)
            for each in ends:
                copy = deepcopy(each)
                copy.tail = None
                parent.append(copy)


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, language: str | None = None) -> Rewrite:
    """Translate the sources without a target. `language` becomes the target language if the file declares none."""
    content = read_part(source, limits)
    if content.count(b"<") > limits.max_tags:
        raise DocumentTooComplex(f"an XLIFF file may have {limits.max_tags} tags. Given: {content.count(b'<')}")
    tree = safe_xml.parse(content, "the file", allow_doctype=True)
    root = tree.getroot()
    version = _NAMESPACES.get(etree.QName(root).namespace or "") or (
        1 if root.get("version", "").startswith("1") else None
    )
    if etree.QName(root).localname != "xliff" or version is None:
        raise InvalidDocument(f"the file must be XLIFF 1.2 or 2.0. Given: {str(root.tag)[:80]!r}")
    segments = [segment for segment in _segments(root, version) if has_words(segment.fragment)]
    has_changed = False
    is_held = limits.holds(len(content))
    remaining = iter(segments)
    while window := next_window(remaining, _WINDOW_SEGMENTS, is_held=is_held):
        fragments = [segment.fragment for segment in window]
        translations = yield as_window(fragments, is_held=is_held)
        for segment, translation in zip(window, translations, strict=True):
            if translation != segment.fragment:
                segment.replace(translation)
                has_changed = True
    if sink is None:
        return
    if has_changed and language is not None:
        _declare_language(root, version, language)
    sink.write(safe_xml.serialized(tree, content) if has_changed else content)


def _segments(root: etree._Element, version: int) -> Iterator[_Segment]:
    for unit in root.iter("{*}trans-unit" if version == 1 else "{*}segment"):
        if not _is_translated(unit):
            continue
        segmented, target = unit.find("{*}seg-source"), unit.find("{*}target")
        # A target needs the segments of its source, and stands behind them.
        source = unit.find("{*}source") if segmented is None else segmented
        if source is not None and (target is None or _is_untranslated(unit, target, version)):
            yield _Segment(source, target, version)


def _is_translated(unit: etree._Element) -> bool:
    """Return what the unit states, or else the nearest element around it that states something."""
    return next((value for each in (unit, *unit.iterancestors()) if (value := each.get("translate"))), "yes") != "no"


def _is_untranslated(unit: etree._Element, target: etree._Element, version: int) -> bool:
    if not "".join(map(str, target.itertext())).strip():
        return True
    return (target if version == 1 else unit).get("state") in _UNTRANSLATED


def _pair_name(element: etree._Element) -> str:
    return next((name for each in _PAIR_NAMES if (name := element.get(each)) is not None), "")


def _is_protected(element: etree._Element) -> bool:
    return element.get("translate") == "no" or element.get("mtype") == "protected"


def _atom(key: int, element: etree._Element) -> Atom:
    codes = (element.text, *map(element.get, _CODE_NAMES))
    is_break = element.get("ctype") == "lb" or element.get("subType") == "xlf:lb"
    return Atom(key, "\n" if is_break or any(code and _LINE_BREAK.fullmatch(code) for code in codes) else "")


def _sibling_name(element: etree._Element, name: str) -> str:
    namespace = etree.QName(element).namespace
    return f"{{{namespace}}}{name}" if namespace else name


def _indentation(element: etree._Element) -> str | None:
    """Return the white space in front of an element, for an element behind it."""
    before = element.getprevious()
    parent = element.getparent()
    text = before.tail if before is not None else parent.text if parent is not None else None
    return text if text is not None and re.fullmatch(r"\s*", text) else None


def _append_text(parent: etree._Element, text: str) -> None:
    text = safe_xml.fit_for_xml(text)
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    elif text:
        parent.text = (parent.text or "") + text


def _declare_language(root: etree._Element, version: int, language: str) -> None:
    if version == 2:
        if root.get("trgLang") is None:
            root.set("trgLang", language)
        return
    for file in root.iter("{*}file"):
        if file.get("target-language") is None:
            file.set("target-language", language)
