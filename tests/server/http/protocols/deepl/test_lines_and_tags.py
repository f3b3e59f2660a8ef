"""Lines and tags of texts in the DeepL-compatible protocol, with engines that answer with their source."""

import re

import pytest
from starlette.testclient import TestClient


@pytest.mark.parametrize("splitting", ["0", "nonewlines"])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("3. Wash the cup\n4. Dry the cup", 2),
        ("What we need:\n- tea\n- milk\nfrom the farm", 3),
        ("(a) a pot\r\n(b) a lid", 2),
        ("* one\n  * two", 2),
        ("We finished\n3. and slept well.", 1),
        ("The pot - an old\none - broke.", 1),
    ],
)
def test_items_of_a_list_stay_on_lines_of_their_own(
    compatible: TestClient, splitting: str, text: str, lines: int
) -> None:
    fields = {"text": [text], "target_lang": "DE", "source_lang": "EN", "split_sentences": splitting}
    [answer] = compatible.post("/v2/translate", json=fields).json()["translations"]
    assert len(answer["text"].splitlines()) == lines
    assert answer["text"].split() == text.split()


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"tag_handling": "html"}, "v2"),
        ({"tag_handling": "xml", "tag_handling_version": "v1"}, "v1"),
        ({"tag_handling": "html", "tag_handling_version": "v2"}, "v2"),
        ({"tag_handling_version": "v1"}, None),
        ({}, None),
    ],
)
def test_the_version_of_tag_handling_is_returned_with_tags(
    compatible: TestClient, fields: dict[str, str], version: str | None
) -> None:
    fields = fields | {"target_lang": "DE", "source_lang": "EN"}
    for answer in (
        compatible.post("/v2/translate", json={"text": ["<i>Tea</i>.", "Cup."]} | fields),
        compatible.post("/v2/translate", data={"text": "<i>Tea</i>."} | fields),
    ):
        assert {each.get("tag_handling_version") for each in answer.json()["translations"]} == {version}


@pytest.mark.parametrize("text", ["<p>Tea</b>", "Tea &", "<a>\n<b x=1>Tea</b></a>", "<p>Tea"])
def test_xml_that_is_not_well_formed_names_the_place_and_the_way_out(compatible: TestClient, text: str) -> None:
    fields = {"text": [text], "target_lang": "DE", "source_lang": "EN"}
    answer = compatible.post("/v2/translate", json=fields | {"tag_handling": "xml"})
    assert answer.status_code == 400
    message = answer.json()["message"]
    assert message.startswith("Tag handling parsing failed, please check input")
    assert re.search(r"in line \d", message)
    assert "tag_handling=html" in message
    assert compatible.post("/v2/translate", json=fields | {"tag_handling": "html"}).status_code == 200
