"""Packages whose parts and types are declared in less usual ways."""

import pytest

from server.interface.errors import InvalidDocument
from tests.server.documents.documents import LOUD, packed, translated, unpacked
from tests.server.documents.spreadsheets import workbook

_TYPES = "[Content_Types].xml"


def _edited(old: bytes, new: bytes) -> bytes:
    """Return the workbook with an edited list of types."""
    files = unpacked(workbook())
    assert old in files[_TYPES]
    files[_TYPES] = files[_TYPES].replace(old, new)
    return packed(files)


def test_a_part_without_a_type_of_its_own_has_that_of_its_extension() -> None:
    kind = b'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"'
    content = _edited(b'<Override PartName="/xl/sharedStrings.xml" ', b'<Default Extension="XML" ')
    assert kind in unpacked(content)[_TYPES]
    result = unpacked(translated(content, ".xlsx", LOUD))
    assert b"GOOD MORNING" in result["xl/sharedStrings.xml"]
    assert b"INSIDE TEXT" in result["xl/worksheets/sheet1.xml"]


def test_names_of_parts_are_compared_without_regard_to_case() -> None:
    content = _edited(b"/xl/sharedStrings.xml", b"/xl/SharedStrings.XML")
    assert b"GOOD MORNING" in unpacked(translated(content, ".xlsx", LOUD))["xl/sharedStrings.xml"]


def test_a_package_without_its_main_part_is_rejected() -> None:
    with pytest.raises(InvalidDocument, match="contains no document of the format"):
        translated(_edited(b"/xl/workbook.xml", b"/xl/book.xml"), ".xlsx", LOUD)


def test_a_strict_document_is_rejected_instead_of_left_untranslated() -> None:
    files = unpacked(workbook())
    usual, strict = (
        b"http://schemas.openxmlformats.org/spreadsheetml/2006/",
        b"http://purl.oclc.org/ooxml/spreadsheetml/",
    )
    content = packed({name: part.replace(usual, strict) for name, part in files.items()})
    with pytest.raises(InvalidDocument, match=r"xl/sharedStrings.xml is Strict Open XML, which is not"):
        translated(content, ".xlsx", LOUD)
