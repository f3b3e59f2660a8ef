"""Fragment: one paragraph of any format, with its text, formatting around parts of it, and elements without text.

Every format yields fragments and receives their translations. `key` identifies the source of a node for the format.
"""

import html
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import TypeVar

from selectolax.lexbor import LexborHTMLParser, LexborNode

from server.text.readers.units import DIVIDER


@dataclass(frozen=True, slots=True)
class Atom:
    """An element that is not translated: an image, code, a footnote's number.

    `text` is its visible text; that of a line break is a line feed.
    """

    key: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Wrap:
    """An element around a part of the text. A soft one is only formatting; losing a hard one (a link) loses content.

    `name` is that of an HTML element with a meaning for the words around it, such as `sup`; most have none.
    """

    key: int
    children: "Fragment"
    is_soft: bool = True
    name: str = ""


_T = TypeVar("_T")

Inline = str | Wrap | Atom
Fragment = tuple[Inline, ...]


class AllFragments(list[Fragment]):
    """All fragments of a document: its format reads it once, and yields nothing else."""


def next_window(values: Iterator[_T], num_values: int, *, is_held: bool) -> list[_T]:
    """Return the values to handle together: all that remain in a document that is held, else `num_values` at most."""
    return list(values if is_held else islice(values, num_values))


def as_window(fragments: list[Fragment], *, is_held: bool) -> list[Fragment]:
    """Return fragments as a format yields them, with all of a document that is held."""
    return AllFragments(fragments) if is_held else fragments


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """Texts that differ from their source; captions that were joined, cuts that divided their translations again, and
    captions with more characters than can be read in their time.
    """

    num_translated: int = 0
    captions_joined: int = 0
    caption_cuts: int = 0
    captions_too_fast: int = 0


# Yields fragments and receives their translations. A document that is small enough to be held yields `AllFragments`.
Rewrite = Generator[list[Fragment], list[Fragment], None]
# The same, and returns what to add to the counts of the document: `num_translated` is negative for translations that it
# did not write.
CountedRewrite = Generator[list[Fragment], list[Fragment], DocumentCounts | None]
# Yields the fragments of one file of an archive, receives their translations, and returns the new content of the file.
# Takes the content, the name, and whether the fragments must be yielded at once.
RewritePart = Callable[[bytes, str, bool], Generator[list[Fragment], list[Fragment], bytes]]


def joined(nodes: Iterable[Inline]) -> Fragment:
    """Return the nodes as a fragment, without empty strings and with neighbouring strings joined."""
    merged: list[Inline] = []
    for are_texts, run in groupby(nodes, key=lambda node: isinstance(node, str)):
        if not are_texts:
            merged.extend(run)
        elif text := "".join(map(str, run)):
            merged.append(text)
    return tuple(merged)


def texts_in(fragment: Fragment) -> Iterator[str]:
    """Yield the strings of a fragment in order."""
    for node in fragment:
        if isinstance(node, str):
            yield node
        elif isinstance(node, Wrap):
            yield from texts_in(node.children)


def num_characters(fragment: Fragment) -> int:
    """Return the number of characters of all its strings."""
    if len(fragment) == 1 and isinstance(fragment[0], str):  # most are plain texts
        return len(fragment[0])
    return sum(map(len, texts_in(fragment)))


def num_texts(fragment: Fragment) -> int:
    """Return the number of texts of a document in a fragment: one, but for captions that are translated together."""
    return 1 + sum(text.count(DIVIDER) for text in texts_in(fragment))


def has_words(fragment: Fragment) -> bool:
    """Return whether there is a letter to translate."""
    return any(character.isalpha() for text in texts_in(fragment) for character in text)


def shape(fragment: Fragment) -> tuple[object, ...]:
    """Return the structure of a fragment without its texts: equal for fragments that differ in texts alone."""
    return tuple(
        "" if isinstance(node, str) else node.key if isinstance(node, Atom) else (node.key, shape(node.children))
        for node in fragment
    )


def to_html(fragment: Fragment) -> str:
    """Return the fragment as HTML: keys are ids, `code` has protected text, `img` is an atom without, `br` a break."""
    return "".join(map(_node_to_html, fragment))


def _node_to_html(node: Inline) -> str:
    match node:
        case str():
            return html.escape(node, quote=False)
        case Wrap(key, children, name=name):  # links are spans, too: in HTML they cannot stand in each other
            return f'<{name or "span"} id="{key}">{to_html(children)}</{name or "span"}>'
        case Atom(key, ""):
            return f'<img id="{key}">'
        case Atom(key, "\n"):
            return f'<br id="{key}">'
        case Atom(key, text):
            return f'<code id="{key}">{html.escape(text, quote=False)}</code>'


def from_html(translated: str, source: Fragment) -> Fragment | None:
    """Read a translation of `to_html(source)`; returns None if an element is lost or foreign.

    A soft wrap may be split into several, and may be missing if it had no letter; every other element must occur once.
    """
    nodes = {str(node.key): node for node in _nodes_in(source)}
    body = LexborHTMLParser(translated).body
    if body is None:
        return None
    try:
        fragment = joined(_read(body, nodes))
    except _ForeignElement:
        return None
    counts = Counter(str(node.key) for node in _nodes_in(fragment))
    for key, node in nodes.items():
        is_soft = isinstance(node, Wrap) and node.is_soft
        if counts[key] == 1 or (is_soft and (counts[key] or not has_words((node,)))):
            continue
        return None
    return fragment


class _ForeignElement(Exception):
    """An element that the source does not have."""


def _nodes_in(fragment: Fragment) -> Iterator[Wrap | Atom]:
    for node in fragment:
        if not isinstance(node, str):
            yield node
        if isinstance(node, Wrap):
            yield from _nodes_in(node.children)


def _read(parent: LexborNode, nodes: dict[str, Wrap | Atom]) -> Iterator[Inline]:
    child = parent.first_child
    while child is not None:
        if child.is_text_node:
            yield child.text_content or ""
        else:
            source = nodes.get(child.attributes.get("id") or "") if child.is_element_node else None
            match source:
                case None:
                    raise _ForeignElement
                case Atom():
                    yield source
                case Wrap():
                    yield replace(source, children=joined(_read(child, nodes)))
        child = child.next


def plain_texts(fragment: Fragment) -> list[str]:
    """Return the texts of a fragment to translate as plain text: one for each stretch between hard nodes.

    Formatting does not divide a stretch, so that sentences stay whole, unless it has no letter: an exponent or a mark
    would become part of a word.
    """
    return ["".join(texts) for texts in _stretches(fragment)]


def with_plain_texts(fragment: Fragment, translations: Sequence[str]) -> Fragment:
    """Return the fragment with translations of its `plain_texts`.

    A translation takes the formatting of the longest string of its stretch (the first of equals): plain text has no
    alignment of words. Formatting that becomes empty is dropped; hard elements stay.
    """
    if len(fragment) == 1 and isinstance(fragment[0], str):  # most are
        return joined(translations)
    filled: list[str] = []
    for texts, translation in zip(_stretches(fragment), translations, strict=True):
        longest = max(range(len(texts)), key=lambda index: len(texts[index]))
        filled += [translation if index == longest else "" for index in range(len(texts))]
    return _refilled(fragment, iter(filled))


def _stretches(fragment: Fragment) -> list[list[str]]:
    stretches: list[list[str]] = [[]]
    _add_stretches(fragment, stretches)
    return [stretch for stretch in stretches if stretch]


def _add_stretches(nodes: Fragment, stretches: list[list[str]]) -> None:
    # Not a function inside `_stretches`: one that calls itself is a cycle, and only full garbage collections free it.
    for node in nodes:
        if isinstance(node, str):
            stretches[-1].append(node)
        elif isinstance(node, Wrap) and node.is_soft and has_words((node,)):
            _add_stretches(node.children, stretches)
        else:
            stretches.append([])
            if isinstance(node, Wrap):
                _add_stretches(node.children, stretches)
                stretches.append([])


def _refilled(fragment: Fragment, texts: Iterator[str]) -> Fragment:
    nodes: list[Inline] = []
    for node in fragment:
        match node:
            case str():
                nodes.append(next(texts))
            case Wrap():
                inside = _refilled(node.children, texts)
                if inside or not node.is_soft:
                    nodes.append(replace(node, children=inside))
            case Atom():
                nodes.append(node)
    return joined(nodes)
