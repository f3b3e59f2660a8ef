"""Workbooks and OpenDocument files, built part by part."""

from tests.server.documents.documents import packed

_TYPES = "application/vnd.openxmlformats-officedocument."
_CONTENT_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OPEN = "urn:oasis:names:tc:opendocument:xmlns:"
SHARED = (
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    f'<sst xmlns="{SHEET}" count="9" uniqueCount="9">'
    "<si><t>Good morning</t></si>"
    '<si><r><t xml:space="preserve">one </t></r><r><rPr><b/><sz val="11"/></rPr><t>bold</t></r>'
    '<r><t xml:space="preserve"> word</t></r></si>'
    "<si><t>Product</t></si><si><t>Total price</t></si>"
    '<si><t>two\nlines here</t><phoneticPr fontId="1"/></si>'
    "<si><t>item_code</t></si><si><t>2024-01-31</t></si><si><t/></si>"
    '<si><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh></si></sst>'
)
WORKSHEET = (
    f'<worksheet xmlns="{SHEET}"><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1"><v>12.5</v></c>'
    '<c r="C1" t="inlineStr"><is><t>inside text</t></is></c>'
    '<c r="D1" t="str"><f>IF(B1&gt;1,"high one","low one")</f><v>high one</v></c></row></sheetData></worksheet>'
)
COMMENTS = (
    f'<comments xmlns="{SHEET}"><authors><author>Tom Smith</author></authors><commentList>'
    '<comment ref="A1" authorId="0"><text><r><t>please check</t></r></text></comment></commentList></comments>'
)
TABLE = (
    f'<table xmlns="{SHEET}" id="1" name="T" ref="A1:B2"><tableColumns count="2">'
    '<tableColumn id="1" name="Product"/><tableColumn id="2" name="Total price"/></tableColumns></table>'
)


def workbook(**parts: str) -> bytes:
    """Return a workbook with a table, a comment and a formula; `parts` replace `shared`, `sheet` or `table`."""
    types = {
        "xl/workbook.xml": f"{_TYPES}spreadsheetml.sheet.main+xml",
        "xl/sharedStrings.xml": f"{_TYPES}spreadsheetml.sharedStrings+xml",
        "xl/worksheets/sheet1.xml": f"{_TYPES}spreadsheetml.worksheet+xml",
        "xl/comments1.xml": f"{_TYPES}spreadsheetml.comments+xml",
        "xl/tables/table1.xml": f"{_TYPES}spreadsheetml.table+xml",
    }
    overrides = "".join(f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in types.items())
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_CONTENT_TYPES}">{overrides}</Types>',
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}"><sheets><sheet name="First" sheetId="1"/></sheets></workbook>',
        "xl/sharedStrings.xml": parts.get("shared", SHARED),
        "xl/worksheets/sheet1.xml": parts.get("sheet", WORKSHEET),
        "xl/comments1.xml": COMMENTS,
        "xl/tables/table1.xml": parts.get("table", TABLE),
    }
    return packed({name: content.encode() for name, content in files.items()})


def _open_document(kind: str, body: str) -> bytes:
    namespaces = "".join(
        f' xmlns:{name}="{_OPEN}{uri}:1.0"'
        for name, uri in (
            ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"),
            ("presentation", "presentation"),
        )
    )  # fmt: skip
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document-content{namespaces}><office:body>'
        f"<office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    return packed({"mimetype": media_type.encode(), "content.xml": content.encode(), "settings.xml": b"<x>Good</x>"})


def spreadsheet(cells: str = "") -> bytes:
    """Return an OpenDocument spreadsheet."""
    return _open_document(
        "spreadsheet",
        '<table:table table:name="Sheet one"><table:table-row>'
        '<table:table-cell office:value-type="string"><text:p>Good morning <text:span>dear</text:span> Tom</text:p>'
        '</table:table-cell><table:table-cell office:value-type="date" office:date-value="2024-01-31">'
        "<text:p>31 January</text:p></table:table-cell>"
        '<table:table-cell table:formula="of:=[.A1]" office:value-type="string"><text:p>a result</text:p>'
        f"</table:table-cell>{cells}</table:table-row></table:table>",
    )


def odf_presentation() -> bytes:
    """Return an OpenDocument presentation with a slide and its notes."""
    return _open_document(
        "presentation",
        '<draw:page draw:name="page1"><draw:frame><draw:text-box><text:p>Good title</text:p><text:list><text:list-item>'
        "<text:p>first point</text:p></text:list-item></text:list></draw:text-box></draw:frame>"
        "<presentation:notes><draw:frame><draw:text-box><text:p>say hello</text:p></draw:text-box></draw:frame>"
        "</presentation:notes></draw:page>",
    )
