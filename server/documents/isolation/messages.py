"""Messages between the serving process and a process that reads documents: frames of JSON.

JSON, because the reading process parses untrusted bytes: its messages must not be able to run code in the other one.
"""

import json
import struct

from server.documents.fragment import Atom, Fragment, Inline, Wrap

# Far above a batch of fragments and one paragraph of the longest length, in the widest encoding.
MAX_FRAME_BYTES = 32_000_000
_LENGTH = struct.Struct(">L")
LENGTH_BYTES = _LENGTH.size


def frame(message: dict[str, object]) -> bytes:
    """Encode a message with its length in front."""
    content = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(content)) + content


def frame_length(header: bytes) -> int:
    """Return the number of bytes that follow a header; raises ValueError for more than a message can have."""
    (length,) = _LENGTH.unpack(header)
    if length > MAX_FRAME_BYTES:
        raise ValueError(f"a message may have {MAX_FRAME_BYTES} bytes. Given: {length}")
    return int(length)


def parse_frame(content: bytes) -> dict[str, object]:
    """Decode the content of a frame; raises ValueError for anything but an object."""
    message = json.loads(content.decode("utf-8", "surrogatepass"))
    if not isinstance(message, dict):
        raise ValueError("a message must be an object")
    return message


def encode_fragment(fragment: Fragment) -> object:
    """Return a fragment as JSON: a plain text is a string, an atom a list of two values, a wrap a list of four."""
    if len(fragment) == 1 and isinstance(fragment[0], str):
        return fragment[0]
    return [_encode_node(node) for node in fragment]


def _encode_node(node: Inline) -> object:
    match node:
        case str():
            return node
        case Atom(key, text):
            return [key, text]
        case Wrap(key, children, is_soft, name):
            return [key, encode_fragment(children), is_soft, name]


def decode_fragment(value: object) -> Fragment:
    """Return the fragment of `encode_fragment`; raises ValueError for any other value."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise ValueError("a fragment must be a text or a list")
    return tuple(map(_decode_node, value))


def _decode_node(value: object) -> Inline:
    match value:
        case str():
            return value
        case [int(key), str(text)]:
            return Atom(key, text)
        case [int(key), list() | str() as children, bool(is_soft), str(name)]:
            return Wrap(key, decode_fragment(children), is_soft, name)
        case _:
            raise ValueError("a node of a fragment must be a text, an atom or a wrap")


def decode_fragments(value: object) -> list[Fragment]:
    """Return a list of fragments; raises ValueError for any other value."""
    if not isinstance(value, list):
        raise ValueError("fragments must be a list")
    return list(map(decode_fragment, value))
