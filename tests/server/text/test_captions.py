"""Captions of one sentence, and where their translation is divided."""

import random
from itertools import pairwise

import pytest

from server.text.captions import Caption, ReadingLimits, cuts, divided, is_end, joined_captions, with_dividers
from server.text.readers.units import DIVIDER

LIMITS = ReadingLimits(characters_per_second=17.0)
UNTIMED = Caption(20)


def _divided(text: str, *captions: Caption, language: str = "en") -> list[str]:
    return divided(text.replace("|", DIVIDER), captions, language, LIMITS)


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("I saw the man |whom we met.", "en", ["I saw the man", "whom we met."]),
        ("I saw him |yesterday, when we met.", "en", ["I saw him yesterday,", "when we met."]),
        ("I saw. He |went there again.", "en", ["I saw.", "He went there again."]),
        ("Then we saw the |man again there.", "en", ["Then we saw", "the man again there."]),
        ("We have walked 5 |kilometres today already.", "en", ["We have walked", "5 kilometres today already."]),
        ("Then we saw Dr. |Green again there.", "en", ["Then we saw", "Dr. Green again there."]),
        ("Wir sehen dann den |Mann dort wieder.", "de", ["Wir sehen dann", "den Mann dort wieder."]),
        ("Wir sehen den |Mann dort wieder.", "xx", ["Wir sehen den", "Mann dort wieder."]),
        ("We go home – |then we rest.", "en", ["We go home –", "then we rest."]),
        ("他昨天买了|一辆新的车。", "zh", ["他昨天买了", "一辆新的车。"]),
        ("|We go home.", "en", ["We", "go home."]),
        ("We go home.|", "en", ["We go", "home."]),
        ("We go home.", "en", ["We go", "home."]),
        ("|We| go home.", "en", ["We go", "home."]),
        ("Home.", "en", ["Ho-", "me."]),
        ("Unabhängigkeit", "de", ["Unabhän-", "gigkeit"]),
        ("हिन्दी", "hi", ["हि", "न्दी"]),
        ("A", "en", ["A", "A"]),
        ("—", "en", ["—", "—"]),
    ],
)
def test_a_cut_moves_to_a_better_place_near_by(text: str, language: str, expected: list[str]) -> None:
    assert _divided(text, UNTIMED, UNTIMED, language=language) == expected


def test_the_longest_words_are_divided_where_there_are_fewer_than_captions() -> None:
    assert _divided("Good morning.", *[UNTIMED] * 4) == ["Go-", "od", "morn-", "ing."]
    assert _divided("Go |on", *[UNTIMED] * 3) == ["G-", "o", "on"]
    assert _divided("他们走", *[UNTIMED] * 3) == ["他们"[:1], "们", "走"]


def test_words_move_to_a_caption_with_time_to_read_them() -> None:
    text = "They walked slowly |home afterwards together."
    assert _divided(text, Caption(20, 9.0), Caption(20, 0.5)) == ["They walked slowly home afterwards", "together."]
    assert _divided(text, Caption(20, 0.3), Caption(20, 9.0)) == ["They", "walked slowly home afterwards together."]


def test_captions_have_at_most_two_lines_where_words_near_by_allow_it() -> None:
    text = f"{'many words ' * 7}longestword |here."
    first, second = _divided(text, UNTIMED, UNTIMED)
    assert len(first) <= LIMITS.num_lines * LIMITS.line_characters < len(f"{first} {second.split()[0]}")


def test_shares_are_those_of_the_sources_without_dividers() -> None:
    assert _divided("one two three four five six", Caption(100), Caption(50)) == ["one two three four", "five six"]
    assert _divided("one two three four five six", Caption(50), Caption(100)) == ["one two", "three four five six"]


def test_every_caption_has_a_word_while_there_are_enough() -> None:
    chooser = random.Random(1)
    for _ in range(2000):
        words = [
            chooser.choice(("a", "the", "7", "word,", "end.", "—", "他们", "...")) for _ in range(chooser.randrange(20))
        ]
        number = chooser.randrange(1, 8)
        plain = " ".join(words)
        text = plain
        for _ in range(chooser.choice((0, number - 1, number, 3))):
            place = chooser.randrange(len(text) + 1)
            text = text[:place] + DIVIDER + text[place:]
        captions = [Caption(chooser.randrange(40), chooser.choice((None, 0.1, 3.0))) for _ in range(number)]
        places = cuts(text, captions, "en", LIMITS)
        assert len(places) == number - 1
        assert places == sorted(places)
        num_words = sum(map(str.isalnum, "".join(word[:1] for word in words)))
        pieces = [plain[start:end] for start, end in pairwise([0, *places, len(plain)])]
        if num_words >= number:
            assert all(any(map(str.isalnum, piece)) for piece in pieces), (text, pieces)
        assert all(divided(text, captions, "en", LIMITS)) == bool(plain.strip())


@pytest.mark.parametrize(
    ("text", "following", "expected"),
    [
        ("We saw", "him.", False),
        ("We saw Dr.", "Green.", False),
        ("Well...", "maybe so.", False),
        ("We left.", "He stayed.", True),
        ("Did he?", "he did", True),
        ("We left", "- No", True),
        ("We left", "ANNA: No", True),
        ("No--", "Yes!", True),
    ],
)
def test_ends_of_sentences(text: str, following: str, expected: bool) -> None:
    assert is_end(text, following) == expected


def test_a_text_that_is_too_long_is_not_one_sentence() -> None:
    texts = ["word " * 19 + "word"] * 9
    groups = joined_captions([*texts, "The end."], [True] * 9)
    assert groups == [range(3), range(3, 6), range(6, 9), range(9, 10)]


def test_a_blank_stands_between_captions_of_scripts_with_blanks() -> None:
    assert with_dividers(["We went", "home"]) == f"We went {DIVIDER}home"
    assert with_dividers(["我们回", "家"]) == f"我们回{DIVIDER}家"
    assert with_dividers(["우리는", "집에"]) == f"우리는 {DIVIDER}집에"
