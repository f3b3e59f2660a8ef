import html
import random
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import pytest

from server.documents.formats.options import FormatOptions
from server.documents.markup.cues import CueMarkup, lines_of
from server.documents.markup.items import Item, Unit, find_units
from server.documents.rewriting import Translate
from server.interface.errors import InvalidDocument
from server.text.readers.units import DIVIDER
from tests.server.documents.documents import LOUD, SAME, translated

_MARKUP = CueMarkup(re.compile(r"(</?(?:[bi]|v [^>]*)>|<[0-9:.]+>|\{[^}]*\})"))
_ENTITIES = CueMarkup(re.compile(r"(<b>)"), html.unescape, partial(html.escape, quote=False))


def _items(text: str, markup: CueMarkup = _MARKUP) -> list[Item]:
    return list(markup.items(lines_of(text), 7))


def _shown(text: str) -> list[tuple[str, str]]:
    found = _items(text)
    assert "".join(item.raw for item in found) == text
    return [(item.kind.name, item.raw) for item in found]


def _sentences(text: str) -> list[str]:
    """The texts of a cue that are translated together, with a slash for each line end in them."""
    items = _items(text)
    assert "".join(item.raw for item in items) == text
    return ["".join("/" if each.raw == "\n" else each.text for each in unit.items) for unit in find_units(items)]


def test_lines_of_one_sentence_are_one_text() -> None:
    assert _shown(" a <i>b</i>\n{x}c ") == [
        ("TEXT", " "), ("TEXT", "a "), ("OPEN", "<i>"), ("TEXT", "b"), ("CLOSE", "</i>"), ("TEXT", "\n"),
        ("ATOM", "{x}"), ("TEXT", "c"), ("BREAK", " "),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "Where is it?",
        "Все ушли.",
        "他走了。",
        "Really?”",
        "(laughs.)",
        "<i>Gone.</i>",
        "but I was--",
        "♪ la la ♪",
        "¶ la la ¶",
    ],
)
def test_a_line_that_ends_a_sentence_is_a_text_of_its_own(line: str) -> None:
    assert len(_sentences(f"{line}\nIt is late now")) == 2


@pytest.mark.parametrize(
    "line",
    [
        "JOHN: stay", "Dr. Ada Lovelace: stay", "MAN #2 (on phone): stay", "汤姆：留下", "- stay", "–stay", ">> stay",
        "(door slams)", "[music]", "♪ stay with me", "# stay with me", "<i>- stay</i>", "<v John>stay", "（笑）",
        "* laughs *", "• stay", "−stay",
    ],
)  # fmt: skip
def test_a_line_that_begins_with_a_speaker_or_a_sound_is_a_text_of_its_own(line: str) -> None:
    assert len(_sentences(f"we were going home\n{line}")) == 2


@pytest.mark.parametrize(
    "text",
    [
        "we were going\nto the station", "she was about...\nto leave", "it weighs approx.\nten pounds",
        "it is now\n10:30 at night",
        "we met Dr.\nJones there", "she lives on St.\nJohn Street",
        "one thing is clear:\nwe stay", "it fell to\n-5 degrees", "we are\n#1 today", "go to <i>the\nold</i> house",
    ],
)  # fmt: skip
def test_a_sentence_goes_on_in_the_next_line(text: str) -> None:
    assert len(_sentences(text)) == 1


def test_quoted_lines_are_those_of_two_speakers() -> None:
    assert _sentences("«stay here»\n«not me»") == ["«stay here»", "«not me»"]
    assert len(_sentences("he said “stay\nhere” to me")) == 1


def test_a_line_may_begin_with_any_word_that_is_no_mark_of_a_speaker() -> None:
    items = _items('he said to me\n"come here"')
    unit = Unit(items, 0, len(items))
    assert _MARKUP.wrapped(unit, 'HE SAID TO ME "COME HERE"') == 'HE SAID TO ME\n"COME HERE"'
    assert _MARKUP.wrapped(unit, "HE SAID TO ME - COME HERE") == "HE SAID TO ME -\nCOME HERE"


def test_what_stands_alone_in_a_line_does_not_join_the_next() -> None:
    assert _sentences("(sighs)\nwhat now") == ["(sighs)", "what now"]
    assert _sentences("JOHN:\nwhat now") == ["JOHN:", "what now"]
    assert _sentences("1. we go\n2. you stay") == ["1. we go", "2. you stay"]
    assert _sentences("we are\n2. you stay") == ["we are/2. you stay"]
    assert _sentences("it is late. we\ngo home. you\nstay") == ["it is late. we/go home. you/stay"]
    assert _sentences("we go home.\nYou stay\nhere") == ["we go home.", "You stay/here"]


def test_marks_in_front_of_a_speaker_stay_where_they_are() -> None:
    assert _shown("- a b\n– <i>- c</i>\n>> d") == [
        ("BREAK", "- "), ("TEXT", "a b"), ("BREAK", "\n"),
        ("BREAK", "– "), ("OPEN", "<i>"), ("BREAK", "- "), ("TEXT", "c"), ("CLOSE", "</i>"), ("BREAK", "\n"),
        ("BREAK", ">> "), ("TEXT", "d"), ("BREAK", ""),
    ]  # fmt: skip


def _kinds(text: str) -> list[str]:
    return [item.kind.name for item in _items(text) if item.raw.startswith(("{", "<"))]


def test_overrides_are_pairs_with_what_takes_them_back() -> None:
    assert _kinds(r"a {\i1}b{\i0} c {\b700}d{\b0} e") == ["OPEN", "CLOSE", "OPEN", "CLOSE"]
    assert _kinds(r"a {\c&H0000FF&\b1}b{\r} c {\fnArial}d{\fn} e") == ["OPEN", "CLOSE", "OPEN", "CLOSE"]
    assert _kinds(r"a {\i1}b {\b1}c{\b0} d{\i0} e") == ["OPEN", "OPEN", "CLOSE", "CLOSE"]
    assert _kinds(r"a {\i1}b {\b1}c{\i0} d{\b0} e") == ["OPEN", "ATOM", "CLOSE", "ATOM"]
    assert _kinds(r"a {\c&HFF&}b {\an8}c {\i0}d {note} e") == ["ATOM", "ATOM", "ATOM", "ATOM"]


def test_times_of_words_stand_for_themselves_and_those_of_syllables_leave_the_word_whole() -> None:
    assert _kinds(r"{\k20}ka{\k30}ra {\k10}oke <00:01.000>now") == ["ATOM", "MARK", "ATOM", "ATOM"]
    assert _sentences(r"good mor{\k30}ning all") == [r"good morning all"]


def test_shapes_are_no_text_and_the_text_around_them_is() -> None:
    assert _sentences(r"{\pos(1,2)\p1}m 0 0 l 9 9{\p0}a house {\p2}m 1 1 b 2{\p0} here") == ["a house ", " here"]


def test_entities_are_read_where_a_format_has_them() -> None:
    assert _items("a &amp; b", _ENTITIES)[0].text == "a & b"
    assert _items("a &amp; b")[0].text == "a &amp; b"
    assert _ENTITIES.write("a & <b>") == "a &amp; &lt;b&gt;"
    assert _MARKUP.write("a & <b>") == "a & <b>"


def test_the_length_of_a_cue_and_the_depth_of_its_tags_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.documents.markup.cues._MAX_CUE_CHARACTERS", 5)
    assert _items("abc\nd")
    with pytest.raises(InvalidDocument, match=r"may have 5 characters. The cue in line 7 has 6"):
        _items("abc\nde")
    monkeypatch.undo()
    monkeypatch.setattr("server.documents.markup.cues._MAX_DEPTH", 2)
    assert _items("<i><b>a</b></i><i><b>b</b></i>")
    assert _items("</i></i></i><i><b>a")
    with pytest.raises(InvalidDocument, match=r"nested 2 deep. The cue in line 7 has more"):
        _items("<i><b>a</b><b>c<i>")


def test_a_translation_is_divided_like_its_source() -> None:
    items = _items("aa bb\ncc dd")
    unit = Unit(items, 0, len(items))
    assert _MARKUP.wrapped(unit, "one two <b>three four") == "one two\n<b>three four"
    single = _items("aa bb")
    assert _MARKUP.wrapped(Unit(single, 0, len(single)), "one two") == "one two"


NUM_DOCUMENTS = 300
WORDS = (
    "the", "a", "old", "man", "ship", "Tom", "whose", "went", "7", "1,000", "Dr.", "don't", "co-op", "straße", "ÉTÉ",
    "שלום", "עולם", "مرحبا", "العالم", "привет", "мир", "&amp;co", "x\\hy", "—", "x",
)  # fmt: skip
ENDS = (*([""] * 12), ".", "?", "!", "…", ",", "--", "»", '"', "؟")
LEADS = (*([""] * 12), "- ", ">> ", "TOM: ", "[door] ", "(", "♪ ", "“")
TAGS = {
    ".srt": (("<i>", "</i>"), ("<b>", "</b>"), ("{\\an8}", ""), ('<font color="red">', "</font>")),
    ".vtt": (("<i>", "</i>"), ("<c.loud>", "</c>"), ("<v Mary>", ""), ("<00:00:02.000>", ""), ("{\\an8}", "")),
    ".ass": (("{\\i1}", "{\\i0}"), ("{\\an8}", ""), ("{\\k20}", ""), ("{\\b1}", "{\\b0}")),
}
BREAKS = {".srt": "\n", ".vtt": "\r\n", ".ass": "\\N"}


class Cue(NamedTuple):
    """A caption: all that stands in front of its text, and the text."""

    head: str
    text: str


def _text(chooser: random.Random, extension: str) -> str:
    lines = []
    for _ in range(chooser.choice((1, 1, 1, 2, 3))):
        words = [chooser.choice(WORDS) for _ in range(chooser.choice((0, 1, 2, 3, 4, 6, 12)))]
        if words and chooser.random() < 1 / 3:
            opening, closing = chooser.choice(TAGS[extension])
            first = chooser.randrange(len(words))
            last = chooser.randrange(first, len(words))
            words[first], words[last] = opening + words[first], words[last] + closing
        line = chooser.choice(LEADS) + " ".join(words) + chooser.choice(ENDS)
        if chooser.random() < 1 / 6:
            opening, closing = chooser.choice(TAGS[extension])
            line = opening + line + closing
        lines.append(line)
    return BREAKS[extension].join(filter(str.strip, lines)) or "x"


def _cues(chooser: random.Random, extension: str) -> list[Cue]:
    cues, time = [], 1000  # in thousandths of a second
    for number in range(1, chooser.choice((2, 5, 20))):
        begin = max(time + chooser.choice((0, 0, 40, 500, 1500, -800)), 0)
        time = begin + chooser.choice((300, 1000, 2500, 7000))
        start, end = ("{:02d}:{:02d}:{:02d}.{:03d}".format(*_parts(each)) for each in (begin, time))
        if extension == ".srt":
            head = f"{number}\n{start} --> {end}\n".replace(".", ",")
        elif extension == ".vtt":
            head = f"{start} --> {end}{chooser.choice(('', '', ' align:start'))}\r\n"
        else:
            head = f"Dialogue: 0,{start[:-1]},{end[:-1]},{chooser.choice(('Default', 'Default', 'Sign'))},,0,0,0,,"
        cues.append(Cue(head, _text(chooser, extension)))
    return cues


def _parts(time: int) -> tuple[int, int, int, int]:
    return time // 3_600_000, time // 60_000 % 60, time // 1000 % 60, time % 1000


def _file(cues: Sequence[Cue], extension: str) -> str:
    front = {".srt": "", ".vtt": "WEBVTT\r\n\r\n", ".ass": "[Events]\n"}[extension]
    end = {".srt": "\n\n", ".vtt": "\r\n\r\n", ".ass": "\n"}[extension]
    return front + "".join(cue.head + cue.text + end for cue in cues)


def _translator(chooser: random.Random) -> Translate:
    """Change the number of words, and keep, move, lose or double the places at which a text is divided."""

    def changed(text: str) -> str:
        words = [word for word in text.replace(DIVIDER, f" {DIVIDER} ").split(" ") if word]
        if chooser.random() < 1 / 2:
            chooser.shuffle(words)
        words = words * chooser.choice((1, 1, 1, 2, 3))
        if chooser.random() < 1 / 5:
            words = [word for word in words if word != DIVIDER]
        if chooser.random() < 1 / 5:
            words = words[: chooser.randrange(1, 3)]
        if not any(map(str.isalnum, "".join(words))):
            words.append("x")
        return " ".join(["", *words, ""])

    async def text(texts: Sequence[str]) -> list[str]:
        return [changed(each) for each in texts]

    async def html(texts: Sequence[str]) -> list[str]:
        return [
            "".join(
                part if part.startswith("<") or not part.strip() else changed(part)
                for part in re.split("(<[^>]*>)", each)
            )
            for each in texts
        ]

    return Translate(text, html)


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, re.sub(r"<[^>]*>|\{[^}]*\}|&amp;|\\[hN]", "", text)))


@pytest.mark.parametrize("extension", TAGS)
def test_no_caption_is_lost_or_empty_and_no_time_changes(extension: str) -> None:
    for seed in range(NUM_DOCUMENTS // len(TAGS) + 1):
        chooser = random.Random(seed)
        cues = _cues(chooser, extension)
        source = _file(cues, extension)
        done = translated(source.encode(), extension, _translator(chooser)).decode()
        assert DIVIDER not in done
        places = [-1]
        for cue in cues:
            places.append(done.index(cue.head, places[-1] + 1))
        assert _file([], extension) == done[: places[1]]
        texts = [
            done[place + len(cue.head) : following]
            for cue, place, following in zip(cues, places[1:], [*places[2:], len(done)], strict=True)
        ]
        assert [_has_words(text) for text in texts] == [_has_words(cue.text) for cue in cues], source
        tags = r"<[^>]*>|\{[^}]*\}"
        lost = Counter(re.findall(tags, source)) - Counter(re.findall(tags, done))
        assert not lost, source


@pytest.mark.parametrize("extension", TAGS)
def test_a_document_without_a_change_stays_as_it_is(extension: str) -> None:
    for seed in range(20):
        source = _file(_cues(random.Random(seed), extension), extension)
        assert translated(source.encode(), extension, SAME).decode() == source


def _texts(*cues: tuple[str, str], options: FormatOptions | None = None) -> list[str]:
    """The texts that are translated of captions with these times and texts; dividers are bars."""
    sent: list[str] = []

    async def record(texts: Sequence[str]) -> list[str]:
        sent.extend(text.replace(DIVIDER, "|") for text in texts)
        return list(texts)

    source = "".join(f"{number}\n{times}\n{text}\n\n" for number, (times, text) in enumerate(cues, start=1))
    translated(source.encode(), ".srt", Translate(record, record), options=options or FormatOptions())
    return sent


FIRST, SECOND, LATER = (
    f"00:00:{start},000 --> 00:00:{end},000" for start, end in (("01", "02"), ("03", "04"), ("06", "08"))
)


@pytest.mark.parametrize(
    ("text", "following", "joined"),
    [
        ("We went", "home.", ["We went |home."]),
        ("We went", "Tom saw it.", ["We went |Tom saw it."]),
        ("It rains. We went", "home early.", ["It rains. We went |home early."]),
        ("It rains.\nWe went", "home.\nGood.", ["It rains.", "We went |home.", "Good."]),
        ("<i>We went</i>", "<i>home.</i>", ["We went |home."]),
        ("- We went", "home.", ["We went |home."]),
        ("We went.", "Home is far.", ["We went.", "Home is far."]),
        ("We went", "- Home!", ["We went", "Home!"]),
        ("We went", ">> home", ["We went", "home"]),
        ("We went", "TOM: home", ["We went", "TOM: home"]),
        ("We went", "[door] home", ["We went", "[door] home"]),
        ("We went", "♪ home ♪", ["We went", "♪ home ♪"]),
        ("<i>We went</i>", "home.", ["We went", "home."]),
        ("{\\an8}We went", "home.", ["We went", "home."]),
        ("We went", "7", ["We went"]),
    ],
)
def test_captions_are_joined_where_a_sentence_goes_on(text: str, following: str, joined: list[str]) -> None:
    assert _texts((FIRST, text), (SECOND, f"{following}"), (LATER, "Done.")) == [*joined, "Done."]


def test_captions_with_a_long_pause_or_at_the_same_time_stay_apart() -> None:
    assert _texts((FIRST, "We went"), (LATER, "home.")) == ["We went", "home."]
    assert _texts((FIRST, "We went"), (FIRST, "home.")) == ["We went", "home."]
    assert _texts((LATER, "We went"), (FIRST, "home.")) == ["We went", "home."]


def test_captions_without_marks_at_the_ends_of_sentences_are_joined_before_small_letters_only() -> None:
    texts = ["We went", "Tom came", "home and", "all"]
    times = [f"00:00:{second:02d},000 --> 00:00:{second + 1:02d},000" for second in range(4)]
    assert _texts(*zip(times, texts, strict=True)) == ["We went", "Tom came |home and |all"]


CAPTION_TIMES = [f"00:00:{second:02d},000 --> 00:00:{second + 1:02d},000" for second in range(0, 40, 2)]


@pytest.mark.parametrize(
    ("captions", "sent"),
    [
        (["We went", "We went\nto see Tom", "to see Tom\nand me."], ["We went |to see Tom |and me."]),
        (["Oh\nWe went", "We went\nhome early.", "home early.\nGood."], ["Oh", "We went |home early.", "Good."]),
        (["We\nwent", "We\nwent\nhome.", "We\nwent\nhome.\nGood."], ["We went |home.", "Good."]),
        (["We went", "We went", "home."], ["We went |home."]),
        (["I <i>see</i>", "I see\nit."], ['I <span id="1">see</span> |it.']),
        (["We\nwent", "We\ncame."], ["We went |We came."]),
    ],
)
def test_a_line_that_rolls_up_is_translated_once(captions: list[str], sent: list[str]) -> None:
    cues = [*zip(CAPTION_TIMES, [*captions, "Done."], strict=False)]
    assert _texts(*cues) == [*sent, "Done."]


def test_a_line_that_rolls_up_has_the_same_translation_in_both_captions() -> None:
    captions = ["<i>We went</i>", "We went\n<i>to</i> see Tom", "to see Tom\n\u200b\n"]
    source = "".join(f"{times}\n{text}\n\n" for times, text in zip(CAPTION_TIMES, captions, strict=False))
    done = translated(source.encode(), ".srt", LOUD).decode()
    assert done == re.sub("We went|to|see Tom", lambda found: found[0].upper(), source)


def test_captions_are_not_joined_if_the_client_does_not_want_it() -> None:
    cues = (FIRST, "We went"), (SECOND, "home.")
    assert _texts(*cues, options=FormatOptions(join_captions=False)) == ["We went", "home."]


def test_words_change_their_caption_with_their_tags() -> None:
    source = f"1\n{FIRST}\nI have <b>seen</b>\n\n2\n{SECOND}\nhim there.\n"

    async def html(_: Sequence[str]) -> list[str]:
        return [f'Ich habe ihn {DIVIDER}dort <span id="1">gesehen</span>.']

    async def text(texts: Sequence[str]) -> list[str]:
        return list(texts)

    done = translated(source.encode(), ".srt", Translate(text, html)).decode()
    assert done == f"1\n{FIRST}\nIch habe ihn\n\n2\n{SECOND}\ndort <b>gesehen</b>.\n"


def test_a_long_caption_gets_a_second_line() -> None:
    source = f"1\r\n{FIRST}\r\nWe went\r\n\r\n2\r\n{SECOND}\r\nhome.\r\n"

    async def text(_: Sequence[str]) -> list[str]:
        return [f"Nach langer Zeit sind wir alle wieder einmal {DIVIDER}nach Hause gegangen."]

    done = translated(source.encode(), ".srt", Translate(text)).decode()
    assert "Nach langer Zeit sind\r\nwir alle wieder einmal\r\n" in done
    assert "\r\nnach Hause gegangen.\r\n" in done
