"""Parts of Markdown files that are no text: data at the top and boxes of tasks; and line ends, of pages too."""

import re
from collections.abc import Callable, Sequence

import pytest

from server.documents.rewriting import Translate
from server.interface.errors import DocumentTooComplex
from tests.server.documents.documents import LOUD, SAME, translated


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        ("---\ntitle: a b\n---\n", "c d\n"),
        ("--- \ntitle: a b\n--- \t\n", "c d\n"),
        ("---\ntitle: a b\n---", ""),
        ("---\n---\n", "c d\n"),
        ('+++\ntitle = "a b"\n\n[menu]\n+++\n', "c d\n"),
        ("", "+++\nc d\n"),
        ("", "---\nc d\n"),
        ("", "---\nc d\n\n+++\n"),
    ],
)
def test_data_at_the_top_stays(data: str, rest: str) -> None:
    assert translated((data + rest).encode(), ".md", SAME).decode() == data + rest
    loud = translated((data + rest).encode(), ".md", LOUD).decode()
    assert loud.startswith(data)
    assert loud.removeprefix(data).split() == rest.upper().split()


def test_boxes_of_tasks_stay() -> None:
    text = "- [ ] a b\n- [x] [c](x)\n- [X]\td\n- [x](x) e [ ] f\n"
    assert translated(text.encode(), ".md", SAME).decode() == text
    expected = "- [ ] A B\n- [x] [C](x)\n- [X]\tD\n- [X](x) E [ ] F\n"
    assert translated(text.encode(), ".md", LOUD).decode() == expected


def _quotation(num_levels: int) -> str:
    return "> " * num_levels + "a b\n"


def _list(num_levels: int) -> str:
    return "".join(f"{'  ' * level}- a b\n" for level in range(num_levels))


@pytest.mark.parametrize(("nested", "most"), [(_quotation, 95), (_list, 47)])
def test_deep_quotations_and_lists_are_translated_and_deeper_ones_rejected(
    nested: Callable[[int], str], most: int
) -> None:
    text = nested(most)
    assert translated(text.encode(), ".md", LOUD).decode() == text.upper()
    with pytest.raises(DocumentTooComplex, match=r"quotations .* 95 deep, and lists 47. .* 'a b'|'- a b'"):
        translated(nested(most + 1).encode(), ".md", LOUD)


@pytest.mark.parametrize("text", ["a b\rc d\r", "a b\r\nc d\n\n# e f\n", "a\0b c\n"])
def test_a_file_with_unusual_line_ends_or_characters_stays_if_nothing_changes(text: str) -> None:
    assert translated(text.encode(), ".md", SAME).decode() == text


def test_a_translation_has_the_line_ends_of_most_lines_of_its_source() -> None:
    assert translated(b"a b\rc d\r", ".md", LOUD) == b"A B\rC D\r"
    assert translated(b"a b\r\nc d\n\n# e f\n", ".md", LOUD) == b"A B\nC D\n\n# E F\n"
    page = "<!DOCTYPE\r\nhtml><html><head></head><body><p>{}</p>\r\n<!-- c\r\nd -->\r\n</body></html>"
    assert translated(page.format("a b").encode(), ".html", LOUD).decode() == page.format("A B")


@pytest.mark.parametrize("markup", ["[c](<u v>)", "$x = y z$", '[c](u "t w")'])
def test_markup_stays_in_one_line(markup: str) -> None:
    text = "more text\na {} d\n"
    loud = translated(text.format(markup).encode(), ".md", LOUD).decode()
    assert loud.split() == text.upper().format(markup.replace("[c]", "[C]")).split()
    assert any(markup.replace("[c]", "[C]") in line for line in loud.split("\n"))


def test_tags_in_a_line_stay_around_their_words() -> None:
    text = "Drink H<sub>2</sub>O and <b>much <i>of it</i></b>, <kbd>not</kbd> <a href='x'>tea</a><br>now<!-- no -->\n"
    loud = "DRINK H<sub>2</sub>O AND <b>MUCH <i>OF IT</i></b>, <kbd>NOT</kbd> <a href='x'>TEA</a><br>NOW<!-- no -->\n"
    assert translated(text.encode(), ".md", LOUD).decode().replace("<kbd>not", "<kbd>NOT") == loud


@pytest.mark.parametrize(
    ("text", "loud"),
    [
        (
            "<details>\n<summary>a dog</summary>\n\nand *a cat*\n\n</details>\n",
            "<details>\n<summary>A DOG</summary>\n\nAND *A CAT*\n\n</details>\n",
        ),
        ("<!-- no -->\n<script>\nno()\n</script>\n\na dog\n", "<!-- no -->\n<script>\nno()\n</script>\n\nA DOG\n"),
        (
            "a {{ dog.name }} {% if cat %}or *a cat*{% endif %}\n",
            "A {{ dog.name }} {% if cat %}OR *A CAT*{% endif %}\n",
        ),
        ("{% highlight c %}\nno();\n{% endhighlight %}\n", "{% highlight c %}\nno();\n{% endhighlight %}\n"),
        ('{{< figure no="b" >}}\n\na dog\n', '{{< figure no="b" >}}\n\nA DOG\n'),
        (
            "> <p>a dog</p>\n\n<p align=center>a dog &amp; a cat</p>\n",
            "> <p>A DOG</p>\n\n<p align=center>A DOG &amp; A CAT</p>\n",
        ),
    ],
)
def test_html_and_code_of_templates_stay_around_the_texts(text: str, loud: str) -> None:
    assert translated(text.encode(), ".md", LOUD).decode() == loud
    assert translated(text.encode(), ".md", SAME).decode() == text


@pytest.mark.parametrize(
    "text",
    [
        'the sea[^1] is\n\n[^1]: the sea\n[r]: http://x.org/r "not this"\n',
        "the sea\n[r]: <http://x.org/r>\n[s]: http://x.org/s 'not this'\n",
        '!!! note "the sea"\n    the sea\n\n??? tip "the sea"\n    the sea\n',
        "!!! note\n    the sea\n",
        "> [!NOTE] the sea\n> the sea\n",
        ":::tip the sea\nthe sea\n:::\n\n:::note[the sea]\nthe sea\n:::\n\n::: {.tip}\nthe sea\n:::\n",
        "import A from '@b/c';\nimport {\n  D\n} from \"e\"\n\nthe sea\n\nexport const f = {\n  a: 'no',\n};\n",
        "import the sea, export the sea\n",
        "the sea ++ctrl+c++ the sea, ==the sea== ++the sea++\n",
        "[the sea][r], the sea [the sea][s.t] [the sea][]",
    ],
)
def test_extensions_of_commonmark_stay(text: str) -> None:
    loud = translated(text.encode(), ".md", LOUD).decode()
    expected = text.replace("the sea", "THE SEA").replace(" is\n", " IS\n").replace("import THE", "IMPORT THE")
    expected = expected.replace("export THE", "EXPORT THE").replace("[THE SEA][]", "[THE SEA][the sea]")
    assert loud == expected


def test_raised_and_marked_words_keep_their_markup() -> None:
    asked: list[str] = []

    async def remember(texts: Sequence[str]) -> list[str]:
        asked.extend(texts)
        return list(texts)

    text = "H~2~O, 10^6^, ==the sea==^[a note], C++17 or C++20, x == y == z\n"
    assert translated(text.encode(), ".md", Translate(remember, remember)).decode() == text
    [markup] = asked
    assert re.sub(r"<[^>]*>", "|", markup) == "H|2|O, 10|6|, |the sea||a note|, C++17 or C++20, x == y == z"


def test_a_link_whose_label_is_translated_names_its_address() -> None:
    text = "See [the sea][], [the hill], [the wood][] and [w][the wood].\n\n[the sea]: u\n[the hill]: v\n"
    assert translated(text.encode(), ".md", LOUD).decode() == (
        "SEE [THE SEA][the sea], [THE HILL][the hill], [THE WOOD][the wood] AND [W][the wood].\n\n[the sea]: u\n"
        "[the hill]: v\n"
    )
    assert translated(text.encode(), ".md", SAME).decode() == text


@pytest.mark.parametrize(
    "text",
    [
        "> <div class=x>\n> <p>the sea</p>\n> </div>\n>\n> the <b>sea</b>\n",
        "- <b>the sea</b>\n  <details><summary>the sea</summary>\n\n  the sea\n  </details>\n- the sea\n",
        "> > <p>the sea</p>\n> > <img src=x>\n\n1. <div>\n   the sea <i>the sea</i>\n   </div>\n\n   the sea\n",
        "> <pre>\n> the sea\n>   the sea\n> </pre>\n\nthe sea\n",
    ],
)
def test_html_in_quotes_and_lists_is_translated(text: str) -> None:
    assert translated(text.encode(), ".md", SAME).decode() == text
    assert translated(text.encode(), ".md", LOUD).decode() == text.replace("sea", "SEA").replace("the", "THE")
