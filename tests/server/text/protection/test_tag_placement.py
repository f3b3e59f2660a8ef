"""Tags follow their words."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from server.text.protection.tag_placement import Block, fits, render
from server.text.protection.word_alignment import links, words_of
from server.text.readers.plain_text import read_text
from server.text.readers.unit_builder import UnitBuilder
from server.text.readers.units import DIVIDER, Tag, Unit
from server.text.unknown_characters import UnknownCharacters

ASCII = UnknownCharacters(map(chr, range(128)))


def _unit(markup: str) -> Unit:
    """Return a unit of words and tags without attributes."""
    builder = UnitBuilder(ASCII)
    for part in re.split(r"(</?\w+/?>)", markup):
        if part.startswith("</"):
            builder.close(part[2:-1], part)
        elif part.endswith("/>"):
            builder.mark(part)
        elif part.startswith("<"):
            builder.open(part[1:-1], part)
        else:
            builder.text(part, part)
    return builder.build()


def _plain_unit(markup: str) -> Unit:
    """Return the unit of plain text with the same tags."""
    [unit] = (part for part in read_text(markup, ASCII) if isinstance(part, Unit))
    return unit


def _rendered(markup: str, target: str, order: list[int] | None, unit_of: Callable[[str], Unit] = _unit) -> str:
    """Return a translation with its tags; `order` has the source word of each target word, None is no attention."""
    unit = unit_of(markup)
    source_words = words_of(unit.text, [place for tag in unit.tags for place in (tag.start, tag.end)])
    target_words = words_of(target)
    attention = None if order is None else np.eye(len(source_words), dtype=np.float32)[order]
    found = links([str(i) for i in range(len(source_words))], ["t"] * len(target_words), attention)
    return render(unit, target, [Block(source_words, target_words, found)], [])


@pytest.mark.parametrize(
    ("markup", "target", "order", "expected"),
    [
        ("a <b>red</b> house", "ein rotes Haus", [0, 1, 2], "ein <b>rotes</b> Haus"),
        ("I <b>have</b> <i>seen</i> him", "Ich habe ihn gesehen", [0, 1, 3, 2], "Ich <b>habe</b> ihn <i>gesehen</i>"),
        ("<b>seen</b> <i>him</i>", "ihn gesehen", [1, 0], "<i>ihn</i> <b>gesehen</b>"),
        ("<b>the <i>red</i> house</b> is", "ist das rote Haus", [3, 0, 1, 2], "ist <b>das <i>rote</i> Haus</b>"),
        ("see <img/> there", "dort sehen", [1, 0], "<img/> dort sehen"),
        ("see<img/> there", "dort sehen", [1, 0], "dort sehen<img/>"),
        ("<b>all of it</b>", "alles", [0], "<b>alles</b>"),
        ("<a>one</a> <b>two</b> <c>three</c>", "eins", [1], "<a></a><b>eins</b><c></c>"),
        ("un<b>believ</b>able", "unglaublich", [1], "<b>unglaublich</b>"),
        ("a <b></b> c", "x y", [0, 1], "x <b></b>y"),
    ],
)
def test_tags_stand_around_the_translations_of_their_words(
    markup: str, target: str, order: list[int], expected: str
) -> None:
    rendered = _rendered(markup, target, order)
    assert rendered.replace("  ", " ") == expected or sorted(re.findall("<[^>]*>", rendered)) == sorted(
        re.findall("<[^>]*>", expected)
    )
    if "<c>" not in markup and "<img/> " not in markup and "<b></b>" not in markup:
        assert rendered == expected


@pytest.mark.parametrize("unit_of", [_unit, _plain_unit])
@pytest.mark.parametrize("num_words", range(6))
def test_unsure_alignments_lose_no_tag_and_cross_none(num_words: int, unit_of: Callable[[str], Unit]) -> None:
    drawn = np.random.default_rng(num_words)
    markup = "<a>one <b>two</b></a> <i/> three <c><d>four</d> five</c> six"
    for _ in range(50):
        target = " ".join(["w"] * num_words)
        order = drawn.integers(0, 6, num_words).tolist()
        rendered = _rendered(markup, target, order if num_words else None, unit_of)
        assert sorted(re.findall("<[^>]*>", rendered)) == sorted(re.findall("<[^>]*>", markup))
        assert re.sub("<[^>]*>", "", rendered).split() == target.split()
        open_: list[str] = []
        for tag in re.findall(r"</?\w+>", rendered):
            if tag.startswith("</"):
                assert open_.pop() == tag[2:-1]
            else:
                open_.append(tag[1:-1])
        assert rendered.index("<a>") < rendered.index("<b>") < rendered.index("</b>") <= rendered.index("</a>")


def test_white_space_stays_on_its_side_of_a_tag() -> None:
    for markup in ("a <b>b </b>c", "a<b> b</b> c", "<b> a</b> b<i> c </i>", "a <i/> b"):
        unit = _unit(markup)
        words = words_of(unit.text)
        block = Block(words, words, np.eye(len(words), dtype=np.float32))
        assert render(unit, unit.text, [block], []) == markup


def test_a_mark_between_a_word_and_a_comma_has_its_space_in_front() -> None:
    assert _rendered("see <img/> there now", "da, nun", [0, 1, 2]) == "da <img/>, nun"


def test_a_tag_that_begins_in_another_sentence_stands_around_the_first_items() -> None:
    tags = [Tag(0, 10, "<b>", "</b>")]
    assert fits(tags, (5, 20), [(6, 7), (12, 13)])
    assert not fits(tags, (5, 20), [(12, 13), (6, 7)])
    tags = [Tag(11, 30, "<b>", "</b>")]
    assert fits(tags, (5, 20), [(6, 7), (12, 13)])
    assert not fits(tags, (5, 20), [(12, 13), (6, 7)])


def test_a_tag_of_another_unit_is_kept() -> None:
    unit = _unit("one</b> two <i>three")
    assert unit.tags == (Tag(0, 3, "", "</b>"), Tag(8, 13, "<i>", ends_behind=True))


@pytest.mark.parametrize(
    ("source", "target", "order", "expected"),
    [
        ("yesterday I saw |the man", "gestern sah ich den Mann", [0, 2, 1, 3, 4], "gestern sah ich |den Mann"),
        ("I have |seen him", "ich habe ihn gesehen", [0, 1, 3, 2], "ich habe |ihn gesehen"),
        ("a b |c d", "c d a b", [2, 3, 0, 1], "|c d a b"),
        ("a |b |c", "x y z", [0, 1, 2], "x |y |z"),
        ("a |b |c", "x z", [0, 2], "x ||z"),
        ("a b |c", "x", [0], "x|"),
        ("a <b>b</b> |c d", "x z w y", [0, 2, 3, 1], "x |z w <b>y</b>"),
    ],
)
def test_dividers_leave_words_on_the_side_of_those_they_translate(
    source: str, target: str, order: list[int], expected: str
) -> None:
    rendered = _rendered(source.replace("|", DIVIDER), target, order, _plain_unit)
    assert rendered.replace(DIVIDER, "|") == expected
