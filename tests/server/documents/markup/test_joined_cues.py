"""Captions that one sentence runs over."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from server.documents.formats.options import FormatOptions
from server.documents.rewriting import Translate
from server.text.readers.units import DIVIDER
from tests.server.documents.documents import SAME, translated

NUM_DOCUMENTS = 1000
WORDS = (
    "the", "a", "old", "man", "ship", "Tom", "whose", "went", "7", "1,000", "Dr.", "don't", "co-op", "straße", "ÉTÉ",
    "שלום", "עולם", "مرحبا", "العالم", "привет", "мир", "&amp;co", "x\\hy", "—", "x",
)  # fmt: skip
ENDS = (*([""] * 12), ".", "?", "!", "…", ",", "--", "»", '"', "؟")
LEADS = (*([""] * 12), "- ", ">> ", "TOM: ", "[door] ", "(", "♪ ", "“")
TAGS = {
    ".srt": (("<i>", "</i>"), ("<b>", "</b>"), ("{\\an8}", ""), ('<font color="red">', "</font>")),
    ".vtt": (("<i>", "</i>"), ("<c.loud>", "</c>"), ("<v Mary>", ""), ("<00:00:02.000>", "")),
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
    translated(source.encode(), ".srt", Translate(record), options=options or FormatOptions())
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
