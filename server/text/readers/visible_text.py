"""What people read of a text with mark-up, to tell which language it is in."""

from html import unescape

from server.text.readers.html import read_html
from server.text.readers.pieces import MarkupOptions, Role
from server.text.readers.xml import read_xml


def readable(text: str, format_: str, options: MarkupOptions) -> str:
    """The text without tags, comments and whatever is not translated; as it is unless the format is html or xml.

    Raises `InvalidRequest` for XML that is not well-formed.
    """
    if format_ not in ("html", "xml"):
        return text
    pieces = read_html(text, options) if format_ == "html" else read_xml(text, options)
    return " ".join(unescape(piece.raw) for piece in pieces if piece.role in (Role.TEXT, Role.REFERENCE))
