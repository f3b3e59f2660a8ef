import io
import os

import pytest

from server.cli.translate import input_lines
from server.cli.translate.input_lines import InputLines, LineTooLong, UndecodableInput


class _Chunked(io.BytesIO):
    """A stream that returns a few bytes a read, as a pipe may."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read(3)


def _all(lines: InputLines) -> list[str]:
    found: list[str] = []
    while not lines.is_exhausted:
        found += lines.take(2, may_wait=True)
    return found


@pytest.mark.parametrize("stream", [io.BytesIO, _Chunked])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one", ["one"]),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\n\r\ntwo", ["one", "", "two"]),
        ("\ufeffgrün\n\ufeffTür\u2028x\x0by\n".encode(), ["grün", "\ufeffTür\u2028x\x0by"]),
    ],
)
def test_lines_end_at_line_feeds_only(stream: type[io.BytesIO], content: bytes, expected: list[str]) -> None:
    lines = InputLines(stream(content))
    lines.start()
    assert _all(lines) == expected


@pytest.mark.parametrize("stream", [io.BytesIO, _Chunked])
@pytest.mark.parametrize("num_characters", [0, 4, 1000])
def test_lines_before_one_that_is_not_utf8_are_returned_first(stream: type[io.BytesIO], num_characters: int) -> None:
    lines = InputLines(stream(b"one\ntwo\nthr\xff\nfour\n"))
    lines.read_beginning(num_characters)
    lines.start()
    assert lines.take(1, may_wait=True) + lines.take(1, may_wait=True) == ["one", "two"]
    assert lines.take(1, may_wait=True) == []
    with pytest.raises(UndecodableInput, match="line 3 is not UTF-8: invalid start byte at byte 3"):
        assert lines.is_exhausted


@pytest.mark.parametrize("stream", [io.BytesIO, _Chunked])
def test_a_line_that_never_ends_is_an_error_after_the_lines_before_it(
    stream: type[io.BytesIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_lines, "_CHUNK_BYTES", 5)
    monkeypatch.setattr(input_lines, "_MAX_LINE_CHARACTERS", 20)
    lines = InputLines(stream(b"one\n" + b"a" * 19 + b"\n" + b"b" * 40))
    lines.start()
    assert lines.take(1, may_wait=True) + lines.take(1, may_wait=True) == ["one", "a" * 19]
    assert lines.take(1, may_wait=True) == []
    with pytest.raises(LineTooLong, match="line 3 must have at most 20 characters; divide it, or name a text file"):
        assert lines.is_exhausted


def test_the_beginning_of_a_short_input_is_the_whole() -> None:
    assert InputLines(_Chunked(b"one\ntwo\n")).read_beginning(100) == 6
    assert InputLines(_Chunked(b"one\ntwo\n")).read_beginning(3) is None


def test_lines_of_a_pipe_are_returned_while_it_is_open() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as sink:
        sink.write(b"one\ntw")
        lines = InputLines(source)
        assert lines.read_beginning(100) is None
        lines.start()
        assert lines.take(9, may_wait=True) == ["one"]
        assert lines.take(9, may_wait=False) == []
        sink.write(b"o\n")
        assert lines.take(9, may_wait=True) == ["two"]
        sink.close()
        assert lines.take(9, may_wait=True) == []
        assert lines.is_exhausted
