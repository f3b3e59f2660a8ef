"""Random documents for tests, the same ones for a seed."""

import random
from collections.abc import Callable, Sequence
from html import escape
from typing import TypeVar

T = TypeVar("T")

_WORDS = (
    "the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "good", "morning", "how", "are", "you",
    "today", "where", "is", "it", "Tom", "new", "house",
)  # fmt: skip
_INLINE = ("b", "i", "em", "strong", "a", "span", "u", "x-name")
_BLOCKS = ("p", "div", "li", "h2", "td", "section")
_XML_NAMES = ("seg", "note", "ref", "ph:term", "item", "g")


class DocumentMaker:
    """Makes documents of nested blocks with nested inline elements, entities, comments, code and attributes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def html(self) -> str:
        """Return a fragment, or sometimes a whole document."""
        blocks = "".join(self._block(self._random.randint(0, 3)) for _ in range(self._random.randint(1, 4)))
        if self._random.random() < 0.3:
            style = "<style>p > b { color: red }</style><script>if (a < b && c) { x = '</p>'.length }</script>"
            head = f"<head><meta charset=utf-8><title>{self._sentence()}</title>{style}</head>"
            return f"<!DOCTYPE html>\n<html lang=en>{head}<body class='a b'>\n{blocks}\n</body></html>\n"
        return blocks

    def xml(self) -> str:
        """A whole document, or now and then a fragment."""
        inside = "".join(self._element(self._random.randint(0, 3)) for _ in range(self._random.randint(1, 4)))
        if self._random.random() < 0.3:
            return self._inline(2, _XML_NAMES, is_xml=True)
        prolog = self._pick(['<?xml version="1.0" encoding="UTF-8"?>\n', "", "<!-- made -->\n", "<!DOCTYPE doc>\n"])
        return f"{prolog}<doc xmlns:ph='urn:x' a=\"1 &lt; 2\">\n  {inside}\n</doc>"

    def _block(self, depth: int) -> str:
        name = self._pick(_BLOCKS)
        kinds: list[Callable[[], str]] = [lambda: self._inline(3, _INLINE)] * 4
        kinds.append(lambda: "".join(self._block(depth - 1) for _ in range(2)) if depth else "")
        kinds.append(lambda: "<pre>  a\n  <b>b</b></pre><hr>")
        body = self._pick(kinds)()
        space = self._pick(["", "", "\n  "])
        return f"<{name}{self._attributes()}>{space}{body}{space}</{name}>\n"

    def _element(self, depth: int) -> str:
        name = self._pick(_XML_NAMES)
        if depth and self._random.random() < 0.5:
            body = "\n".join(self._element(depth - 1) for _ in range(2))
        else:
            body = self._pick([self._inline(3, _XML_NAMES, is_xml=True), "", "<![CDATA[<not> & text]]>"])
        return f"<{name}{self._attributes(is_xml=True)}>{body}</{name}>"

    def _inline(self, depth: int, names: Sequence[str], is_xml: bool = False) -> str:
        """Words, entities and inline elements."""
        parts = []
        for _ in range(self._random.randint(1, 6)):
            kind = self._random.random()
            if depth and kind < 0.3:
                name = self._pick(names)
                names_inside = [each for each in names if not name == each == "a"]  # no link inside a link
                attributes = self._attributes(is_xml)
                space = self._pick(["", "", "", " "])
                parts.append(
                    f"<{name}{attributes}>{space}{self._inline(depth - 1, names_inside, is_xml)}{space}</{name}>"
                )
            elif kind < 0.36:
                parts.append("<x id='7'/>" if is_xml else self._pick(["<img src=a.png alt='>'>", "<br>", "<wbr>"]))
            elif kind < 0.4:
                parts.append("<!-- a <b> comment -->")
            elif kind < 0.44:
                parts.append("<code>a &lt; b</code>")
            elif kind < 0.48:
                parts.append('<seg translate="no">Kvasir Ltd</seg>' if is_xml else '<span translate="no">Kvasir</span>')
            elif kind < 0.56:
                parts.append(self._pick(["&amp;", "&lt;", "&#228;", "&gt;"] if is_xml else ["&amp;", "&auml;", "&lt;"]))
            else:
                parts.append(escape(self._sentence(), quote=False))
        return self._pick([" ", " ", ""]).join(parts)

    def _sentence(self) -> str:
        words = " ".join(self._random.choices(_WORDS, k=self._random.randint(1, 6)))
        return words[:1].upper() + words[1:] + self._pick([".", "?", "", ","])

    def _attributes(self, is_xml: bool = False) -> str:
        written = self._pick(["", "", ' id="x1"', " title='Good morning &amp; more'", ' data-a="a>b"'])
        return written + ("" if is_xml else self._pick(["", "", " hidden", " class=big"]))

    def _pick(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)
