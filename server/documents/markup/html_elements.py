"""Roles of HTML elements (https://html.spec.whatwg.org/multipage/indices.html), and the language that they declare."""

from collections.abc import Iterator

import regex

from server.documents.markup.items import Attributes, Item, Kind, Role

_SOFT = frozenset(
    (
        "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "ins", "mark",
        "nobr", "q", "s", "small", "span", "strike", "strong", "time", "tt", "u",
    )
)  # fmt: skip
_HARD = frozenset(
    (
        "a", "label", "rb", "rp", "rt", "ruby", "sub", "sup",
    )
)  # fmt: skip
_ATOMS = frozenset(
    (
        "applet", "area", "audio", "canvas", "code", "embed", "frame", "iframe", "img", "input", "kbd", "map", "math",
        "meter", "noembed", "noframes", "object", "output", "plaintext", "progress", "samp", "script", "select",
        "style", "svg", "template", "textarea", "var", "video", "xmp",
    )
)  # fmt: skip
_MARKS = frozenset(("wbr",))
# A mark or an exponent touches its word, and a reading is none.
_MEANINGFUL = frozenset(("rb", "rp", "rt", "rtc", "ruby", "sub", "sup"))


def name_in_text(name: str) -> str:
    """Return the name of an element with a meaning for the words around it, and an empty one for any other."""
    return name if name in _MEANINGFUL else ""


def role_in_html(name: str, attributes: Attributes) -> Role:
    """Return the role of an element by its name in lower case; unknown elements are blocks."""
    if (attributes.get("translate") or "").lower() == "no" or "notranslate" in (attributes.get("class") or "").split():
        return Role.ATOM if name in _SOFT | _HARD | _ATOMS else Role.BREAK
    if name in _SOFT:
        return Role.SOFT
    if name in _HARD:
        return Role.HARD
    if name in _ATOMS:
        return Role.ATOM
    return Role.MARK if name in _MARKS else Role.BLOCK


_START_TAG = regex.compile(r"<[A-Za-z](?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+>")
_LANGUAGE = regex.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*+")
_ATTRIBUTE = regex.compile(r"(\s(?:xml:)?lang\s*+=\s*+)(\"[^\"]*+\"|'[^']*+'|[^\s>\"']++)", regex.IGNORECASE)


def with_language(items: Iterator[Item], language: str | None) -> Iterator[Item]:
    """Yield the items with `lang` and `xml:lang` changed to `language`.

    The first attribute declares the language of the document; attributes for other languages stay.
    """
    if language is None:
        yield from items
        return
    declared: str | None = None

    def replaced(attribute: regex.Match[str]) -> str:
        nonlocal declared
        value = attribute[2].strip("\"'")
        if _LANGUAGE.fullmatch(value) is None:  # empty, or code of a template
            return attribute[0]
        primary = regex.split("[-_]", value)[0].lower()
        declared = declared if declared is not None else primary
        return attribute[1] + attribute[2].replace(value, language) if primary == declared else attribute[0]

    def changed(item: Item) -> Item:
        raw = item.raw
        if item.kind in (Kind.OPEN, Kind.BREAK, Kind.ATOM) and "lang" in raw.lower() and _is_tag(item):
            raw = _ATTRIBUTE.sub(replaced, raw)
        inner = tuple(map(changed, item.inner))
        if raw == item.raw and inner == item.inner:
            return item
        return Item(item.kind, raw, item.text, item.is_soft, inner, item.after)

    yield from map(changed, items)


def _is_tag(item: Item) -> bool:
    """Return whether an item is one start tag: an element that is copied whole keeps its language."""
    return _START_TAG.fullmatch(item.raw.rstrip("\n")) is not None
