"""Pages, parts of pages and templates: only their text changes."""

import contextlib
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.documents.formats.options import FormatOptions
from server.documents.rewriting import Translate
from server.interface.errors import DocumentTooComplex, InvalidDocument
from tests.server.documents.documents import LOUD, SAME, read_soon, translated

_PAGE = "<!DOCTYPE html><html><head>{}<title>{}</title></head><body>{}<p>{}</p></body></html>"


@pytest.mark.parametrize(
    "head",
    [
        '<noscript><img src="a>b" alt="c d"></noscript>',
        '<NOSCRIPT class="x">\r\n<img alt="e f">\r\n</NOSCRIPT ><noscript><br></noscript>',
        '<!-- <noscript><img src="a"></noscript> --><script>s = "<noscript><img></noscript>";</script>',
    ],
)
def test_a_head_stays_whole(head: str) -> None:
    page = _PAGE.format(head, "one", "", "two")
    expected = _PAGE.format(head, "ONE", "", "TWO")
    assert translated(page.encode(), ".html", LOUD).decode() == expected


def test_texts_for_browsers_without_scripts_are_translated_in_the_body() -> None:
    page = _PAGE.format("", "one", "<noscript>Please allow scripts</noscript>", "two")
    expected = _PAGE.format("", "ONE", "<noscript>PLEASE ALLOW SCRIPTS</noscript>", "TWO")
    assert translated(page.encode(), ".html", LOUD).decode() == expected


@pytest.mark.parametrize("unit", ["<noscript>", "<noscript><", "</head", "<noscript></noscript>"])
def test_many_such_elements_are_read_soon(unit: str) -> None:
    with contextlib.suppress(InvalidDocument, DocumentTooComplex):
        read_soon(unit * (200_000 // len(unit)) + "</head>", ".html")


WORDS = st.text("ab.,-\xe9 ", min_size=1, max_size=8)
REFERENCES = st.sampled_from(["&mdash;", "&nbsp;", "&#8217;", "&amp;", "&lt;", "&rarr;"])
MARKUP = st.sampled_from(
    (
        "<p>", "</p>", "<P CLASS=x>", "<br/>", "<BR>", "<b>", "</b>", "<a href=x?y&z>", "</a>",
        '<img src=i.png alt="o">', "<td>", "</tr>", "<hr>", "<!-- o -->", "<![CDATA[ o ]]>",
        "<script>if (o < u) o()</script>", "<x-y o=u>", "</x-y>", "<code>o</code>", "<span translate=no>o</span>",
        "<?= $o->u ?>", "<?php if ($o > 1) { ?>", "<% if o > u %>", "<%= o %>", "{% for o in u %}", "{% endfor %}",
        "{{ o.u }}", "{{#if o}}", "{{/if}}", "{{{ o }}}", "{{! o }}", "{# o #}", "${o}", "<#if o??>", "</#if>",
        " @if (o > u) {", "<li {{ o }}>", '<a href="{% url o %}">', '<p <?= $o ?>>', "{!! $o !!}", "{{ if .O }}",
        "<#if o?? && o < 1>", " @foreach ($o->u as $k => $v) ", " @lang('o.u (o)') ", " @endif ", "{#if o > u}",
        "{:else}", "{@html o}", "{if $o < 1}", "[[${o.u}]]", "<?php the_o(); ?>",
        "{{ end }}", "<o:p>", "</o:p>", "<svg><text>o</text></svg>", "<!DOCTYPE o>", '<?xml version="1.0"?>',
    )
)  # fmt: skip


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.lists(st.one_of(WORDS, REFERENCES, MARKUP), max_size=12))
def test_all_but_the_text_stays_byte_for_byte(pieces: list[str]) -> None:
    """Letters of text are a, b and é, those of everything else are others."""
    page = "".join(pieces)
    assert translated(page.encode(), ".html", SAME).decode() == page
    loud = translated(page.encode(), ".html", LOUD).decode()
    expected = "".join(piece if piece.lstrip()[:1] in tuple("<{$@&[") else piece.upper() for piece in pieces)
    assert re.sub(" +", " ", loud) == re.sub(" +", " ", expected)  # several spaces are one


@pytest.mark.parametrize(
    "part",
    [
        "<P>the sea &mdash; the sea</P>\n<img src=a.png>\n",
        "<td>the sea<td>the sea",
        '<?xml version="1.0"?>\n<html xmlns="a:b"><body><p>the sea<br />the sea</p></body></html>',
        "---\r\ntitle: not this\r\n---\r\n<p>the sea</p>",
        '<?php\nforeach ($a as $b): // "not > this"\n?><li class="<?= $b->c ?>">the sea</li><?php endforeach;',
        "<p>the sea {% if a > b and c < d %}the sea{% else %}the sea{% endif %}</p>",
        "@if (count($a) > 0)\n<p>the sea</p>\n@elseif ($a->b() == 'c')\n<p>the sea</p>\n@else\n<p>the sea\n@endif\n",
        "@if (a > 1) {<p>the sea</p>} @else if (a < b) {<p>the sea</p>} @else {<p>the sea</p>}",
        "@if($a) {{ $b }} the sea @else {{ $c }} the sea @endif",
        "<B a:b={() => c(d > 1)} {e} f={{g: 1}}>the sea</B><B a={(b) => { c(b) }}>the sea</B>",
        "<p>the sea &copy 2024 the sea</p>",
        "<#list a as b><p>the sea</p><#else></#list><#if a?? && b < c><p>the sea</p></#if>",
        "{#if a > 1}<p>the sea</p>{:else if b}<p>the sea</p>{/if}{#each a as b (b.id)}<p>the sea</p>{/each}",
        "<div <%= a %> id=b>the sea <%# not this %></div>",
        "<select><option value=a>the sea<option>the sea</select><button>the sea</button><button>the sea</button>",
        "<p>the sea</p><script>var a = '{{'; b = \"<p>not this</p>\";</script><p>the sea }}</p>",
        "<pre>the sea   the sea\n   the sea\t\tthe sea\n</pre><pre><code>not this</code></pre>",
        "<p>x > y & z &copy; the sea</p>",
        "<p>x <code>not this <p>the sea <b>the sea</b>",
        "<ul><li translate=no>not this<li>the sea</ul><p>the sea",
        "<p>{n, plural, =0 {the sea} other {{{n}} the sea}}</p>",
    ],
)
def test_parts_of_pages_and_templates_stay_what_they_are(part: str) -> None:
    expected = part.replace("the sea", "THE SEA")
    extension = ".xhtml" if part.startswith("<?xml") else ".html"
    loud = translated(part.encode(), extension, LOUD).decode()
    assert loud.replace("X", "x").replace("Y &", "y &").replace("& Z", "& z") == expected


def test_raised_and_lowered_text_keeps_its_element_for_the_translation() -> None:
    asked: list[str] = []

    async def remember(texts: Sequence[str]) -> list[str]:
        asked.extend(texts)
        return list(texts)

    page = "<p>the sea<sup><a href=#a>1</a></sup> is 2 m<sub>x</sub> <b>deep</b>"
    translated(page.encode(), ".html", Translate(remember, remember))
    assert asked == [
        'the sea<sup id="2"><span id="1">1</span></sup> is 2 m<sub id="3">x</sub> <span id="4">deep</span>'
    ]


@pytest.mark.parametrize(
    ("code", "is_value"),
    [
        ("<?php echo $name; ?>", True),
        ("<?php the_title() ?>", True),
        ("<?php $n = 3; ?>", False),
        ("<?php endif; ?>", False),
        ("<?php } else { ?>", False),
        ("<%= name %>", True),
        ("<% end %>", False),
        ("{@html name}", True),
        ("{/if}", False),
    ],
)
def test_code_that_shows_a_value_is_part_of_its_sentence(code: str, is_value: bool) -> None:
    asked: list[str] = []

    async def remember(texts: Sequence[str]) -> list[str]:
        asked.extend(texts)
        return list(texts)

    translated(f"<p>the sea {code}, the sea</p>".encode(), ".html", Translate(remember, remember))
    assert len(asked) == (1 if is_value else 2)


@pytest.mark.parametrize(
    ("source", "target"),
    [("a &mdash; b", "B &mdash; A"), ("a &#8211; b", "B &#8211; A"), ("a &mdash; b – c", "B – A"), ("a — b", "B – A")],
)
def test_a_dash_is_written_as_in_the_source_whatever_its_length(source: str, target: str) -> None:
    async def shorter(texts: Sequence[str]) -> list[str]:
        return ["B – A" for _ in texts]

    assert translated(f"<p>{source}</p>".encode(), ".html", Translate(shorter, shorter)).decode() == f"<p>{target}</p>"


@pytest.mark.parametrize("declared", ["{{ page.lang }}", "<?= $lang ?>", ""])
def test_a_language_that_code_declares_stays(declared: str) -> None:
    page = f'<html lang="{declared}"><body lang="en">the sea</body></html>'
    written = translated(page.encode(), ".html", LOUD, options=FormatOptions(language="de")).decode()
    assert written == page.replace("the sea", "THE SEA").replace('"en"', '"de"')


@pytest.mark.parametrize(
    "unit",
    [
        "<?php ",
        "<%",
        "{{",
        "{#",
        "<#a ",
        "@if (",
        "@a(",
        "@a('",
        "@a(()",
        "{#a ",
        "{if ",
        "a={",
        "a={{",
        "a={<",
        "@if {",
        "[[${",
        "{{a}}",
        "---\n",
    ],
)
def test_much_code_of_anything_is_read_soon(unit: str) -> None:
    with contextlib.suppress(InvalidDocument, DocumentTooComplex):
        read_soon(unit * (200_000 // len(unit)), ".html")
