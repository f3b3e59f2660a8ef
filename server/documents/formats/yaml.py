"""YAML: the texts among the values. Comments, keys, anchors, tags, quotes and indentation stay as they are written."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

import regex
import yaml

from server.documents.input.limits import Density
from server.documents.markup.line_wrapping import rewrap
from server.documents.markup.text_values import TextValue, is_for_programs, is_text, rewrite_values
from server.interface.errors import DocumentTooLarge, InvalidDocument
from server.text.readers.icu_messages import message_parts

_MAX_CHARACTERS = 4_000_000
_MAX_DEPTH = 100
_EVENTS = Density(50_000, 10)  # keys, values, and ends of collections: 4 us each
# libyaml scans forty times faster than Python. Packages of some systems lack it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Characters that end a line in YAML 1.1, which the library reads, and not in YAML 1.2; and what it reads for them.
_LINE_ENDS, _SAME_WIDTH = "\x85\u2028\u2029", "\U0010fff0\U0010fff1\U0010fff2"
_TO_TEXT, _FROM_TEXT = str.maketrans(_LINE_ENDS, _SAME_WIDTH), str.maketrans(_SAME_WIDTH, _LINE_ENDS)
_INDICATORS = tuple("-?:,[]{}#&*!|>'\"%@`= \t")
_CONSTANT = regex.compile(r"(?i)(?:true|false|yes|no|on|off|null|~|y|n|[-+]?[0-9.][0-9_.e+:-]*)")
_STYLES = {"|", ">"}
_ESCAPED = regex.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]')
_STARTS = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_ENDS = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_NODES = (*_STARTS, yaml.ScalarEvent, yaml.AliasEvent)
# Anchor and tag of a value, which are part of its event.
_PROPERTIES = regex.compile(r"(?:[&!]\S*+(?:\s++|#[^\n]*+)*+)++")
_HEADER = regex.compile(r"[|>][^\r\n]*(?:\r\n|\r|\n)")


class _Scalar(NamedTuple):
    key: str  # the last one before it
    begin: int
    end: int
    style: str | None
    text: str


class _Line(NamedTuple):
    """A line of a block: the places of its text, from the beginning of the block."""

    begin: int
    end: int
    indent: int
    text: str


def _values(text: str) -> Iterator[TextValue]:
    if len(text) > _MAX_CHARACTERS:
        raise DocumentTooLarge(f"a YAML file may have {_MAX_CHARACTERS} characters. Given: {len(text)}")
    for scalar in _scalars(text):
        if is_for_programs(scalar.key, scalar.text):
            continue
        raw = text[scalar.begin : scalar.end]
        if scalar.style in _STYLES:
            yield from _block_values(raw, scalar)
        elif is_text(scalar.text) and not (scalar.style is None and _CONSTANT.fullmatch(scalar.text)):
            yield TextValue(scalar.begin, scalar.end, scalar.text, _writer(scalar.style))


def _scalars(text: str) -> Iterator[_Scalar]:
    """Yield the scalars that are not keys. Raises `InvalidDocument` with the line of a mistake."""
    text = text.translate(_TO_TEXT)
    key = ""
    # For each open collection, whether its next node is a key; None in a sequence.
    expects_key: list[bool | None] = [None]
    try:
        for event in _EVENTS.bounded(
            yaml.parse(text, Loader=_LOADER), len(text), "keys, values and ends of collections"
        ):
            kind = type(event)  # faster than isinstance; a dense file has 300,000 events
            if kind in _ENDS:
                expects_key.pop()
                continue
            if kind not in _NODES:
                continue
            is_key = expects_key[-1]
            if is_key is not None:
                expects_key[-1] = not is_key
            if kind in _STARTS:
                expects_key.append(True if kind is yaml.MappingStartEvent else None)
                if len(expects_key) > _MAX_DEPTH + 1:
                    raise InvalidDocument(f"the values of a YAML file may be nested {_MAX_DEPTH} deep. Given: deeper")
            elif kind is yaml.ScalarEvent:
                begin, end = event.start_mark.index, event.end_mark.index
                if begin == end:
                    continue
                value = event.value.translate(_FROM_TEXT)
                if is_key:
                    key = value
                    continue
                if text[begin] in "&!" and (properties := _PROPERTIES.match(text, begin, end)) is not None:
                    begin = properties.end()
                yield _Scalar(key, begin, end, event.style or None, value)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise InvalidDocument(f"invalid YAML: {error.problem or error.context}{line}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidDocument(f"invalid YAML: {str(error).splitlines()[0]}") from error


def _block_values(raw: str, scalar: _Scalar) -> Iterator[TextValue]:
    """Yield each line of a literal text, and each paragraph of a folded one."""
    header = _HEADER.match(raw)
    if header is None or not is_text(scalar.text):
        return
    if len(message_parts(body := raw[header.end() :])) > 1:  # its arguments may go over several lines
        yield TextValue(scalar.begin + header.end(), scalar.end, body, str)
        return
    lines = list(_block_lines(raw, header.end()))
    indent = next((line.indent for line in lines if line.text), 0)
    # Lines that are indented further are not folded; with an indicator of indentation, all lines may be.
    is_folded = scalar.style == ">" and not any(map(str.isdigit, header[0][1:3]))
    for is_paragraph, group in groupby(lines, lambda line: is_folded and line.text != "" and line.indent == indent):
        for part in [list(group)] if is_paragraph else [[line] for line in group if line.text]:
            begin, end = scalar.begin + part[0].begin, scalar.begin + part[-1].end
            yield TextValue(begin, end, " ".join(line.text for line in part), _block_writer(raw, part))


def _block_lines(raw: str, position: int) -> Iterator[_Line]:
    for line in regex.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", raw[position:]):
        text = line.strip()
        indent = line.index(text)
        yield _Line(position + indent, position + indent + len(text), indent, text)
        position += len(line)


def _block_writer(raw: str, lines: Sequence[_Line]) -> Callable[[str], str]:
    def write(value: str) -> str:
        value = value.replace("\n", " ")
        if len(lines) == 1:
            return value
        line_break = raw[lines[0].end : lines[1].begin].lstrip(" \t")
        return rewrap(value.split(" "), max(len(line.text) for line in lines), line_break)

    return write


def _writer(style: str | None) -> Callable[[str], str]:
    def write(value: str) -> str:
        if style == "'" and "\n" not in value:
            return "'" + value.replace("'", "''") + "'"
        if style is None and _is_plain(value):
            return value
        return '"' + _ESCAPED.sub(_escape, value) + '"'

    return write


def _escape(found: regex.Match[str]) -> str:
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return named.get(found[0]) or f"\\u{ord(found[0]):04x}"


def _is_plain(value: str) -> bool:
    """Return whether a text needs no quotes, in a flow collection either."""
    return not (
        value.startswith(_INDICATORS)
        or value != value.strip()
        or ": " in value
        or " #" in value
        or value.endswith(":")
        or any(mark in value for mark in "\n,[]{}")
        or _CONSTANT.fullmatch(value)
    )


rewrite = partial(rewrite_values, _values)
