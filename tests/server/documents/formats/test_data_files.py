"""Files of texts for programs: values are translated, and every other byte stays."""

import contextlib
import json
import random
from collections.abc import Sequence

import pytest
import yaml

from server.documents.markup.text_values import is_text
from server.documents.rewriting import Translate
from server.interface.errors import InvalidDocument
from server.text.readers.icu_messages import message_parts
from tests.server.documents.documents import LOUD, LOUD_PLAIN, SAME, read_soon, translated

JSON = """{
  "greeting" : "Good morning, {name}!",
    "nested": {"list": ["one", 2, true, null, "two \\"words\\""], "id": "item", "url": "https://a.example/b"},
  "empty": "", "code": "btn_primary", "camel": "fontSize", "number": "12.5", "lines": "first\\nsecond",
  "escaped": "Gr\\u00fc\\u00dfe aus", "key with \\"quote\\"": "a\\tb c"
}
"""
YAML_FILE = """# A comment stays
greeting: &g Good morning   # and this one
'quoted': 'It''s here'
double: "Grüße \\"aus\\" Köln\\n"
alias: *g
number: 12
flag: yes
list:
  - one item
  - {key: flow value, other: "x y"}
literal: |
  first line
    second line

folded: >-
  some folded
  text
id: item
run: echo good morning
plain: several words
  over two lines
...
"""
PROPERTIES = (
    "# comment stays\n! this too\ngreeting=Good morning, {0}\n  indented key : value here\nlong.key = first \\\n"
    "    second\nempty=\nunicode=Gr\\u00fc\\u00dfe aus\nkey\\ with\\ blank=a b\ntab=one\\ttwo words\nlast=no end"
)
STRINGS = (
    '/* comment "stays" = "x"; */\n"greeting" = "Good %@ \\"you\\"";\n// another\nplain_key = "two\\nlines";\n'
    '"unicode" = "Gr\\U00fc\\U00dfe aus";\n"same";\n'
)
FILES = {".json": JSON, ".yaml": YAML_FILE, ".properties": PROPERTIES, ".strings": STRINGS}


@pytest.mark.parametrize("extension", FILES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_is_the_same_byte_for_byte_when_nothing_changes(extension: str, line_end: str, codec: str) -> None:
    content = FILES[extension].replace("\n", line_end).encode(codec)
    assert translated(content, extension, SAME) == content


def test_values_of_json_are_translated_and_keys_stay() -> None:
    result = translated(JSON.encode(), ".json", LOUD).decode()
    assert json.loads(result) == {
        "greeting": "GOOD MORNING, {NAME}!",
        "nested": {"list": ["ONE", 2, True, None, 'TWO "WORDS"'], "id": "item", "url": "https://a.example/b"},
        "empty": "",
        "code": "btn_primary",
        "camel": "fontSize",
        "number": "12.5",
        "lines": "FIRST\nSECOND",
        "escaped": "GRÜSSE AUS",
        'key with "quote"': "A\tB C",
    }
    assert "\\u00dc" in result  # written like the source
    assert result.startswith('{\n  "greeting" : "GOOD')


def test_slashes_of_json_are_escaped_as_in_the_source() -> None:
    text = '{"a": "a <b>dog<\\/b>", "b": "cat/dog <i>x</i>"}'
    loud = '{"a": "A <B>DOG<\\/B>", "b": "CAT/DOG <I>X</I>"}'
    assert translated(text.encode(), ".json", LOUD).decode() == loud


def test_signs_of_json_are_escaped_as_in_the_source() -> None:
    text = (
        r'{"a": "a \u003cb\u003E dog \u003c/b\u003E \u0026 \\u0027", '
        r'"b": "\u201cé\u201d \u0022c\u005c\u0022 \ud83d\ude00"}'
    )
    loud = r'{"a": "A \u003cB\u003E DOG \u003c/B\u003E \u0026 \\U0027", "b": "\u201cÉ\u201d \"C\\\" 😀"}'
    assert translated(text.encode(), ".json", LOUD_PLAIN).decode() == loud


def test_values_of_yaml_are_translated_and_comments_anchors_and_quotes_stay() -> None:
    result = translated(YAML_FILE.encode(), ".yaml", LOUD).decode()
    assert result == (
        YAML_FILE.replace("Good morning ", "GOOD MORNING ")
        .replace("It''s here", "IT''S HERE")
        .replace('Grüße \\"aus\\" Köln', 'GRÜSSE \\"AUS\\" KÖLN')
        .replace("one item", "ONE ITEM")
        .replace('flow value, other: "x y"', 'FLOW VALUE, other: "X Y"')
        .replace("first line", "FIRST LINE")
        .replace("second line", "SECOND LINE")
        .replace("some folded", "SOME FOLDED")
        .replace("  text\n", "  TEXT\n")
        .replace("several words\n  over two lines", "SEVERAL WORDS OVER TWO LINES")
    )


@pytest.mark.parametrize(
    "translation",
    ["a: b", "# no comment", "yes", "[list]", "- item", 'it\'s "x"', "a #b", " edge ", "@x", "ends:", "12"],
)
@pytest.mark.parametrize(
    "source", ["a: some text", "a: 'some text'", 'a: "some text"', "- some text", "{a: some text}"]
)
def test_a_translation_that_is_syntax_in_yaml_gets_quotes(source: str, translation: str) -> None:
    async def replaced(texts: list[str]) -> list[str]:
        return [translation for _ in texts]

    result = translated(source.encode(), ".yaml", Translate(replaced)).decode()  # type: ignore[arg-type]
    read = yaml.safe_load(result)
    assert (read["a"] if isinstance(read, dict) else read[0]) == translation.strip()


def test_characters_that_ended_lines_in_older_yaml_are_text() -> None:
    content = "a: one\u2028two\x85three # Grün\nb: 'some\u2029text'\n"
    written = "a: ONE\u2028TWO\x85THREE # Grün\nb: 'SOME\u2029TEXT'\n"
    assert translated(content.encode(), ".yaml", LOUD).decode() == written


@pytest.mark.parametrize(
    ("extension", "content", "reason"),
    [
        (".json", '{"a": "b"', "invalid JSON"),
        (".json", "[" * 100_000, "nested about 1000 deep"),
        (".yaml", "a: 'b", "invalid YAML: .* in line"),
        (".yaml", "a: b: c", "invalid YAML: .* in line 1"),
        (".yaml", "[" * 5000, "nested 100 deep"),
    ],
)
def test_a_mistake_is_reported_with_its_place(extension: str, content: str, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        translated(content.encode(), extension, SAME)


@pytest.mark.parametrize("extension", FILES)
@pytest.mark.parametrize("unit", ['"', "\\", "[", "a: ", "\n", "a=b\\\n", "/*", "&a ", "|\n"])
def test_a_long_file_of_anything_is_read_soon(extension: str, unit: str) -> None:
    with contextlib.suppress(InvalidDocument):
        read_soon(unit * (100_000 // len(unit)), extension)


@pytest.mark.parametrize(
    ("block", "texts"),
    [
        (">\n  one two\n  three\n\n  four\n  five\n", ["one two three", "four five"]),
        (">-\n\n  one\n  two\n    three\n    four\n  five\n  six", ["one two", "three", "four", "five six"]),
        (">2\n    one\n    two\n  three\n", ["one", "two", "three"]),
        (">\r\n  one\r\n  two\r\n", ["one two"]),
        ("|\n  one\n  two\n", ["one", "two"]),
    ],
)
def test_lines_that_yaml_folds_are_one_text(block: str, texts: list[str]) -> None:
    received: list[str] = []

    async def translate(values: Sequence[str]) -> Sequence[str]:
        received.extend(values)
        return [value.upper() for value in values]

    content = f"a: {block}".encode()
    assert translated(content, ".yaml", SAME) == content
    result = translated(content, ".yaml", Translate(translate))
    assert received == texts
    assert result.decode() == f"a: {block.upper()}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Save", True), ("Good morning", True), ("e-mail", True), ("Loading...", True), ("Name:", True),
        ("<b>Hi</b>", True), ("btn_primary", False), ("fontSize", False), ("#fff000", False), ("a/b", False),
        ("12.5", False), ("en-US", False), ("me@example.org", False), ("v1", False), ("true", False), ("", False),
        ("...", False),
    ],
)  # fmt: skip
def test_texts_for_readers_are_told_from_names_for_programs(value: str, expected: bool) -> None:
    assert is_text(value) is expected


def test_plural_messages_are_translated_inside_their_syntax() -> None:
    senders = "{who, select, me {me} other {others}}"
    message = f"You have {{count, plural, =0 {{no new mail}} one {{# new {{kind}}}} other {{# mails from {senders}}}}}."
    parts = message_parts(message)
    assert "".join(part for _, part in parts) == message
    texts = [part for is_text, part in parts if is_text]
    assert texts == ["You have ", "no new mail", "# new {kind}", "# mails from ", "me", "others", "."]
    for broken in ("{a, plural, one {x}", "{a, plural, }", "{a, plural, one {{b}", "{a, select,"):
        assert "".join(part for _, part in message_parts(broken)) == broken


def test_random_json_keeps_its_structure() -> None:
    chance = random.Random(3)

    def value(depth: int) -> object:
        kind = chance.randrange(6 if depth < 4 else 4)
        if kind == 4:
            return [value(depth + 1) for _ in range(chance.randrange(4))]
        if kind == 5:
            return {f"k {chance.random()}": value(depth + 1) for _ in range(chance.randrange(4))}
        return [chance.random(), None, 'some text\u2028 \U0001f600 \\ " /', "name_only"][kind]

    for _ in range(50):
        document = value(0)
        for options in ({"indent": 2}, {"ensure_ascii": False}, {"separators": (",", ":")}):
            written = json.dumps(document, **options)
            assert translated(written.encode(), ".json", SAME).decode() == written
            loud = json.loads(translated(written.encode(), ".json", LOUD))
            assert json.dumps(loud) == json.dumps(document).replace("some text", "SOME TEXT")


def test_keys_of_metadata_are_for_programs() -> None:
    text = '{"@@locale": "en", "$schema": "a b", "slug": "a-dog", "title": "a-dog", "@title": {"description": "a dog"}}'
    loud = text.replace('"title": "a-dog"', '"title": "A-DOG"')
    assert translated(text.encode(), ".json", LOUD).decode() == loud


def test_a_value_that_repeats_its_key_is_a_label_and_a_code_of_a_language_is_none() -> None:
    text = '{"email": "Email", "type": "Article", "sourceLanguage": "en", "default_locale": "zh-Hans", "slang": "yes"}'
    loud = text.replace('"Email"', '"EMAIL"').replace('"yes"', '"YES"')
    assert translated(text.encode(), ".json", LOUD).decode() == loud


def test_what_describes_a_value_of_json_stays() -> None:
    content = """{
  "@@author": "the whole team", "open": "a {name} door",
  "@open": {"description": "on the first page", "placeholders": {"name": {"example": "my house"}}, "tags": ["a b"]},
  "@graph": [{"@value": "some text"}], "close": "the last door"
}"""
    expected = content
    for text in ("a {name} door", "some text", "the last door"):
        expected = expected.replace(text, text.upper())
    for extension in (".json", ".arb"):
        assert translated(content.encode(), extension, LOUD).decode() == expected
