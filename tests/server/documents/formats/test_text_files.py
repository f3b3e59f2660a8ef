import csv
import io
from collections.abc import Sequence

import pytest

from server.documents.rewriting import Translate
from server.interface.errors import DocumentTooComplex, InvalidDocument
from tests.server.documents.documents import LOUD, SAME, translated

TEXT = "Good morning.\r\n\r\n  How are you?\t\n42 \u2028 ok \u0085x\n\n\u00a0Größe\x0c\n\nlast line without an end"

MARKDOWN = """---
title: Not for translation
---
# A *heading* with `code` #

A paragraph with **bold**, _italic_, ***both***, ~~old~~ and a [link *here*](http://x.y/a_b "Title").
It goes on in a second line
with \\*escapes\\*, AT&amp;T, 2 * 3 and <b>HTML</b>.

> A quote with ![a picture](p.png) in it
> and a [reference][ref] and <https://auto.link>.

- one item
  goes on
- [ ] another

  1. nested item

| Name | What it *is* |
|------|-------------:|
| a \\| b | Some text |

```python
code = "is not text"
```

    indented code

<div class="x">Block of HTML</div>

Setext heading
==============

[ref]: http://example.org "Reference"

* * *
Hard break  \nand after it.
"""


def test_lines_keep_their_ends_their_indents_and_their_blank_neighbours() -> None:
    assert translated(TEXT.encode(), ".txt", SAME) == TEXT.encode()
    assert translated(TEXT.encode(), ".txt", LOUD).decode() == TEXT.upper()


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_and_its_encoding_stay(codec: str) -> None:
    assert translated(TEXT.encode(codec), ".txt", LOUD) == TEXT.upper().encode(codec)


def test_every_line_break_ends_a_paragraph_of_a_text() -> None:
    received: list[str] = []

    async def count(texts: Sequence[str]) -> Sequence[str]:
        received.extend(texts)
        return [text.upper() for text in texts]

    text = "one\rtwo\u2028three\x0cfour\r\nfive\r\r"
    assert translated(text.encode(), ".txt", Translate(count)).decode() == text.upper()
    assert received == ["one", "two", "three", "four", "five"]
    across = "x" * ((1 << 16) - 1) + "\r\nend"
    assert translated(across.encode(), ".txt", Translate(count)).decode() == across.upper()


def test_bytes_that_are_no_text_are_refused_with_their_place() -> None:
    for extension in (".txt", ".md", ".html", ".srt", ".csv", ".json", ".yaml", ".vtt"):
        with pytest.raises(InvalidDocument, match=r"the file is not a text: .* at byte 2"):
            translated(b"ab\xff\x00\xfe\x01\x02\x03" * 20, extension, SAME)


def test_markdown_is_the_same_byte_for_byte_when_nothing_changes() -> None:
    assert translated(MARKDOWN.encode(), ".md", SAME).decode() == MARKDOWN
    windows = MARKDOWN.replace("\n", "\r\n").encode()
    assert translated(windows, ".md", SAME) == windows


def test_in_markdown_all_text_and_only_text_is_translated() -> None:
    shouted = translated(MARKDOWN.encode(), ".md", LOUD).decode()
    assert "title: Not for translation" in shouted
    assert "# A *HEADING* WITH `code` #" in shouted
    assert (
        'A PARAGRAPH WITH **BOLD**, _ITALIC_, ***BOTH***, ~~OLD~~ AND A [LINK *HERE*](http://x.y/a_b "Title").'
        in shouted
    )
    assert "\\*ESCAPES\\*, AT&amp;T, 2 * 3 AND <b>HTML</b>." in shouted.replace("\\* 3", "* 3")
    quote = "A QUOTE WITH ![a picture](p.png) IN IT AND A [REFERENCE][ref] AND <https://auto.link>."
    assert quote in " ".join(shouted.replace("\n> ", " ").split())
    assert shouted.count("\n> ") == 2
    assert "- ONE ITEM\n  GOES ON\n" in shouted
    assert "  1. NESTED ITEM" in shouted
    assert "| NAME | WHAT IT *IS* |\n|------|-------------:|\n| A \\| B | SOME TEXT |" in shouted
    assert 'code = "is not text"' in shouted
    assert "    indented code" in shouted
    assert '<div class="x">BLOCK OF HTML</div>' in shouted
    assert "SETEXT HEADING\n==============" in shouted
    assert '[ref]: http://example.org "Reference"' in shouted
    assert "HARD BREAK  \nAND AFTER IT." in shouted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An apple\n: It is red.\n:   A fruit.\n", "AN APPLE\n: IT IS RED.\n:   A FRUIT.\n"),
        ("> Note.[^1a] $5 or US$\n\n[^1a]: See there.\n", "> NOTE.[^1a] $5 OR US$\n\n[^1a]: SEE THERE.\n"),
        ("> [!NOTE]\n> Mind it.\n\n:::tip\nDo it.\n:::\n", "> [!NOTE]\n> MIND IT.\n\n:::tip\nDO IT.\n:::\n"),
        ('!!! note "A"\n    Do it.\n', '!!! note "A"\n    DO IT.\n'),
        ("# A name {#a .b}\n\n:dog: is $x^n$ at 1:30:\n", "# A NAME {#a .b}\n\n:dog: IS $x^n$ AT 1:30:\n"),
        ("$$\nx = a\n$$\nis so\n", "$$\nx = a\n$$\nIS SO\n"),
        (
            "See [the dog] and [a\ncat][], [42][42]\n\n[the dog]: a\n[a cat]: b\n[42]: d\n",
            "SEE [THE DOG][the dog] AND [A\nCAT][a cat], [42][42]\n\n[the dog]: a\n[a cat]: b\n[42]: d\n",
        ),
        ("- [42]\n- [A dog]\n\n[42]: x\n[a dog]: y\n", "- [42]\n- [A DOG][A dog]\n\n[42]: x\n[a dog]: y\n"),
    ],
)
def test_what_markdown_has_beyond_commonmark_stays(text: str, expected: str) -> None:
    assert translated(text.encode(), ".md", LOUD).decode() == expected
    assert translated(text.encode(), ".md", SAME).decode() == text.replace("[]", "")


@pytest.mark.parametrize(
    "table",
    [
        'id,text,price\r\n1,Good morning,2.50\r\n2,"Yes, ""please""",\r\n',
        'id;text\n1;Good morning; \n2;"two\nlines"\n',
        '"id"\t"text"\n"1"\t"Größe"\n',
        'a, "dog"\nb, "cat"\n',
        'a , "dog, ""cat""" ;, b"c\n"x" y, z',
        "id,text\r\n1,Good morning",
        '"1","Good"\n2,morning\n\n,,\n"","x"\n',
    ],
)
def test_tables_keep_their_dialect_and_every_cell_with_a_letter_is_translated(table: str) -> None:
    assert translated(table.encode(), ".csv", SAME).decode() == table
    shouted = translated(table.encode(), ".csv", LOUD).decode()
    # A heading stays: names for programs, or names above a column of numbers.
    heading = table.splitlines(keepends=True)[0] if table.startswith(("id", '"id', '"text","n"', "text;n")) else ""
    assert shouted == heading + table[len(heading) :].upper()


def test_a_cell_gets_quotes_where_its_translation_needs_them() -> None:
    async def longer(texts: Sequence[str]) -> list[str]:
        return [f'{text}, "{text}"' for text in texts]

    table = 'id,text\n1, dog\n2,"cat"\n3, "cow"\n'
    result = translated(table.encode(), ".csv", Translate(longer)).decode()
    cells = [["id", "text"], ["1", ' dog, "dog"'], ["2", 'cat, "cat"'], ["3", 'cow, "cow"']]
    assert list(csv.reader(io.StringIO(result), skipinitialspace=False))[:3] == cells[:3]
    assert result.endswith('\n3, "cow, ""cow"""\n')


@pytest.mark.parametrize("unit", ['"', '""', '"""', ',"', ',""x', ',"a', '"a",', '" ', " ", "\n", ","])
def test_a_long_table_of_anything_is_the_same_when_nothing_changes(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.documents.steps._FREE_MARKS", 200_000)
    table = "a,b\n" + unit * 40_000
    assert translated(table.encode(), ".csv", SAME).decode() == table


def test_a_page_in_another_encoding_that_it_declares_stays_in_it() -> None:
    page = '<html><head><meta charset="iso-8859-1"></head><body><p>Größe €5</p></body></html>'
    content = page.encode("iso-8859-1", "xmlcharrefreplace")
    assert "<p>GRÖSSE &#8364;5</p>" in translated(content, ".html", LOUD).decode("iso-8859-1")


def test_a_paragraph_nested_without_end_is_refused() -> None:
    def nested(depth: int) -> bytes:
        return ("<p>word " + "<b>a " * depth + "</b>" * depth).encode()

    assert translated(nested(256), ".html", LOUD) == nested(256).replace(b"word", b"WORD").replace(b"a ", b"A ")
    with pytest.raises(DocumentTooComplex, match="256 deep"):
        translated(nested(257), ".html", SAME)


def test_formulas_of_a_table_stay() -> None:
    table = 'a,=SUM(A1:B2),"=IF(A1;""x"";""y"")", =a,b = c\n'
    assert translated(table.encode(), ".csv", LOUD).decode() == 'A,=SUM(A1:B2),"=IF(A1;""x"";""y"")", =a,B = C\n'
