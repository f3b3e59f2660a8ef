import contextlib
import io
from collections.abc import Callable

import pytest
from lxml import etree
from xlsxwriter import Workbook

from server.interface.errors import InvalidDocument
from tests.server.documents.documents import LOUD, SAME, packed, read_soon, translated, unpacked
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


def _written(write: Callable[[Workbook], None]) -> bytes:
    """A workbook as a program writes it."""
    stream = io.BytesIO()
    with Workbook(stream) as book:
        write(book)
    return stream.getvalue()


def _stays(document: bytes) -> set[str]:
    """The texts of a workbook that are not translated."""
    shared = unpacked(translated(document, ".xlsx", LOUD))["xl/sharedStrings.xml"]
    texts = ["".join(leaf.text or "" for leaf in item.iter("{*}t")) for item in etree.fromstring(shared)]
    return {text for text in texts if text != text.upper()}


COLOURS = ("light red", "dark blue", "green")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (list(COLOURS), None),
        ("=$E$2:$E$4", None),
        ("='My ''old'' colours'!$A$1:$A$3", None),
        ("=Palette", "=Colours!$A$1:$A$3"),
        ("=OFFSET(Colours!$A$1,0,0,COUNTA(Colours!$A:$A),1)", None),
    ],
)
def test_cells_with_a_list_and_the_cells_that_it_names_stay(source: str | list[str], name: str | None) -> None:
    def write(book: Workbook) -> None:
        sheets = [book.add_worksheet(each) for each in ("First", "Colours", "My 'old' colours")]
        if name is not None:
            book.define_name("Palette", name)
        sheets[0].write_column("A1", ["the colour", COLOURS[1], COLOURS[0], "not in the list"])
        sheets[0].data_validation("A2:A3", {"validate": "list", "source": source})
        sheets[0].data_validation("B1:B9", {"validate": "length", "criteria": ">", "value": 3})
        sheets[0].write_column("B1", ["some long text"])
        for sheet, place in zip(sheets, ("E2", "A1", "A1"), strict=True):
            if isinstance(source, str):
                sheet.write_column(place, COLOURS)

    stays = _stays(_written(write))
    assert stays == set(COLOURS if isinstance(source, str) else COLOURS[:2])


def test_lists_of_newer_versions_of_excel_are_lists() -> None:
    extension = (
        '<extLst><ext><x14:dataValidations xmlns:x14="a" xmlns:xm="b"><x14:dataValidation type="list"><x14:formula1>'
        "<xm:f>First!$B$1</xm:f></x14:formula1><xm:sqref>A1</xm:sqref></x14:dataValidation></x14:dataValidations></ext></extLst>"
    )
    cells = "".join(f'<c t="inlineStr"><is><t>{text}</t></is></c>' for text in ("one dog", "two dogs", "a cat"))
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>'
    )
    book = (
        f'<workbook xmlns="{SHEET}"><sheets><sheet name="First" sheetId="1" r:id="rId1" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"/></sheets></workbook>'
    )
    files = unpacked(
        workbook(sheet=f'<worksheet xmlns="{SHEET}"><sheetData><row>{cells}</row></sheetData>{extension}</worksheet>')
    )
    files["xl/workbook.xml"] = book.encode()
    files["xl/_rels/workbook.xml.rels"] = relations.encode()
    sheet = unpacked(translated(packed(files), ".xlsx", LOUD))["xl/worksheets/sheet1.xml"].decode()
    assert "<t>one dog</t>" in sheet
    assert "<t>two dogs</t>" in sheet
    assert "<t>A CAT</t>" in sheet


def test_texts_that_formulas_and_filters_compare_stay() -> None:
    def write(book: Workbook) -> None:
        sheet = book.add_worksheet()
        sheet.write_column(
            "A1", ["Status now", "still open", "on hold", "sent off", "no one", "all done", "very late", "big one"]
        )
        sheet.write_formula("B2", '=IF(A2="still open","big one","no one")')
        sheet.write_formula("B3", '=COUNTIF(A:A,"on hold")+SUM(1)')
        sheet.write_formula("B4", '="SENT OFF"<>A4')
        sheet.conditional_format("A2:A9", {"type": "text", "criteria": "containing", "value": "very late"})
        sheet.autofilter("A1:A9")
        sheet.filter_column_list("A", ["all done"])

    assert _stays(_written(write)) == {"still open", "on hold", "sent off", "very late", "all done"}


def test_texts_that_match_a_criterion_stay() -> None:
    def write(book: Workbook) -> None:
        sheet = book.add_worksheet()
        sheet.write_column("A1", ["open now", "re-open", "shut off", "shut on", "on hold", "a 100* hotel", "100 beds"])
        sheet.write_column("A8", ["the first one here", "the one here first", "too late"])
        sheet.write_formula("B1", '=COUNTIF(A:A,"open*")+COUNTIF(A:A,"<>on hold")+COUNTIF(A:A,">=5")')
        sheet.write_formula("B2", '=SUMIF(A:A,"=shut o?",C:C)+COUNTIF(A:A,"*100~*?hotel")+COUNTIF(A:A,"*")')
        sheet.write_formula("B3", '=MATCH("the*one*here",A:A,0)')

    assert _stays(_written(write)) == {"open now", "shut on", "on hold", "a 100* hotel", "the first one here"}


@pytest.mark.parametrize("source", ["=Palette", '=INDIRECT("Colours[The colour]")'])
def test_a_list_may_name_the_column_of_a_table(source: str) -> None:
    def write(book: Workbook) -> None:
        first, second = book.add_worksheet("First"), book.add_worksheet("Second")
        first.data_validation("A1:A3", {"validate": "list", "source": source})
        columns = [{"header": "The code"}, {"header": "The colour"}, {"header": "Some words"}]
        rows = [["a b", COLOURS[0], "not this"], ["c d", COLOURS[1], "nor this"]]
        second.add_table("B2:D4", {"name": "Colours", "columns": columns, "data": rows})
        book.define_name("Palette", "=Colours[The colour]")

    headings = {"The code", "The colour", "Some words"}
    assert _stays(_written(write)) == headings | set(COLOURS[:2])


def test_the_reading_of_a_changed_text_is_removed() -> None:
    texts = (
        '<si><t>old house</t><rPh sb="0" eb="3"><t>フルイ</t></rPh><phoneticPr fontId="1"/></si>',
        "<si><t>東京</t><rPh><t>ト</t></rPh></si>",
    )
    content = workbook(shared=f'<sst xmlns="{SHEET}">{"".join(texts)}</sst>')
    shared = unpacked(translated(content, ".xlsx", LOUD))["xl/sharedStrings.xml"].decode()
    assert shared == f'<sst xmlns="{SHEET}"><si><t>OLD HOUSE</t><phoneticPr fontId="1"/></si>{texts[1]}</sst>'


def test_cells_with_a_list_stay_in_an_opendocument_spreadsheet() -> None:
    cell = '<table:table-cell table:content-validation-name="v1"><text:p>one dog</text:p></table:table-cell>'
    content = unpacked(translated(spreadsheet(cell), ".ods", LOUD))["content.xml"].decode()
    assert cell in content


def test_texts_that_formulas_of_an_opendocument_spreadsheet_compare_stay() -> None:
    texts = ("still open", "on hold", "light red", "a cat", "shut up")
    cells = "".join(
        f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>' for text in texts
    )
    formula = "of:=IF([.A1]=&quot;still open&quot;;&quot;a cat&quot;;&quot;SHUT UP&quot;=[.A2])"
    other = "of:=COUNTIF([.A1:.A9];&quot;&lt;&gt;On Hold&quot;)"
    condition = "of:cell-content-is-in-list(&quot;light red&quot;;&quot;green&quot;)"
    content = spreadsheet(
        f'<table:table-cell table:formula="{formula}"/><table:table-cell table:formula="{other}"/>'
        f'<table:content-validation table:condition="{condition}"/>{cells}'
    )
    written = unpacked(translated(content, ".ods", LOUD))["content.xml"].decode()
    assert [text for text in texts if f">{text}<" in written] == ["still open", "on hold", "light red", "shut up"]


@pytest.mark.parametrize("unit", ["A1 ", "A1:B2 ", "$A:$C,", "Z9!", "'", "INDIRECT(", "a.", '"a"', "&quot;"])
def test_a_long_list_of_anything_is_read_soon(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    cells = "<row>" + '<c t="str"><v>one dog</v></c>' * 300 + "</row>"
    validation = (
        f'<dataValidation type="list" sqref="{text.replace(chr(34), "")}"><formula1>{text}</formula1></dataValidation>'
    )
    sheet = f'<worksheet xmlns="{SHEET}"><sheetData>{cells * 20}</sheetData>{validation}</worksheet>'
    with contextlib.suppress(InvalidDocument):
        read_soon(workbook(sheet=sheet), ".xlsx")
