"""Documents that are read once and held until they are written, and those that are read twice, in windows."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.documents.formats.registry import format_of
from server.documents.fragment import Atom, Fragment, Wrap, joined
from server.documents.input.limits import FileLimits
from server.documents.rewriting import Translate
from server.documents.steps import DocumentSize, DocumentSteps, fragment_parts
from tests.faults.documents import book, open_document, slides, word, workbook, xliff
from tests.server.documents.documents import LOUD, LOUD_PLAIN, translated
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


_WORDS = st.sampled_from(("one dog", "many dogs", "it's here", "{n}", " ", "#", ""))
_NODES = st.one_of(_WORDS, st.integers(1, 9).map(Atom), st.integers(1, 9).map(lambda key: Wrap(key, ("bold",))))
_PLAIN = st.lists(_NODES, max_size=3).map(joined)
_MESSAGES = st.recursive(
    _PLAIN,
    lambda inner: st.tuples(_PLAIN, inner, inner, _PLAIN).map(
        lambda parts: joined([*parts[0], "{n, plural, one {", *parts[1], "} other {", *parts[2], "}}", *parts[3]])
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(_MESSAGES)
def test_parts_are_the_paragraph_and_no_text_has_syntax(message: Fragment) -> None:
    parts = fragment_parts(message)
    assert joined(node for _, part in parts for node in part) == message
    assert not any("plural" in node for is_text, part in parts if is_text for node in part if isinstance(node, str))


def test_syntax_that_an_element_divides_is_text() -> None:
    message: Fragment = ("{n, plural, one ", Atom(1), " {a dog} other {dogs}}")
    assert fragment_parts(message) == [(True, message)]
    foreign: Fragment = ("\ufffc {n, plural, other {a}}", Atom(1))
    assert fragment_parts(foreign) == [(True, foreign)]


MESSAGE = "I see {n, plural, =0 {no dog} one {a dog} other {# dogs}} today."
LOUD_MESSAGE = "I SEE {n, plural, =0 {NO DOG} one {A DOG} other {# DOGS}} TODAY."


@pytest.mark.parametrize(
    ("extension", "content"),
    [
        (".txt", f"{MESSAGE}\n"),
        (".csv", f'1,"{MESSAGE}"\n2,"{MESSAGE}"\n'),
        (".po", f'msgid "a"\nmsgstr "b"\n\nmsgid "{MESSAGE}"\nmsgstr "%s"\n'),
        (".xlf", f'<xliff version="1.2"><file><trans-unit><source>{MESSAGE}</source>%s</trans-unit></file></xliff>'),
        (".html", f"<p>{MESSAGE}</p><p>{MESSAGE}</p>"),
        (".json", f'{{"a": "{MESSAGE}"}}'),
        (".yaml", f'a: "{MESSAGE}"\n'),
        (".properties", f"a={MESSAGE}\n"),
        (".strings", f'"a" = "{MESSAGE}";\n'),
        (".srt", f"1\n00:00:01,000 --> 00:00:02,000\n{MESSAGE}\n"),
    ],
)
@pytest.mark.parametrize("translate", [LOUD, LOUD_PLAIN], ids=["html", "plain"])
def test_the_branches_of_a_message_are_translated_in_every_format(
    extension: str, content: str, translate: Translate
) -> None:
    target = {".po": LOUD_MESSAGE, ".xlf": f'<target state="translated">{LOUD_MESSAGE}</target>'}.get(extension)
    expected = content.replace(MESSAGE, LOUD_MESSAGE) if target is None else content.replace("%s", target)
    assert translated(content.replace("%s", "").encode(), extension, translate).decode() == expected


def test_an_element_stays_in_its_branch() -> None:
    unit = '<xliff version="1.2"><file><trans-unit><source>%s</source>%s</trans-unit></file></xliff>'
    source = '{n, plural, =0 {no dog} other {<x id="n"/> dogs and <g id="1">cats</g>}}'
    target = (
        '<target state="translated">{n, plural, =0 {NO DOG} other {<x id="n"/> DOGS AND <g id="1">CATS</g>}}</target>'
    )
    assert translated((unit % (source, "")).encode(), ".xlf", LOUD).decode() == unit % (source, target)
