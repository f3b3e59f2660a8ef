from collections.abc import Sequence

import pytest
from lxml import etree, html

from server.documents.formats.options import FormatOptions
from server.documents.rewriting import Translate
from server.interface.errors import InvalidDocument
from tests.server.documents.documents import LOUD, SAME, translated

OLD = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a.html" source-language="en" datatype="html">
    <body>
      <trans-unit id="1">
        <source>Good <g id="1">morning</g>, <x id="2"/>friend</source>
      </trans-unit>
      <trans-unit id="2"><source>done before</source><target state="final">fertig</target></trans-unit>
      <trans-unit id="3"><source> blank target </source><target/></trans-unit>
      <trans-unit id="4" translate="no"><source>not this</source></trans-unit>
      <trans-unit id="5"><source>stale one</source><target state="needs-translation">stale one</target></trans-unit>
      <trans-unit id="6"><source>has <ph id="p">{0}</ph> files</source><note>a note stays</note></trans-unit>
    </body>
  </file>
</xliff>
"""
NEW = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
 <file id="f"><unit id="u">
  <originalData><data id="d1">&lt;b></data></originalData>
  <segment><source>Good <pc id="1" dataRefStart="d1">morning</pc> <ph id="2"/></source></segment>
  <segment state="final"><source>done before</source><target>fertig</target></segment>
 </unit><unit id="v" translate="no"><segment><source>not this</source></segment></unit></file>
</xliff>"""


@pytest.mark.parametrize("text", [OLD, NEW])
def test_a_file_is_the_same_byte_for_byte_when_nothing_changes(text: str) -> None:
    assert translated(text.encode(), ".xliff", SAME, options=FormatOptions(language="de")) == text.encode()


def test_units_without_a_translation_get_one_in_xliff_1() -> None:
    content = translated(OLD.encode(), ".xliff", LOUD, options=FormatOptions(language="de"))
    root = etree.fromstring(content)
    targets = {unit.get("id"): unit.find("{*}target") for unit in root.iter("{*}trans-unit")}
    first = targets["1"]
    assert first is not None
    assert first.get("state") == "translated"
    assert "".join(map(str, first.itertext())) == "GOOD MORNING, FRIEND"
    assert [etree.QName(child).localname for child in first] == ["g", "x"]
    assert targets["2"] is not None
    assert targets["2"].text == "fertig"
    assert targets["3"] is not None
    assert targets["3"].text == " BLANK TARGET "
    assert targets["4"] is None
    assert targets["5"] is not None
    assert targets["5"].text == "STALE ONE"
    assert targets["6"] is not None
    assert "".join(map(str, targets["6"].itertext())) == "HAS {0} FILES"
    file = root.find("{*}file")
    assert file is not None
    assert file.get("target-language") == "de"
    assert content.decode().count("<source>") == 6
    assert "not this" in content.decode()
    assert '</source>\n        <target state="translated">' in content.decode()


def test_segments_without_a_translation_get_one_in_xliff_2() -> None:
    root = etree.fromstring(translated(NEW.encode(), ".xlf", LOUD, options=FormatOptions(language="de")))
    first, second, third = root.iter("{*}segment")
    target = first.find("{*}target")
    assert target is not None
    assert "".join(map(str, target.itertext())).strip() == "GOOD MORNING"
    assert [etree.QName(child).localname for child in target] == ["pc", "ph"]
    assert first.get("state") == "translated"
    assert second.findtext("{*}target") == "fertig"
    assert third.find("{*}target") is None
    assert root.get("trgLang") == "de"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<a/>", "the file must be XLIFF 1.2 or 2.0. Given: 'a'"),
        ("no XML", "not XML"),
        (OLD.replace('<g id="1">', "<g>" * 80).replace("</g>", "</g>" * 80), "nested 64 deep"),
        ('<!DOCTYPE x [<!ENTITY a "b">]>' + NEW, "entit"),
    ],
)
def test_other_files_are_rejected_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        translated(text.encode(), ".xliff", SAME)


@pytest.mark.parametrize(
    ("units", "is_translated"),
    [
        ("<group><trans-unit><source>one two</source></trans-unit></group>", False),
        ('<trans-unit translate="yes"><source>one two</source></trans-unit>', True),
        ('<group translate="yes"><trans-unit><source>one two</source></trans-unit></group>', True),
    ],
)
def test_the_nearest_statement_about_translation_counts(units: str, is_translated: bool) -> None:
    text = f'<xliff version="1.2"><file><body><group translate="no">{units}</group></body></file></xliff>'
    assert (b"<target" in translated(text.encode(), ".xliff", LOUD)) is is_translated


def test_a_segmented_unit_gets_a_target_with_its_segments() -> None:
    source = '<source>One two. Three.</source><seg-source><mrk mtype="seg" mid="1">One two.</mrk> {}</seg-source>'
    text = f'<xliff version="1.2"><file><body><trans-unit id="1">{source}</trans-unit></body></file></xliff>'
    text = text.format('<mrk mtype="seg" mid="2">Three.</mrk>')
    expected = '<mrk mtype="seg" mid="1">ONE TWO.</mrk> <mrk mtype="seg" mid="2">THREE.</mrk>'
    result = translated(text.encode(), ".xliff", LOUD).decode()
    assert f'</seg-source><target state="translated">{expected}</target></trans-unit>' in result


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (
            'a <bpt id="1">&lt;b&gt;</bpt>dog <bx id="2"/>or<ex id="2"/><ept id="1">&lt;/b&gt;</ept> here',
            'HERE <bpt id="1">&lt;b&gt;</bpt><bx id="2"/>OR<ex id="2"/>DOG <ept id="1">&lt;/b&gt;</ept>A ',
        ),
        ('a <bpt id="1" rid="7"/>dog<ept id="2" rid="7"/> or', 'OR<bpt id="1" rid="7"/>DOG<ept id="2" rid="7"/>A '),
        ('a <sc id="1"/>dog<ec startRef="1"/> or', 'OR<sc id="1"/>DOG<ec startRef="1"/>A '),
        ('a <bx id="1"/><x id="2"/><ex id="1"/> or', 'OR<ex id="1"/><x id="2"/><bx id="1"/>A '),
        ('a <ex id="1"/>dog<bx id="1"/> or', 'OR<bx id="1"/>DOG<ex id="1"/>A '),
    ],
)
def test_elements_that_begin_and_end_a_pair_stay_around_its_words(source: str, target: str) -> None:
    async def backwards(texts: Sequence[str]) -> list[str]:
        """Put the nodes of every level in the opposite order."""
        results = []
        for text in texts:
            root = html.fragment_fromstring(
                text.upper().replace("SPAN", "span").replace("IMG", "img").replace("ID", "id"), "div"
            )
            for element in list(root.iter()):
                nodes = [(element.text or "").upper()]
                for child in element:
                    nodes += [child, (child.tail or "").upper()]
                element.text = ""
                for child in list(element):
                    child.tail = None
                    element.remove(child)
                for node in reversed(nodes):
                    if not isinstance(node, str):
                        element.append(node)
                    elif len(element):
                        element[-1].tail = (element[-1].tail or "") + node
                    else:
                        element.text += node
            results.append(
                etree.tostring(root, method="html", encoding="unicode").removeprefix("<div>").removesuffix("</div>")
            )
        return results

    content = f'<xliff version="1.2"><file><trans-unit><source>{source}</source></trans-unit></file></xliff>'
    written = translated(content.encode(), ".xlf", Translate(backwards, backwards)).decode()
    assert "".join(written.partition("<target")[2].partition(">")[2].partition("</target>")[0].split()) == "".join(
        target.split()
    )


@pytest.mark.parametrize(
    ("placeholder", "is_break"),
    [
        ('<x id="1" ctype="lb"/>', True),
        ('<x id="LINE_BREAK" equiv-text="&lt;br /&gt;"/>', True),
        ('<ph id="1">&lt;BR&gt;</ph>', True),
        ('<ph id="1" subType="xlf:lb"/>', True),
        ('<ph id="1" equiv="LINE_BREAK" disp="&lt;br/&gt;"/>', True),
        ('<x id="1" equiv-text="{{broken}}"/>', False),
        ('<ph id="1">&lt;break&gt;</ph>', False),
    ],
)
def test_a_placeholder_of_a_line_break_is_sent_as_one(placeholder: str, is_break: bool) -> None:
    sent: list[str] = []

    async def record(texts: Sequence[str]) -> list[str]:
        sent.extend(texts)
        return [text.replace("old", "new") for text in texts]

    content = OLD.replace('<g id="1">morning</g>, <x id="2"/>friend', f"{placeholder}old house")
    result = translated(content.encode(), ".xlf", Translate(record, record)).decode()
    assert f">Good {placeholder}new house</target>" in result
    assert ("<br" in sent[0]) == is_break
