"""Elements for browsers without scripts in the head of a page, which end it for such browsers."""

import contextlib

import pytest

from server.interface.errors import DocumentTooComplex, InvalidDocument
from tests.server.documents.documents import LOUD, read_soon, translated

_PAGE = "<!DOCTYPE html><html><head>{}<title>{}</title></head><body>{}<p>{}</p></body></html>"


@pytest.mark.parametrize(
    "head",
    [
        '<noscript><img src="a>b" alt="c d"></noscript>',
        '<NOSCRIPT class="x">\r\n<p>e f</p>\r\n</NOSCRIPT ><noscript>g<br></noscript>',
        '<!-- <noscript><img src="a"></noscript> --><script>s = "<noscript><img></noscript>";</script>',
        '<noscript><link rel="x"></noscript>',
        '<meta name="hidden-noscript-0">',
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
