import pytest

from server.documents.fragment import Atom, Fragment, Wrap
from server.documents.isolation.messages import (
    LENGTH_BYTES,
    MAX_FRAME_BYTES,
    decode_fragment,
    decode_fragments,
    encode_fragment,
    frame,
    frame_length,
    parse_frame,
)


def test_a_message_is_read_as_it_was_written() -> None:
    message: dict[str, object] = {"text": "Größe 😀 \ud800", "number": 3, "list": ["a", None]}
    content = frame(message)
    assert frame_length(content[:LENGTH_BYTES]) == len(content) - LENGTH_BYTES
    assert parse_frame(content[LENGTH_BYTES:]) == message


def test_a_message_may_have_the_largest_length_and_no_more() -> None:
    assert frame_length(MAX_FRAME_BYTES.to_bytes(4, "big")) == MAX_FRAME_BYTES
    with pytest.raises(ValueError, match=f"may have {MAX_FRAME_BYTES} bytes. Given: {MAX_FRAME_BYTES + 1}"):
        frame_length((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(ValueError, match="must be an object"):
        parse_frame(b"[1]")


@pytest.mark.parametrize(
    "fragment",
    [
        ("plain",),
        (),
        ("a", Atom(1), Atom(2, "code"), "b"),
        (Wrap(1, ("a", Wrap(2, ("b",), is_soft=False))), "c"),
        (Wrap(1, (), name="sup"),),
    ],
)
def test_a_fragment_is_read_as_it_was_written(fragment: Fragment) -> None:
    assert decode_fragment(encode_fragment(fragment)) == fragment


@pytest.mark.parametrize(
    "value", [None, 3, {"a": 1}, [3], [[1]], [["a", "b"]], [[1, 2]], [[1, "a", 1]], [[1, 2, True]]]
)
def test_anything_else_is_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="fragment"):
        decode_fragment(value)
    with pytest.raises(ValueError, match="fragment"):
        decode_fragments(value if not isinstance(value, list) else [3])
