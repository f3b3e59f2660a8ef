"""ICU messages in documents: a paragraph whose plural and select arguments have texts of their own."""

import re

from server.documents.fragment import Fragment, has_words, joined
from server.text.readers.icu_messages import message_parts

_NODE = "\N{OBJECT REPLACEMENT CHARACTER}"
_NODES = re.compile(f"({_NODE})")

# Whether a part is translated, and the part; joined they are the paragraph.
FragmentParts = list[tuple[bool, Fragment]]


def fragment_parts(fragment: Fragment) -> FragmentParts:
    """Divide a paragraph into texts to translate and the syntax of messages between them; most are one text.

    An element may stand in a branch, and syntax that is divided by one is text.
    """
    texts = [node for node in fragment if isinstance(node, str)]
    if not any("{" in text for text in texts) or any(_NODE in text for text in texts):
        return [(True, fragment)]
    parts = message_parts("".join(node if isinstance(node, str) else _NODE for node in fragment))
    if len(parts) == 1:
        return [(True, fragment)]
    nodes = iter([node for node in fragment if not isinstance(node, str)])
    divided = [
        (is_text, joined(next(nodes) if piece == _NODE else piece for piece in _NODES.split(part)))
        for is_text, part in parts
    ]
    return [(is_text and has_words(part), part) for is_text, part in divided]
