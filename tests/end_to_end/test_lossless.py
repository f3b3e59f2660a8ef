"""Text that survives a real model: the one that comes along, over HTTP."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from html import escape, unescape

import pytest
from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from server.text.protection.masked_sentence import Strategy
from tests.server.text.readers.documents import DocumentMaker

COPIED = ("code", "pre", "script", "style")
SPANS = (
    "https://example.org/a?b=7&c=8", "anna@example.org", "{user_name}", "{{ count }}", "%1$s", "$HOME", "##KEY##",
    "`git status`", "/usr/local/bin", "C:\\Temp\\x1", "report.pdf", "@maria", "#topic", "AB-1234", "max_length", "CO₂",
    "🎉", "ქართული",
)  # fmt: skip
TEMPLATES = (
    "I saw [] yesterday.",
    "Please send it to [] today.",
    "[] is not available.",
    "What does [] mean?",
    "They asked for [] and left with [].",
    "She said that the answer is [].",
)
Shape = tuple[str, tuple[tuple[str, str], ...], str | None, tuple[object, ...]]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(Settings(threads=1))) as client:
        yield client


def _translated(client: TestClient, texts: list[str], **body: object) -> list[str]:
    answer = client.post("/v1/translate", json={"text": texts, "beam_size": 2} | body)
    assert answer.status_code == 200, answer.text
    return [translation["text"] for translation in answer.json()["translations"]]


def _xml_shape(element: etree._Element) -> Shape:
    """An element's name, attributes and children; inline ones may change places with their siblings."""
    children = sorted((_xml_shape(child) for child in element), key=repr)
    text = element.text if element.tag in COPIED else None
    return (
        str(element.tag),
        tuple(sorted((str(name), str(value)) for name, value in element.attrib.items())),
        text,
        tuple(children),
    )


def _html_shape(node: LexborNode) -> Shape:
    """Return an HTML element as a value that compares by content; siblings may change places."""
    children = sorted((_html_shape(child) for child in node.iter(include_text=False)), key=repr)
    attributes = tuple(sorted((name, value or "") for name, value in node.attributes.items()))
    text = node.text() if node.tag in COPIED else None
    return (str(node.tag), attributes, text, tuple(children))


def _shape(document: str, format_: str) -> Shape:
    if format_ == "html":
        root = LexborHTMLParser(document).root
        assert root is not None
        return _html_shape(root)
    is_whole = document.startswith(("<?xml", "<!DOCTYPE"))
    return _xml_shape(etree.fromstring((document if is_whole else f"<top xmlns:ph='urn:x'>{document}</top>").encode()))


@pytest.mark.parametrize("format_", ["text", "html"])
def test_sentences_lose_no_span(client: TestClient, format_: str) -> None:
    drawn = random.Random(2)
    spans = [[drawn.choice(SPANS) for _ in range(template.count("[]"))] for template in TEMPLATES for _ in range(5)]
    sentences = [
        template.replace("[]", "{}").format(*each)
        for template, each in zip((each for each in TEMPLATES for _ in range(5)), spans, strict=True)
    ]
    if format_ == "html":
        written = _translated(client, list(map(escape, sentences)), source="en", target="de", format=format_)
        translations = list(map(unescape, written))
    else:
        translations = _translated(client, sentences, source="en", target="de")
    for sentence, translation, its_spans in zip(sentences, translations, spans, strict=True):
        assert {each: translation.count(each) for each in its_spans} == dict(Counter(its_spans)), (
            sentence,
            translation,
        )


def test_an_answer_reports_the_means_that_kept_each_span(client: TestClient) -> None:
    answer = client.post(
        "/v1/translate", json={"text": "I saw {name} and 7 dogs. Good morning.", "source": "en"}
    ).json()
    protected = answer["translations"][0]["details"]["protected"]
    assert [(each["text"], each["kind"]) for each in protected] == [("{name}", "placeholder")]
    assert {each["means"] for each in protected} <= set(Strategy)
    metrics = client.get("/metrics").text
    assert 'kvasir_protected_spans_total{kind="placeholder"' in metrics
    answer = client.post("/v1/translate", json={"text": "Good morning.", "source": "en"}).json()
    assert "details" not in answer["translations"][0]


@pytest.mark.parametrize("format_", ["html", "xml"])
def test_generated_documents_keep_their_structure(client: TestClient, format_: str) -> None:
    maker = DocumentMaker(seed=21)
    documents = [maker.html() if format_ == "html" else maker.xml() for _ in range(10)]
    translations = _translated(client, documents, format=format_)
    assert translations != documents
    for document, translation in zip(documents, translations, strict=True):
        assert _shape(document, format_) == _shape(translation, format_)


def test_inline_tags_follow_their_words(client: TestClient) -> None:
    [translation] = _translated(client, ["<p>Tom has a <b>new</b> car.</p>"], format="html", beam_size=4)
    assert translation == "<p>Tom hat ein <b>neues</b> Auto.</p>"


def test_alternatives_keep_everything_too(client: TestClient) -> None:
    body = {"text": "Write to <b>{name}</b> today.", "format": "html", "beam_size": 4, "num_hypotheses": 3}
    [translation] = client.post("/v1/translate", json=body).json()["translations"]
    for each in (translation, *translation["alternatives"]):
        assert each["text"].count("{name}") == each["text"].count("<b>") == each["text"].count("</b>") == 1


def test_sentences_without_spans_stream_by_word_and_others_as_a_whole(client: TestClient) -> None:
    def pieces(text: str) -> list[str]:
        body = {"text": text, "stream": True, "beam_size": 1}
        with client.stream("POST", "/v1/translate", json=body) as answer:
            events = "".join(answer.iter_text()).split("\n\n")
        return [json.loads(event.split("data: ")[1])["text"] for event in events if event.startswith("event: text")]

    sentence = "I have dogs and NATO has cats, and the old house by the river is very beautiful"
    [whole] = pieces(f"{sentence}: {{name}}.")
    assert whole.count("{name}") == 1
    assert "".join(pieces(sentence)) == _translated(client, [sentence], beam_size=1)[0]
    both = f"{sentence}. It costs $5."
    assert len(pieces(both)) > 1
    assert "".join(pieces(both)) == _translated(client, [both], beam_size=1)[0]
