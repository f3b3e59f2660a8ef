"""Attributes that declare the language of a text: those of the document's language become that of the translation."""

from collections.abc import Iterator

import regex

from server.documents.markup.items import Item, Kind

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
