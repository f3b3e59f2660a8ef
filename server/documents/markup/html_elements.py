"""Roles of HTML elements (https://html.spec.whatwg.org/multipage/indices.html)."""

from server.documents.markup.items import Attributes, Role

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
