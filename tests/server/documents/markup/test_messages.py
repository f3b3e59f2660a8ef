"""ICU messages in paragraphs of documents, with elements in their branches."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.documents.fragment import Atom, Fragment, Wrap, joined
from server.documents.rewriting import Translate
from server.documents.steps import fragment_parts
from tests.server.documents.documents import LOUD, LOUD_PLAIN, translated

_WORDS = st.sampled_from(("one dog", "many dogs", "it's here", "{n}", " ", "#", ""))
_NODES = st.one_of(_WORDS, st.integers(1, 9).map(Atom), st.integers(1, 9).map(lambda key: Wrap(key, ("bold",))))
_PLAIN = st.lists(_NODES, max_size=3).map(joined)
_MESSAGES = st.recursive(
    _PLAIN,
    lambda inner: st.tuples(_PLAIN, inner, inner, _PLAIN).map(
        lambda parts: joined([*parts[0], "{n, plural, one {", *parts[1], "} other {", *parts[2], "}}", *parts[3]])
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(_MESSAGES)
def test_parts_are_the_paragraph_and_no_text_has_syntax(message: Fragment) -> None:
    parts = fragment_parts(message)
    assert joined(node for _, part in parts for node in part) == message
    assert not any("plural" in node for is_text, part in parts if is_text for node in part if isinstance(node, str))


def test_syntax_that_an_element_divides_is_text() -> None:
    message: Fragment = ("{n, plural, one ", Atom(1), " {a dog} other {dogs}}")
    assert fragment_parts(message) == [(True, message)]
    foreign: Fragment = ("\ufffc {n, plural, other {a}}", Atom(1))
    assert fragment_parts(foreign) == [(True, foreign)]


MESSAGE = "I see {n, plural, =0 {no dog} one {a dog} other {# dogs}} today."
LOUD_MESSAGE = "I SEE {n, plural, =0 {NO DOG} one {A DOG} other {# DOGS}} TODAY."


@pytest.mark.parametrize(
    ("extension", "content"),
    [
        (".txt", f"{MESSAGE}\n"),
        (".csv", f'1,"{MESSAGE}"\n2,"{MESSAGE}"\n'),
        (".po", f'msgid "a"\nmsgstr "b"\n\nmsgid "{MESSAGE}"\nmsgstr "%s"\n'),
        (".xlf", f'<xliff version="1.2"><file><trans-unit><source>{MESSAGE}</source>%s</trans-unit></file></xliff>'),
        (".html", f"<p>{MESSAGE}</p><p>{MESSAGE}</p>"),
        (".json", f'{{"a": "{MESSAGE}"}}'),
        (".yaml", f'a: "{MESSAGE}"\n'),
        (".properties", f"a={MESSAGE}\n"),
        (".strings", f'"a" = "{MESSAGE}";\n'),
        (".srt", f"1\n00:00:01,000 --> 00:00:02,000\n{MESSAGE}\n"),
    ],
)
@pytest.mark.parametrize("translate", [LOUD, LOUD_PLAIN], ids=["html", "plain"])
def test_the_branches_of_a_message_are_translated_in_every_format(
    extension: str, content: str, translate: Translate
) -> None:
    target = {".po": LOUD_MESSAGE, ".xlf": f'<target state="translated">{LOUD_MESSAGE}</target>'}.get(extension)
    expected = content.replace(MESSAGE, LOUD_MESSAGE) if target is None else content.replace("%s", target)
    assert translated(content.replace("%s", "").encode(), extension, translate).decode() == expected


def test_an_element_stays_in_its_branch() -> None:
    unit = '<xliff version="1.2"><file><trans-unit><source>%s</source>%s</trans-unit></file></xliff>'
    source = '{n, plural, =0 {no dog} other {<x id="n"/> dogs and <g id="1">cats</g>}}'
    target = (
        '<target state="translated">{n, plural, =0 {NO DOG} other {<x id="n"/> DOGS AND <g id="1">CATS</g>}}</target>'
    )
    assert translated((unit % (source, "")).encode(), ".xlf", LOUD).decode() == unit % (source, target)
