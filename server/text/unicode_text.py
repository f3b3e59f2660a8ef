"""Replacement of lone surrogates, which no text encoding accepts."""

import re

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def replace_lone_surrogates(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD, so that it can be written as UTF-8."""
    # Python keeps whether a string is ASCII, so most texts are not searched.
    return text if text.isascii() else _LONE_SURROGATE.sub(_REPLACEMENT, text)
