import pytest

from server.documents.fragment import (
    Atom,
    Fragment,
    Wrap,
    from_html,
    plain_texts,
    to_html,
    with_plain_texts,
)

_FRAGMENT = ("a ", Wrap(1, ("soft ", Wrap(2, ("link",), is_soft=False), " word")), Atom(3), " end")
_SOFT = (Wrap(1, ("one",)), " < two ", Atom(2, "x & y"))


def test_hard_elements_divide_the_plain_texts() -> None:
    assert plain_texts(_FRAGMENT) == ["a soft ", "link", " word", " end"]
    assert plain_texts(("plain",)) == ["plain"]
    assert plain_texts(("a ", Wrap(1, ("b", Wrap(2, (" c",)))), "d")) == ["a b cd"]
    assert plain_texts((Atom(1), Atom(2))) == []
    assert plain_texts(("m", Wrap(1, ("2",)), " wide")) == ["m", "2", " wide"]


def test_html_has_the_keys_as_ids() -> None:
    assert to_html(_SOFT) == '<span id="1">one</span> &lt; two <code id="2">x &amp; y</code>'
    assert to_html((Atom(3), Wrap(4, (Wrap(5, ('"',)),)))) == '<img id="3"><span id="4"><span id="5">"</span></span>'
    assert from_html(to_html(_SOFT), _SOFT) == _SOFT
    exponent: Fragment = ("m", Wrap(1, ("2",), name="sup"))
    assert to_html(exponent) == 'm<sup id="1">2</sup>'
    assert from_html('x <sup id="1">3</sup>', exponent) == ("x ", Wrap(1, ("3",), name="sup"))
    assert from_html("x", exponent) == ("x",)
    assert from_html(to_html(_FRAGMENT), _FRAGMENT) == _FRAGMENT


@pytest.mark.parametrize(
    ("translated", "expected"),
    [
        ('<code id="2">z</code><span id="1">a</span>', (Atom(2, "x & y"), Wrap(1, ("a",)))),
        (
            '<span id="1">a</span><code id="2"></code><span id="1">b</span>',
            (Wrap(1, ("a",)), Atom(2, "x & y"), Wrap(1, ("b",))),
        ),
        ('<span id="1">a</span>', None),
        ('<code id="2"></code>', None),
        ('<span id="1"></span><code id="2"></code><code id="2"></code>', None),
        ('<span id="1"><b>a</b></span><code id="2"></code>', None),
        ('<span id="1">a</span><code id="2"></code><i id="7">x</i>', None),
        ('<span id="1">a</span><code id="2"></code><!-- x -->', None),
    ],
)
def test_every_element_must_be_in_a_translation(translated: str, expected: Fragment | None) -> None:
    assert from_html(translated, _SOFT) == expected


def test_a_link_must_stay_in_one_piece() -> None:
    link = (Wrap(1, ("a",), is_soft=False),)
    assert from_html('<span id="1">b</span>', link) == (Wrap(1, ("b",), is_soft=False),)
    assert from_html('<span id="1">b</span><span id="1">c</span>', link) is None


def test_plain_translations_take_the_formatting_of_the_longest_text() -> None:
    assert with_plain_texts(_FRAGMENT, ["A", "LINK", "W", "E"]) == (
        Wrap(1, ("A", Wrap(2, ("LINK",), is_soft=False), "W")),
        Atom(3),
        "E",
    )
    assert with_plain_texts(("a", Wrap(1, ("b",))), ["X"]) == ("X",)
    assert with_plain_texts(("a", Wrap(1, ("bc",))), ["X"]) == (Wrap(1, ("X",)),)
    assert with_plain_texts(("plain",), ["X"]) == ("X",)
    # A link without a text is still one.
    assert with_plain_texts((Wrap(1, (), is_soft=False), "a"), ["X"]) == (Wrap(1, (), is_soft=False), "X")
    with pytest.raises(ValueError, match="zip"):
        with_plain_texts(_FRAGMENT, ["A", "LINK"])
