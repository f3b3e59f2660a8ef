"""Documents that are read once and held until they are written, and those that are read twice, in windows."""

from contextlib import closing
from pathlib import Path

import pytest

from server.documents.formats.registry import format_of
from server.documents.input.limits import FileLimits
from server.documents.steps import DocumentSize, DocumentSteps
from tests.faults.documents import book, open_document, slides, word, workbook, xliff
from tests.server.documents.documents import LOUD, translated
from tests.server.documents.pdf import line, pdf

DOCUMENTS = {
    ".txt": b"one house\n\ntwo houses\none house\n" * 1500,
    ".csv": b"one house,two houses\n" * 3000,
    ".md": b"one house\n\n- two houses\n\n" * 1000,
    ".html": b"<p>one house<p>two <b>houses</b>" * 1000,
    ".srt": b"1\n00:00:01,000 --> 00:00:02,000\none house\n\n" * 1500,
    ".json": b'["one house"' + b', "two houses"' * 2500 + b"]",
    ".yaml": b"- one house\n- two houses\n" * 1500,
    ".po": b'msgid "one house"\nmsgstr ""\n',
    ".xliff": xliff("<trans-unit><source>one house</source></trans-unit>" * 1500),
    ".docx": word("<w:p><w:r><w:t>one house</w:t></w:r></w:p>" * 1500),
    ".pptx": slides("<a:p><a:r><a:t>one house</a:t></a:r></a:p>" * 1500),
    ".xlsx": workbook("<si><t>one house</t></si>" * 1500),
    ".odt": open_document("<text:p>one house</text:p>" * 3000),
    ".epub": book("<p>one house</p>" * 3000),
    ".pdf": pdf(line("one house", 72, 700), line("two houses", 72, 700)),
}


@pytest.mark.parametrize("extension", DOCUMENTS)
def test_a_document_is_written_alike_whether_it_is_held_or_read_twice(extension: str) -> None:
    content = DOCUMENTS[extension]
    held = translated(content, extension, LOUD)
    assert held != content
    assert translated(content, extension, LOUD, FileLimits(max_held_bytes=0)) == held


def test_texts_are_counted_with_their_equals_and_translated_ones_if_they_differ(tmp_path: Path) -> None:
    source, sink = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("One.\nTwo.\n12\nOne.\nThree.\n", encoding="utf-8")
    for limits in (FileLimits(), FileLimits(max_held_bytes=0)):
        with closing(DocumentSteps(source, sink, format_of("a.txt"), limits)) as steps:
            assert steps.measure() == DocumentSize(3, 14, 4)
            assert steps.advance(None) == [("One.",), ("Two.",), ("Three.",)]
            assert steps.advance([("Eins.",), ("Two.",), ("Drei.",)]) is None
            assert steps.counts.num_translated == 3
        assert sink.read_text(encoding="utf-8") == "Eins.\nTwo.\n12\nEins.\nDrei.\n"
