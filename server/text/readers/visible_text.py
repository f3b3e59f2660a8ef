"""The visible text of a document with markup, for language detection."""

from html import unescape

from server.text.readers.html import read_html
from server.text.readers.pieces import MarkupOptions, Role
from server.text.readers.xml import read_xml


def visible_text(text: str, format_: str, options: MarkupOptions) -> str:
    """Return a text without tags, comments and elements that are not translated; plain text as it is.

    Raises `InvalidRequest` for XML that is not well-formed.
    """
    if format_ not in ("html", "xml"):
        return text
    pieces = read_html(text, options) if format_ == "html" else read_xml(text, options)
    return " ".join(unescape(piece.raw) for piece in pieces if piece.role in (Role.TEXT, Role.REFERENCE))
