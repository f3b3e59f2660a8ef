import pytest
from lxml import etree

from server.interface.errors import InvalidDocument
from tests.server.documents.documents import LOUD, SAME, translated, unpacked
from tests.server.documents.spreadsheets import SHEET, odf_presentation, spreadsheet, workbook


@pytest.mark.parametrize(
    ("extension", "document"), [(".xlsx", workbook()), (".ods", spreadsheet()), (".odp", odf_presentation())]
)
def test_every_part_is_the_same_when_nothing_changes(extension: str, document: bytes) -> None:
    assert unpacked(translated(document, extension, SAME)) == unpacked(document)


def test_texts_of_a_workbook_are_translated_and_nothing_else() -> None:
    before, after = unpacked(workbook()), unpacked(translated(workbook(), ".xlsx", LOUD))
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"xl/sharedStrings.xml", "xl/worksheets/sheet1.xml", "xl/comments1.xml"}
    shared = after["xl/sharedStrings.xml"].decode()
    for part in (
        "<si><t>GOOD MORNING</t></si>",
        '<rPr><b/><sz val="11"/></rPr><t>BOLD</t>',
        "<t>Product</t>",  # the table names it
        "<t>Total price</t>",
        "TWO\nLINES HERE</t><phoneticPr",
        "<t>item_code</t>",
        "<t>2024-01-31</t>",
        "<t>トウキョウ</t>",
    ):
        assert part in shared, part
    sheet = after["xl/worksheets/sheet1.xml"].decode()
    assert "<is><t>INSIDE TEXT</t></is>" in sheet
    assert '<f>IF(B1&gt;1,"high one","low one")</f><v>high one</v>' in sheet
    comments = after["xl/comments1.xml"].decode()
    assert "PLEASE CHECK" in comments
    assert "Tom Smith" in comments


def test_without_a_table_headings_are_translated() -> None:
    bare = '<table xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"/>'
    shared = unpacked(translated(workbook(table=bare), ".xlsx", LOUD))["xl/sharedStrings.xml"]
    assert b"<t>PRODUCT</t>" in shared


def test_texts_that_stand_in_cells_as_values_are_translated() -> None:
    cells = (
        '<c r="A1" t="str"><v>one two</v></c>',
        '<c r="B1" s="1" t="str"><f>A1</f><v>one two</v></c>',
        '<c r="C1"><v>12.5</v></c><c r="D1" t="e"><v>#REF!</v></c><c r="E1" t="str"><v>item_code</v></c>',
        '<c r="F1" t="str"><v>Product</v></c>',  # the table names it
    )
    sheet = f'<worksheet xmlns="{SHEET}"><sheetData><row r="1">{"".join(cells)}</row></sheetData></worksheet>'
    content = workbook(sheet=sheet)
    assert unpacked(translated(content, ".xlsx", SAME)) == unpacked(content)
    result = unpacked(translated(content, ".xlsx", LOUD))["xl/worksheets/sheet1.xml"].decode()
    assert result == sheet.replace(cells[0], cells[0].replace("one two", "ONE TWO"))


def test_escaped_characters_of_a_workbook_are_no_words() -> None:
    texts = ("Hello_x000D_\n", "two words_x000D_\nor more", "not a _x005F_x000D_ break", "Total_x000D_\nprice")
    shared = f'<sst xmlns="{SHEET}">{"".join(f"<si><t>{text}</t></si>" for text in texts)}</sst>'
    table = f'<table xmlns="{SHEET}"><tableColumn name="Total_x000d__x000a_price"/></table>'
    content = workbook(shared=shared, table=table)
    assert unpacked(translated(content, ".xlsx", SAME)) == unpacked(content)
    result = unpacked(translated(content, ".xlsx", LOUD))["xl/sharedStrings.xml"].decode()
    assert [leaf.text for leaf in etree.fromstring(result).iter("{*}t")] == [
        "HELLO\r\n",
        "TWO WORDS\r\nOR MORE",
        "NOT A _X005F_X000D_ BREAK",  # what is not a line break has no better form for a reader
        "Total_x000D_\nprice",  # the table names it
    ]


def test_cells_with_numbers_dates_and_formulas_stay_in_an_opendocument_spreadsheet() -> None:
    after = unpacked(translated(spreadsheet(), ".ods", LOUD))
    content = after["content.xml"].decode()
    assert "<text:p>GOOD MORNING <text:span>DEAR</text:span> TOM</text:p>" in content
    assert "<text:p>31 January</text:p>" in content
    assert "<text:p>a result</text:p>" in content
    assert 'table:name="Sheet one"' in content
    assert after["settings.xml"] == b"<x>Good</x>"


def test_slides_and_notes_of_an_opendocument_presentation_are_translated() -> None:
    content = unpacked(translated(odf_presentation(), ".odp", LOUD))["content.xml"].decode()
    assert all(f"<text:p>{text}</text:p>" in content for text in ("GOOD TITLE", "FIRST POINT", "SAY HELLO"))
    assert 'draw:name="page1"' in content


def test_an_opendocument_file_of_another_kind_is_rejected_with_its_type() -> None:
    with pytest.raises(InvalidDocument, match=r"of an OpenDocument text. Given: '.*spreadsheet'"):
        translated(spreadsheet(), ".odt", SAME)
