"""Pieces of HTML and XML by their roles."""

import pytest

from server.interface.errors import InvalidRequest
from server.text.readers.html import read_html
from server.text.readers.pieces import NO_MARKUP_OPTIONS, MarkupOptions, to_document
from server.text.readers.units import Unit
from server.text.readers.visible_text import visible_text
from server.text.readers.xml import read_xml
from server.text.unknown_characters import UnknownCharacters

_LATIN = UnknownCharacters(map(chr, range(256)))
_LETTERS = {"TEXT": "T", "REFERENCE": "R", "OPENING": "O", "CLOSING": "C", "MARK": "M", "PROTECTED": "P", "BORDER": "B"}


def _read(text: str, format_: str, options: MarkupOptions = NO_MARKUP_OPTIONS) -> str:
    """Return the roles of the pieces, each with what was written."""
    pieces = read_html(text, options) if format_ == "html" else read_xml(text, options)
    assert "".join(piece.raw for piece in pieces) == text
    return "|".join(f"{_LETTERS[piece.role.name]}{piece.raw}" for piece in pieces)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <b>c</b>&amp;&#65;", "Ta |O<b>|Tc|C</b>|R&amp;|R&#65;"),
        ("<p>a</p><br>b<hr/>", "B<p>|Ta|B</p>|B<br>|Tb|B<hr/>"),
        ("a<img src=x>b<span/>c<!-- x --><?x?>", "Ta|M<img src=x>|Tb|M<span/>|Tc|M<!-- x -->|M<?x?>"),
        ("a <code>x<code>y</code></code> b", "Ta |P<code>x<code>y</code></code>|T b"),
        ("<script>a<b</script>c", "M<script>a<b</script>|Tc"),
        (
            "a <i translate=no>x</i> <p class='notranslate'>y</p>",
            "Ta |P<i translate=no>x</i>|T |B<p class='notranslate'>y</p>",
        ),
        ("a <img translate=no> b", "Ta |M<img translate=no>|T b"),
        ("<code>a", "P<code>a"),
        ("a</b>c</p>", "Ta|C</b>|Tc|B</p>"),
        ("a < b", "Ta |T<|T b"),
        ("a <b", "Ta |M<b"),
        ("<!DOCTYPE html>a", "B<!DOCTYPE html>|Ta"),
        ("a\n<b>c\n</b>\nd", "Ta\n|O<b>|Tc\n|C</b>|T\nd"),
        ("\ufeffa", "B\ufeff|Ta"),
    ],
)
def test_pieces_of_html(text: str, expected: str) -> None:
    assert _read(text, "html") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a>x <b>y</b></a>", "B<a>|Tx |O<b>|Ty|C</b>|B</a>"),
        ("<a><b>y</b> <c>z</c></a>", "B<a>|B<b>|Ty|B</b>|T |B<c>|Tz|B</c>|B</a>"),
        ("<a>x<b/>y &amp; &#65;</a>", "B<a>|Tx|M<b/>|Ty |R&amp;|T |R&#65;|B</a>"),
        ("<a>x <code>y<i>z</i></code> w</a>", "B<a>|Tx |P<code>y<i>z</i></code>|T w|B</a>"),
        ("<a>x <p>y</p></a>", "B<a>|Tx |B<p>|Ty|B</p>|B</a>"),
        ("<a>x<!-- c --><![CDATA[y<]]>z</a>", "B<a>|Tx|M<!-- c -->|M<![CDATA[y<]]>|Tz|B</a>"),
        ("x <b>y</b>", "Tx |O<b>|Ty|C</b>"),
        ("<a>x <ph:b translate='no'>y</ph:b></a>", "B<a>|Tx |P<ph:b translate='no'>y</ph:b>|B</a>"),
        ("<?xml version='1.0'?><a>x</a>", "B<?xml version='1.0'?>|B<a>|Tx|B</a>"),
        ("<a>x <script>y</script></a>", "B<a>|Tx |M<script>y</script>|B</a>"),
        ("<a>x<b><c></c></b>y</a>", "B<a>|Tx|O<b>|O<c>|C</c>|C</b>|Ty|B</a>"),
        ("<a>x<b><c>y</c></b></a>", "B<a>|Tx|O<b>|B<c>|Ty|B</c>|C</b>|B</a>"),
        ("", "B"),
    ],
)
def test_pieces_of_xml(text: str, expected: str) -> None:
    assert _read(text, "xml") == expected


@pytest.mark.parametrize("format_", ["html", "xml"])
def test_options_name_elements(format_: str) -> None:
    text = "<a>x <b>y</b></a>"
    splitting = MarkupOptions(splitting_tags=frozenset("b"))
    assert "|B<b>|Ty|B</b>" in _read(text, format_, splitting)
    assert "|P<b>y</b>" in _read(text, format_, MarkupOptions(ignore_tags=frozenset("b")))
    inside = "<div>x <p>y</p></div>"
    assert "|O<p>|Ty|C</p>" in _read(inside, format_, MarkupOptions(non_splitting_tags=frozenset("p")))


def test_xml_may_be_nested_a_thousand_deep() -> None:
    assert _read("<a>" * 900 + "x" + "</a>" * 900, "xml")
    with pytest.raises(InvalidRequest, match="at most 1000 deep"):
        _read("<a>" * 1001 + "x" + "</a>" * 1001, "xml")


def test_characters_written_as_entities_stay_entities() -> None:
    document = to_document(read_html("<p>a &eacute; &lt; b</p>&#65;!", NO_MARKUP_OPTIONS), _LATIN)
    first, second = (part for part in document if isinstance(part, Unit))
    assert first.text == "a \xe9 < b"
    assert first.escape("\xe9 <") == "&eacute; &lt;"
    assert second.text == "A!"
    assert second.escape("A \xe9") == "&#65; \xe9"
    assert document[0] == "<p>"


def test_units_without_words_stay_as_they_are_written() -> None:
    assert to_document(read_html("<p>12 <b>3</b></p>", NO_MARKUP_OPTIONS), _LATIN) == ["<p>", "12 <b>3</b>", "</p>"]


def test_the_visible_text_of_markup_has_no_tags() -> None:
    text = "<p>a &amp; <code>x</code> b</p>"
    assert visible_text(text, "html", NO_MARKUP_OPTIONS).split() == ["a", "&", "b"]
    assert visible_text(text, "xml", NO_MARKUP_OPTIONS).split() == ["a", "&", "b"]
    assert visible_text(text, "text", NO_MARKUP_OPTIONS) == text
