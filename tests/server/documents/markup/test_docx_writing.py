import io

from lxml import etree

from server.documents.formats.pdf import DocxWriter, Paragraph, Run
from tests.server.documents.documents import unpacked

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def _written(writer: DocxWriter) -> etree._Element:
    sink = io.BytesIO()
    writer.write(sink)
    files = unpacked(sink.getvalue())
    assert set(files) == {"[Content_Types].xml", "_rels/.rels", "word/document.xml"}
    again = io.BytesIO()
    writer.write(again)
    assert again.getvalue() == sink.getvalue()
    return etree.fromstring(files["word/document.xml"])


def _attributes(root: etree._Element, name: str) -> list[dict[str, str]]:
    return [
        {str(key).removeprefix(_W): str(value) for key, value in each.attrib.items()} for each in root.iter(_W + name)
    ]


def test_measures_are_twentieths_of_points_and_sizes_half_points() -> None:
    writer = DocxWriter("de")
    run, bold = Run("a < b\x00", 10.5), Run(" c ", 0.5, is_bold=True, is_italic=True)
    writer.add_page(400, 600, [Paragraph([run, bold], indent=12, space_before=7.5), Paragraph([run], is_centered=True)])
    root = _written(writer)
    assert [leaf.text for leaf in root.iter(_W + "t")] == ["a < b", " c ", "a < b"]
    assert _attributes(root, "sz") == [{"val": "21"}, {"val": "2"}, {"val": "21"}]
    assert _attributes(root, "lang") == [{"val": "de"}] * 3
    assert (len(list(root.iter(_W + "b"))), len(list(root.iter(_W + "i")))) == (1, 1)
    assert _attributes(root, "spacing") == [{"before": "150", "after": "0"}, {"before": "0", "after": "0"}]
    assert _attributes(root, "ind") == [{"left": "240"}, {"left": "0"}]
    assert _attributes(root, "jc") == [{"val": "center"}]
    assert _attributes(root, "pgSz") == [{"w": "8000", "h": "12000"}]
    assert [each["top"] for each in _attributes(root, "pgMar")] == ["1000"]  # an eighth of the width


def test_each_page_is_a_section_that_ends_with_its_size() -> None:
    writer = DocxWriter()
    for width in (600, 700, 800):
        writer.add_page(width, 900, [Paragraph([Run(str(width), 12)])])
    root = _written(writer)
    body = root[0]
    assert [each["w"] for each in _attributes(root, "pgSz")] == ["12000", "14000", "16000"]
    assert [each["left"] for each in _attributes(root, "pgMar")] == ["1120"] * 3
    assert [child.tag.removeprefix(_W) for child in body] == ["p", "p", "p", "p", "p", "sectPr"]
    assert _attributes(root, "lang") == []


def test_a_style_is_a_run_without_its_text() -> None:
    run = Run("a", 9, is_bold=True)
    assert run.without_text() == Run("", 9, is_bold=True)
    assert run.with_text("b") == Run("b", 9, is_bold=True)
