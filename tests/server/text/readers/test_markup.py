"""HTML and XML keep their tags, around the right words."""

import contextlib
import random

import pytest
from lxml import etree, html

from server.interface.errors import InvalidRequest
from server.text.readers.html import read_html
from server.text.readers.pieces import NO_MARKUP_OPTIONS, MarkupOptions
from server.text.readers.xml import read_xml
from server.translation.types import TextFormat
from tests.server.text.identity import Identity
from tests.server.text.readers.documents import DocumentMaker

NUM_DOCUMENTS = 200  # of each format


def _space_collapsed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("format_", ["html", "xml"])
def test_generated_documents_round_trip(identity: Identity, format_: TextFormat) -> None:
    maker = DocumentMaker(seed=11)
    documents = [maker.html() if format_ == "html" else maker.xml() for _ in range(NUM_DOCUMENTS)]
    translations = identity(documents, format_)
    assert list(map(_space_collapsed, translations)) == list(map(_space_collapsed, documents))


def test_xml_that_parses_does_so_afterwards(identity: Identity) -> None:
    maker = DocumentMaker(seed=12)
    for document in (maker.xml() for _ in range(50)):
        [translation] = identity([document], "xml")
        wrapped = [
            f"<top xmlns:ph='urn:x'>{each}</top>" if not each.startswith(("<?xml", "<!DOCTYPE")) else each
            for each in (document, translation)
        ]
        before, after = (etree.fromstring(each.encode()) for each in wrapped)
        assert [element.tag for element in before.iter()] == [element.tag for element in after.iter()]
        assert [dict(element.attrib) for element in before.iter("*")] == [dict(e.attrib) for e in after.iter("*")]


@pytest.mark.parametrize(
    ("source", "inputs"),
    [
        ("<p>Good morning.<p>Where is it?", {"Good morning.", "Where is it?"}),
        ("<ul><li>tea<li>the dog</ul>", {"tea", "the dog"}),
        ("Good<br>Morning", {"Good", "Morning"}),
        ("Good<br>morning", {"Good morning"}),  # a line break inside a sentence
        ("<p>I would\n   like <b>some</b> tea.</p>", {"I would like some tea."}),
        ("<title>Where is it?</title><script>Where</script><style>it</style><!-- is -->", {"Where is it?"}),
        ("<td>1 &amp; a</td><td>a &lt; b</td>", {"1 & a", "a < b"}),
        ("<p translate=no>Where</p><div class='x notranslate'>is</div><pre>it</pre>", set()),
    ],
)
def test_each_block_is_a_model_input_without_its_tags(echo_letters: Identity, source: str, inputs: set[str]) -> None:
    assert [_space_collapsed(source)] == [_space_collapsed(each) for each in echo_letters([source], "html")]
    assert set(echo_letters.model_inputs) == inputs


@pytest.fixture
def echo_letters(identity: Identity) -> Identity:
    identity.engine.batches.clear()
    return identity


def test_an_element_that_is_not_translated_is_one_word_of_its_sentence(echo_letters: Identity) -> None:
    source = 'Where is <span translate="no">the <b>lazy</b> &amp; dog</span> of <code>x &lt; 1</code>?'
    assert echo_letters([source], "html") == [source]
    assert echo_letters.model_inputs == ["Where is X1 of X2?"]


def test_a_mask_that_stands_for_an_element_is_not_in_the_sentence(echo_letters: Identity) -> None:
    source = "<p>X1 and X2 is <code>x</code> it</p>"
    assert echo_letters([source], "html") == [source]
    assert echo_letters.model_inputs == ["X1 and X2 is X3 it"]


@pytest.mark.parametrize(
    "source",
    [
        "5 < 6 &copy; AT&T &nbsp; a&b <",
        "<b>bold <i>both</b> italic</i> none</u>",
        "<a href='x'>text<div>block</div>more</a>",
        "Where <!-- a > b --> is <![if !IE]> it <![endif]> now",
        "<DIV CLASS=Big>Where</DIV > is <IMG SRC=a.png/> it",
        "<unknown-tag a=1>Where</unknown-tag><x:y>is</x:y>",
        "<p>Where is <a href='",
        "<textarea>Where</textarea> is <svg><text>it</text></svg> now",
        "",
        " \n ",
        "<>",
        "</",
        "<b></b>",
    ],
)
def test_fragments_and_broken_documents_keep_everything(identity: Identity, source: str) -> None:
    [translation] = identity([source], "html")
    for character in "<>/=":
        escaped = {"<": "&lt;", ">": "&gt;"}.get(character, character)
        assert translation.count(character) + translation.count(escaped) * (escaped != character) >= source.count(
            character
        )
    before, after = (html.fragment_fromstring(each or " ", create_parent="div") for each in (source, translation))
    assert [element.tag for element in before.iter()] == [element.tag for element in after.iter()]
    assert _space_collapsed("".join(before.itertext())) == _space_collapsed("".join(after.itertext()))


def test_the_pieces_of_any_string_are_that_string() -> None:
    drawn = random.Random(5)
    parts = [
        "<",
        ">",
        "a",
        "<b>",
        "</b>",
        "&amp;",
        "&",
        "\n",
        "<!--",
        "-->",
        "<![",
        "]]>",
        "'",
        '"',
        "=",
        "<p translate=no>",
        "<script>",
    ]
    for _ in range(2000):
        text = "".join(drawn.choices(parts, k=drawn.randint(1, 12)))
        assert "".join(piece.raw for piece in read_html(text, NO_MARKUP_OPTIONS)) == text


def test_elements_inside_text_are_inline_in_xml_and_others_split(echo_letters: Identity) -> None:
    source = "<doc><title>Where</title><para>is <emph>it</emph> now</para><g><h>the</h></g></doc>"
    assert echo_letters([source], "xml") == [source]
    assert set(echo_letters.model_inputs) == {"Where", "is it now", "the"}


@pytest.mark.parametrize("format_", ["html", "xml"])
@pytest.mark.parametrize("source", ['<?xml version="1.0"?><a>Where</a>', "<a>Where</a>", "Where", ""])
def test_a_byte_order_mark_stays_in_front(echo_letters: Identity, source: str, format_: TextFormat) -> None:
    assert echo_letters(["\ufeff" + source], format_) == ["\ufeff" + source]
    assert echo_letters.model_inputs == ["Where"] * bool(source)
    read = {"html": read_html, "xml": read_xml}[format_]
    assert read("\ufeff" + source, NO_MARKUP_OPTIONS)[0].raw == "\ufeff"


def test_names_of_elements_can_be_set(echo_letters: Identity) -> None:
    options = MarkupOptions(frozenset({"s"}), frozenset({"i"}), frozenset({"x"}))
    source = "<r>the dog <s>is</s> lazy <x>and</x> is</r>"
    assert echo_letters([source], "xml", options) == [source]
    assert set(echo_letters.model_inputs) == {"the dog", "is", "lazy X1 is"}


@pytest.mark.parametrize(
    "front", ["\n", " \t\r\n", "<!-- a -->", "\n<!-- <!DOCTYPE --> \n", "<?target x?>\n", "\ufeff\n"]
)
def test_a_document_type_may_follow_white_space_comments_and_instructions(echo_letters: Identity, front: str) -> None:
    source = f"{front}<!DOCTYPE note [<!ELEMENT note ANY>]>\n<note>Good morning</note>\n"
    assert echo_letters([source], "xml") == [source]
    with pytest.raises(InvalidRequest):
        read_xml(f"{front}<!DOCTYPE note><note>", NO_MARKUP_OPTIONS)


def test_a_long_prolog_is_read_in_time() -> None:
    for unit in ("<!--", "<!-- a -->", "<?x ", "<?x?>", "-", " ", "<!DOCTYPE"):
        with contextlib.suppress(InvalidRequest):
            read_xml(unit * 50_000, NO_MARKUP_OPTIONS)


def test_no_entity_is_expanded(echo_letters: Identity) -> None:
    entities = '<!ENTITY a "where"><!ENTITY b "&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">'
    bomb = f"<!DOCTYPE r [{entities}]><r>is &b; &c; it</r>"
    assert echo_letters([bomb], "xml") == [bomb]
    assert echo_letters.model_inputs == ["is X1 X2 it"]


@pytest.mark.parametrize("source", ["<a>where</b>", "<a>", "where & is", "<a b=1/>", "<?xml version='1.0'?>", "\x00"])
def test_xml_that_is_not_well_formed_is_rejected_with_the_line(identity: Identity, source: str) -> None:
    with pytest.raises(InvalidRequest, match=r"not well-formed XML: .* in line 1"):
        identity([source], "xml")


@pytest.mark.parametrize(
    "source",
    [
        "<p>" + "<b>" * 1100 + "Where" + "</b>" * 1100 + " is it</p>",
        "<p>" + "<b>" * 1100 + "Where is it</p>",
        "<p>" + "<b>" * 1100 + "Where" + "</i>" * 1100 + " is it</p>",
        "<p>Where is it" + "</b>" * 1100 + "</p>",
        "<p>" + "Where</b> is " * 1100 + "it</p>",
        "<p>" + "<b>the <i>" * 600 + "dog" + "</i></b>" * 600 + "</p>",
    ],
)
def test_no_tag_is_lost_at_any_depth(identity: Identity, source: str) -> None:
    assert identity([source], "html") == [source]


def test_deeply_nested_xml_is_rejected() -> None:
    with pytest.raises(InvalidRequest, match="nested at most 1000 deep"):
        read_xml("<a>" * 2000 + "</a>" * 2000, NO_MARKUP_OPTIONS)
